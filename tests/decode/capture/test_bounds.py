"""Captures made to exhaust memory or time: 256 MiB and one second are enough, and dropped data is counted."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from io import BytesIO

import pytest

from decode.capture.wire import BROKER, MS, Talk, command, ethernet, framed, heartbeat, pcap, pcapng, tcp
from mqreplay.decode.capture import calls as calls_module
from mqreplay.decode.capture import names as names_module
from mqreplay.decode.capture.calls import Calls
from mqreplay.decode.capture.names import Names
from mqreplay.decode.capture.packets import Segment, segments
from mqreplay.decode.capture.streams import SEGMENT_BYTES, Stream
from mqreplay.words.errors import DecodeError
from reliability.fuzz_run import Target, fuzz

FRAME = 16 * 1024 * 1024
CLAIM = struct.pack(">II", FRAME, 10) + b'{"code":0}'  # the beginning of a command that claims 16 MiB


def segment(client: int, seq: int, data: bytes, begins: bool = False) -> Segment:
    return Segment(MS * 1000, f"10.0.{client >> 8}.{client & 255}:40000", BROKER, seq, begins, False, data, len(data))


def claims() -> Iterator[Segment]:
    """600 connections that claim 16 MiB each, of which all lacks but the last bytes."""
    for client in range(600):
        yield segment(client, 99, b"", begins=True)
        yield segment(client, 100, CLAIM)
        yield segment(client, 100 + FRAME - 50, b"x")


def holes() -> Iterator[Segment]:
    """One command with 16,000 holes in it."""
    yield segment(1, 99, b"", begins=True)
    yield segment(1, 100, CLAIM)
    for hole in range(16_000):
        yield segment(1, 200 + hole * 20, b"y")


def segments_that_wait() -> Iterator[Segment]:
    """300 MB of segments, all behind one that does not come."""
    for client in range(25):
        yield segment(client, 99, b"", begins=True)
        for place in range(200):
            yield segment(client, 200 + place * 60_001, bytes(60_000))


def commands_that_do_not_end() -> Iterator[Segment]:
    """300 MB of commands of which none is whole."""
    for client in range(25):
        yield segment(client, 99, b"", begins=True)
        yield segment(client, 100, CLAIM)
        for place in range(200):
            yield segment(client, 118 + place * 60_000, bytes(60_000))


def requests_without_answer() -> Iterator[Segment]:
    """300 MB of requests."""
    seq = 100
    yield segment(1, 99, b"", begins=True)
    for opaque in range(5_000):
        sent = command(10, opaque, body=bytes(60_000))
        yield segment(1, seq, sent)
        seq += len(sent)


BOMBS = (claims, holes, segments_that_wait, commands_that_do_not_end, requests_without_answer)


@pytest.mark.alone
@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
def test_a_bomb_takes_no_more_than_any_capture(bomb):
    def run(data: bytes) -> None:
        # As an input, and not as what the worker loads beforehand.
        if len(seen) == 1:
            calls = Calls(bomb())
            assert sum(1 for _ in calls) == (5_000 if bomb is requests_without_answer else 0)
            assert (calls.dropped > 0) == (bomb in (segments_that_wait, commands_that_do_not_end))
            assert (calls.unanswered > 0) == (bomb is requests_without_answer)
        seen.append(data)

    seen: list[bytes] = []
    assert fuzz([Target(bomb.__name__, (b"",), run, ())], inputs=1, seed=0).failures == []


@pytest.mark.alone
def test_a_client_id_of_15_mib_takes_little():
    sent = heartbeat("c" * 15 * 1024 * 1024, 1)

    def run(data: bytes) -> None:
        assert Names(Calls([segment(1, 100, sent)])).client(1) is None

    assert fuzz([Target("name", (b"",), run, ())], inputs=1, seed=0).failures == []


def test_what_waits_is_counted_with_what_it_takes_itself():
    stream, first, one = Stream(), segment(1, 100, b"a" * 10), segment(1, 200, b"b" * 10)
    longer = segment(1, 200, b"b" * 50)
    pieces = [piece for each in (first, one, longer, one) for piece in stream.take(each)]
    assert [piece.data for piece in pieces] == [b"a" * 10]
    assert stream.held == SEGMENT_BYTES + 50, "of two that begin alike the longer"
    assert [(piece.data, piece.missing) for piece in stream.rest()] == [(b"", 90), (b"b" * 50, 0)]
    assert stream.held == 0


def test_the_connection_that_is_idle_the_longest_is_ended_first(monkeypatch):
    monkeypatch.setattr(calls_module, "MOST_CONNECTIONS", 2)
    first, second, third = (Talk(f"10.0.0.{client}:40000") for client in range(3))
    sent = [first.ask(command(11, 1)), second.ask(command(11, 1)), first.ask(command(11, 2)), third.ask(command(11, 1))]
    found = Calls([*sent, first.answer(command(0, 1, 1)), first.answer(command(0, 2, 1))])
    assert [(call.asker, call.response is None) for call in found] == [
        (second.client, True),
        (first.client, False),
        (first.client, False),
        (third.client, True),
    ]


def test_connections_that_are_open_are_so_many_at_most(monkeypatch):
    monkeypatch.setattr(calls_module, "MOST_CONNECTIONS", 10)
    talks = [Talk(f"10.0.0.{client}:40000") for client in range(30)]
    asked = [talk.ask(command(11, 1)) for talk in talks]
    first = talks[0]
    late = [first.answer(command(0, 1, 1)), talks[29].answer(command(0, 1, 1))]
    calls, open_at_once = Calls([*asked, *late]), []
    found = []
    for call in calls:
        found.append(call)
        open_at_once.append(len(calls._going))
    assert max(open_at_once) <= 10
    assert len(found) == 30
    assert [call.asker for call in found if call.response] == ["10.0.0.29:40000"]
    assert calls.unanswered == 21, "20 for the clients after them, one for the first's late answer"


def test_names_are_so_many_at_most(monkeypatch):
    monkeypatch.setattr(names_module, "MOST_NAMED", 10)
    sent = [Talk(f"10.0.0.{n}:40000").ask(heartbeat(f"c{n}", 1)) for n in range(30)]
    names = Names(Calls(sent))
    assert [names.client(n) for n in (1, 10, 11, 30)] == ["c0", "c9", None, None]
    assert [names.client_of_host(f"10.0.0.{n}:1") for n in (0, 9, 10)] == ["c0", "c9", None]


@pytest.mark.parametrize("length", [1024, 1025])
def test_a_name_is_so_long_at_most(length):
    names = Names(Calls([Talk().ask(heartbeat("c" * length, 1))]))
    assert names.client(1) == ("c" * 1024 if length == 1024 else None)


def test_a_broker_id_of_thousands_of_digits_names_nobody():
    sent = command(103, 1, 2, {"brokerName": "b", "brokerId": "9" * 5000, "brokerAddr": BROKER})
    assert Names(Calls([Talk().ask(sent)])).broker(BROKER, 0) is None


def test_interfaces_of_a_pcapng_are_so_many_at_most():
    whole = pcapng(framed([Talk().ask(b"hello")]))
    section, interface = whole[:28], whole[28:60]
    assert struct.unpack_from("<II", interface) == (1, 32)
    assert len(list(segments(BytesIO(section + interface * 65_536 + whole[60:])))) == 1
    with pytest.raises(DecodeError, match="more than 65536 interfaces"):
        list(segments(BytesIO(section + interface * 65_537 + whole[60:])))


def test_tags_and_headers_before_a_segment_are_so_many_at_most():
    one = Talk("fd00::1:40000", "fd00::9:10911").ask(b"ab")

    def frame(tags: int, extensions: int) -> bytes:
        packet = bytearray(tcp(one))
        packet[4:6] = struct.pack(">H", 22 + 8 * extensions)
        if extensions:
            packet[6] = 60
            packet[40:40] = (bytes([60, 0]) + bytes(6)) * (extensions - 1) + bytes([6, 0]) + bytes(6)
        plain = ethernet(bytes(packet))
        return plain[:12] + b"\x81\x00\x00\x07" * tags + plain[12:]

    for tags, extensions, found in ((0, 0, 1), (16, 16, 1), (17, 0, 0), (0, 17, 0)):
        read = list(segments(BytesIO(pcap([(one.ts_us, frame(tags, extensions), 0)]))))
        assert [(each.data, each.length) for each in read] == [(b"ab", 2)] * found, (tags, extensions)
