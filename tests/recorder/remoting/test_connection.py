"""Calls over connections that answer late, out of order, wrongly or not at all. The server is one of the tests."""

from __future__ import annotations

import asyncio
import json
import pickle
import socket
import struct
import time

import pytest

from mqreplay.recorder.remoting.connection import CallFailed, Connections
from mqreplay.recorder.remoting.credentials import Credentials
from mqreplay.recorder.remoting.frames import MAX_FRAME_BYTES
from mqreplay.recorder.remoting.requests import ReadCode, Request, queue_request
from recorder.remoting.remoting_server import Peer, answer, echo, serving, silent

ASK = Request(ReadCode.GET_BROKER_RUNTIME_INFO)


def run(behave, talk, credentials=None):
    """Run ``talk(connections, address)`` with a server. Nothing may be left behind, and no error unseen."""
    unseen = []

    async def all_of_it():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
        connections = Connections(credentials)
        async with serving(behave) as address:
            result = await talk(connections, address)
            await connections.close()
            mine = [task for task in asyncio.all_tasks() if "connection.py" in str(task.get_coro())]
            assert mine == []
        return result

    result = asyncio.run(all_of_it())
    assert unseen == []
    return result


async def failure(call) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        await call
    return caught.value


def test_one_connection_carries_many_requests_and_each_gets_its_own_answer():
    async def backwards(peer: Peer) -> None:
        requests = [await peer.request() for _ in range(200)]
        for request in reversed(requests):
            peer.send(answer(request["opaque"], body=request["extFields"]["queueId"].encode()))
        await peer.request()

    async def talk(connections, address):
        asked = (queue_request(ReadCode.GET_MAX_OFFSET, "t", queue) for queue in range(200))
        calls = (connections.call(address, request, 5) for request in asked)
        assert [int(answer.body) for answer in await asyncio.gather(*calls)] == list(range(200))
        traffic = connections.counters[address]
        assert (traffic.connections, traffic.requests, traffic.answers) == (1, 200, 200)
        assert traffic.bytes_sent > 200 * 140
        assert traffic.bytes_received > 200 * 80

    run(backwards, talk)


def test_an_error_code_is_an_answer():
    async def refuse(peer: Peer) -> None:
        peer.send(answer((await peer.request())["opaque"], code=17, remark="topic[t] not exist"))
        await peer.request()

    async def talk(connections, address):
        found = await connections.call(address, Request(ReadCode.GET_TOPIC_STATS_INFO, (("topic", "t"),)), 5)
        assert (found.code, found.remark, found.body, found.denied) == (17, "topic[t] not exist", b"", None)

    run(refuse, talk)


def test_a_late_answer_is_dropped_and_the_connection_is_used_on():
    async def late(peer: Peer) -> None:
        first, second = await peer.request(), await peer.request()
        peer.send(answer(second["opaque"], body=b"second"))
        await asyncio.sleep(0.3)
        peer.send(answer(first["opaque"], body=b"first"))
        third = await peer.request()
        peer.send(answer(third["opaque"], body=b"third"))
        await peer.request()

    async def talk(connections, address):
        first = asyncio.create_task(connections.call(address, ASK, 0.1))
        await asyncio.sleep(0)
        assert (await connections.call(address, ASK, 5)).body == b"second"
        error = await failure(first)
        assert (error.kind, error.detail) == (
            "timeout",
            f"{address} did not answer GET_BROKER_RUNTIME_INFO in 0.1 s",
        )
        assert (await connections.call(address, ASK, 5)).body == b"third"
        traffic = connections.counters[address]
        assert (traffic.connections, traffic.answers) == (1, 2)

    run(late, talk)


def test_a_silent_connection_gets_no_further_request_but_may_finish():
    """A network that was cut leaves connections that the system holds for good for many minutes."""

    async def first_is_slow(peer: Peer) -> None:
        if peer.number > 0:
            return await echo(peer)
        first, second = await peer.request(), await peer.request()
        await asyncio.sleep(0.4)
        peer.send(answer(second["opaque"], body=b"second"))
        peer.send(answer(first["opaque"], body=b"first"))
        with pytest.raises(asyncio.IncompleteReadError):
            await peer.request()  # the client closes it
        closed.append(peer.number)
        return None

    async def talk(connections, address):
        first = asyncio.create_task(connections.call(address, ASK, 0.2))
        second = asyncio.create_task(connections.call(address, ASK, 5))
        assert (await failure(first)).kind == "timeout"
        assert json.loads((await connections.call(address, ASK, 5)).body)["opaque"] == 1, "a new connection"
        assert (await second).body == b"second"
        await asyncio.sleep(0.05)
        assert closed == [0]
        assert connections.counters[address].connections == 2

    closed: list[int] = []
    run(first_is_slow, talk)


def test_requests_of_the_server_are_dropped():
    async def ask_first(peer: Peer) -> None:
        request = await peer.request()
        # What brokers send to consumers, with the number of our own request too.
        for opaque in (request["opaque"], 99):
            peer.send(answer(opaque, code=40, flag=0))
            peer.send(answer(opaque, code=220, flag=2, body=b"{}"))
        peer.send(answer(request["opaque"], body=b"answer"))
        assert (await peer.request())["code"] == 28, "nothing was sent in between"
        await peer.request()

    async def talk(connections, address):
        assert (await connections.call(address, ASK, 5)).body == b"answer"
        await failure(connections.call(address, ASK, 0.05))
        traffic = connections.counters[address]
        assert (traffic.requests, traffic.answers) == (2, 1)

    run(ask_first, talk)


@pytest.mark.parametrize(
    ("data", "output"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "a frame of 1213486160 bytes"),
        (struct.pack(">I", MAX_FRAME_BYTES + 1), "a frame of 67108865 bytes"),
        (struct.pack(">II", 100, 200) + bytes(96), "serialize type 0 with a header of 200 bytes in 100"),
        (struct.pack(">II", 34, 2 << 24 | 30) + bytes(30), "serialize type 2"),
        (struct.pack(">II", 34, 30) + b"x" * 30, "the answer is not RocketMQ's protocol"),
    ],
)
def test_what_is_not_rocketmq_ends_the_connection(data, output):
    async def wrong(peer: Peer) -> None:
        if peer.number > 0:
            return await echo(peer)
        await peer.request()
        peer.send(data)
        await peer.reader.read()
        return None

    async def talk(connections, address):
        calls = [asyncio.create_task(connections.call(address, ASK, 5)) for _ in range(3)]
        for call in calls:
            error = await failure(call)
            assert error.kind == "refused_frame"
            assert output in error.detail
            assert error.detail.startswith(f"{address}: the answer is not RocketMQ's protocol: ")
        assert (await connections.call(address, ASK, 5)).code == 0, "the next call opens a new one"

    run(wrong, talk)


@pytest.mark.parametrize("part", [b"", answer(1)[:5], answer(1, body=b"x" * 100)[:50]])
def test_a_server_that_closes_is_connected_again(part):
    async def close_first(peer: Peer) -> None:
        if peer.number > 0:
            return await echo(peer)
        await peer.request()
        peer.send(part)
        return None

    async def talk(connections, address):
        error = await failure(connections.call(address, ASK, 5))
        assert error.kind == "closed"
        assert "the server closed the connection" in error.detail
        assert ("in the middle of an answer" in error.detail) == bool(part)
        assert (await connections.call(address, ASK, 5)).code == 0
        assert connections.counters[address].connections == 2

    run(close_first, talk)


def test_a_connection_that_ended_between_calls_is_not_noticed():
    async def once(peer: Peer) -> None:
        peer.send(answer((await peer.request())["opaque"]))

    async def talk(connections, address):
        for _ in range(3):
            assert (await connections.call(address, ASK, 5)).code == 0
            await asyncio.sleep(0.05)
        assert connections.counters[address].connections == 3

    run(once, talk)


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    async def talk(connections, _):
        error = await failure(connections.call(f"127.0.0.1:{port}", ASK, 5))
        assert (error.kind, error.detail) == (
            "unreachable",
            f"no connection to 127.0.0.1:{port}: connection refused",
        )
        assert connections.counters[f"127.0.0.1:{port}"].requests == 0

    run(echo, talk)


def test_a_host_that_does_not_answer_takes_no_longer_than_the_timeout():
    """A full queue of a listener: the system answers no further SYN, as a host behind a dropping firewall."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = f"127.0.0.1:{full.getsockname()[1]}"
        waiting = []
        for _ in range(3):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(full.getsockname())
            waiting.append(one)

        async def talk(connections, _):
            began = time.monotonic()
            errors = await asyncio.gather(*(failure(connections.call(address, ASK, 0.3)) for _ in range(20)))
            assert {(error.kind, error.detail) for error in errors} == {
                ("unreachable", f"no connection to {address} in 0.3 s")
            }
            assert time.monotonic() - began < 5  # one after the other: 6 s

        run(echo, talk)
        for one in waiting:
            one.close()


@pytest.mark.parametrize(
    "address", ["", "host", ":1", "host:", "host:x", "host:99999", "host:١", "h\x00:1", "x" * 70 + ":1"]
)
def test_an_address_that_is_none(address):
    async def talk(connections, _):
        assert (await failure(connections.call(address, ASK, 5))).kind == "unreachable"

    run(echo, talk)


def test_closing_ends_the_calls():
    asked = asyncio.Event()

    async def silent_when_asked(peer: Peer) -> None:
        await peer.request()
        asked.set()
        await silent(peer)

    async def talk(connections, address):
        call = asyncio.create_task(connections.call(address, ASK, 5))
        await asked.wait()
        await connections.close()
        error = await failure(call)
        assert (error.kind, error.detail) == ("closed", f"{address}: this client closed the connection")
        assert (await failure(connections.call(address, ASK, 5))).detail == "this client is closed"

    run(silent_when_asked, talk)


def test_closing_while_a_connection_opens():
    async def talk(connections, address):
        call = asyncio.create_task(connections.call(address, ASK, 5))
        await asyncio.sleep(0)
        await connections.close()
        assert (await failure(call)).kind == "closed"

    run(silent, talk)


def test_a_call_that_is_cancelled_leaves_nothing_behind():
    async def talk(connections, address):
        call = asyncio.create_task(connections.call(address, ASK, 5))
        await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    run(silent, talk)


@pytest.mark.parametrize(
    ("code", "remark", "denied"),
    [
        # As 4.9.7 and 5.3.3 answered in fact, with other keys.
        (
            1,
            "org.apache.rocketmq.acl.common.AclException: Check signature failed for accessKey=me-42, "
            "org.apache.rocketmq.acl.plain.PlainPermissionManager.validate(PlainPermissionManager.java:683)",
            "Check signature failed for accessKey=***",
        ),
        (16, "User:me-42 is not found.", "User:*** is not found."),
        (16, "check signature failed.", "check signature failed."),
        (16, None, "no permission"),
        (1, "no consumer for this group, me-42", None),
        (0, None, None),
    ],
)
def test_a_denied_answer_says_why_and_not_the_access_key(code, remark, denied):
    async def refuse(peer: Peer) -> None:
        peer.send(answer((await peer.request())["opaque"], code=code, remark=remark))
        await peer.request()

    async def talk(connections, address):
        found = await connections.call(address, ASK, 5)
        assert found.denied == denied
        assert denied is None or "me-42" not in str(found)

    run(refuse, talk, Credentials("me-42", "12345678"))


def test_requests_are_signed():
    async def talk(connections, address):
        reported = json.loads((await connections.call(address, ASK, 5)).body)
        assert set(reported["extFields"]) == {"AccessKey", "Signature"}

    run(echo, talk, Credentials("RocketMQ", "12345678"))


def test_a_failure_can_be_pickled():
    error = pickle.loads(pickle.dumps(CallFailed("timeout", "too late")))
    assert (error.kind, error.detail, str(error)) == ("timeout", "too late", "too late")
