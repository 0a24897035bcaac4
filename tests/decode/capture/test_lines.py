"""Records of calls: names, skipped calls, and data that is not on the wire."""

from __future__ import annotations

import json
import struct

import pytest

from decode.capture.wire import BROKER, CLIENT, MS, Talk, command, heartbeat, registration
from mqreplay.decode.capture.calls import Calls
from mqreplay.decode.capture.lines import Cut, Unnamed, record_of
from mqreplay.decode.capture.messages import messages_of, without_messages
from mqreplay.decode.capture.names import Names
from mqreplay.decode.kinds import KINDS
from mqreplay.words.errors import DecodeError

ID = "10.0.0.1@77"
NAMESRV = "10.0.0.5:9876"


def register(name="b", broker_id=0, address=BROKER):
    return Talk("10.0.0.9:50000", NAMESRV).ask(registration(name, broker_id, address, 1))


def records(segments):
    """(stem, record decoded) of each call; what is raised instead."""
    found, names = [], Names(Calls(segments))
    for call in Calls(segments):
        try:
            made = record_of(without_messages(call), names)
        except (Cut, Unnamed) as error:
            found.append((type(error).__name__, str(error)))
            continue
        if made is not None:
            line = json.dumps({k: v for k, v in made[1].items() if v is not None}).encode()
            found.append((made[0], KINDS[made[0]].decode(line)))
    return found


def record(segments, stem):
    """The one record of that stem."""
    (found,) = [made for kind, made in records(segments) if kind == stem]
    return found


def message(queue_offset, commit_log_offset, created, size=100):
    head = struct.pack(">iIiiiqqiq", size, 0xDAA320A7, 0, 0, 0, queue_offset, commit_log_offset, 0, created)
    return head + bytes(size - len(head))


PULL = {"consumerGroup": "g", "topic": "t", "queueId": "1", "queueOffset": "7", "commitOffset": "6", "sysFlag": "3"}
PULL |= {"maxMsgNums": "32", "suspendTimeoutMillis": "15000", "subVersion": "5", "expressionType": "TAG"}
FOUND = {"nextBeginOffset": "9", "minOffset": "0", "maxOffset": "12", "suggestWhichBrokerId": "1"}


def test_a_pull_and_its_answer():
    talk = Talk()
    asked = [talk.ask(command(11, 1, ext=PULL | {"bname": "b"}))]
    body = message(7, 1000, MS) + message(8, 1100, MS + 5)
    asked.append(talk.answer(command(0, 1, 1, FOUND, body, remark="FOUND")))
    # The heartbeat that names the client comes after.
    (_, pull), (_, beat) = records([register(), *asked, talk.ask(heartbeat(ID, 2))])
    assert beat["client_id"] == ID
    assert pull == dict.fromkeys(pull) | {
        **{"request_ts": MS + 1, "response_ts": MS + 2, "client_id": ID, "consumer_group": "g", "topic": "t"},
        **{"queue_id": 1, "broker_name": "b", "broker_addr": BROKER, "broker_id": 0, "opaque": 1, "queue_offset": 7},
        **{"commit_offset": 6, "sys_flag": 3, "max_msg_nums": 32, "suspend_timeout_ms": 15000, "sub_version": 5},
        **{"expression_type": "TAG", "response_code": 0, "response_name": "SUCCESS", "remark": "FOUND"},
        **{"next_begin_offset": 9, "min_offset": 0, "max_offset": 12, "suggest_which_broker_id": 1},
        **{"body_bytes": 200, "msg_count": 2, "first_queue_offset": 7, "last_queue_offset": 8},
        **{"first_commitlog_offset": 1000, "last_commitlog_offset": 1100, "last_store_size": 100, "first_born_ts": MS},
    }


def test_an_answer_that_is_not_in_the_capture_is_no_error():
    talk = Talk()
    _, (_, pull) = records([register(), talk.ask(heartbeat(ID, 2)), talk.ask(command(11, 1, ext=PULL))])
    assert (pull["response_ts"], pull["response_code"], pull["error"], pull["body_bytes"]) == (None,) * 4


def test_a_slave_is_asked_under_its_masters_name():
    talk = Talk(server="10.0.0.9:10921")
    _, (_, pull) = records(
        [
            register(broker_id=2, address="10.0.0.9:10921"),
            talk.ask(heartbeat(ID, 2)),
            talk.ask(command(11, 1, ext=PULL)),
        ]
    )
    assert (pull["broker_name"], pull["broker_id"]) == ("b", 2)


def test_a_commit_by_the_fast_way():
    talk = Talk(server="10.0.0.9:10909")
    commit = command(15, 1, 2, {"consumerGroup": "g", "topic": "t", "queueId": "0", "commitOffset": "-1"})
    reported = record([register(), talk.ask(heartbeat(ID, 2)), talk.ask(commit)], "offset_commits")
    assert (reported["kind"], reported["mode"], reported["commit_offset"], reported["broker_name"]) == (
        "UPDATE",
        "oneway",
        -1,
        "b",
    )


def lookups(*sent):
    return [made for kind, made in records([register(), *sent]) if kind == "offset_lookups"]


def test_a_consumer_asks_for_an_end_and_for_the_offset_of_a_time():
    talk, queue = Talk(), {"topic": "t", "queueId": "3", "bname": "b"}
    ask_end, ask_time = command(30, 2, ext=queue), command(29, 3, ext=queue | {"timestamp": str(MS)})
    asked = [talk.ask(heartbeat(ID, 1)), talk.ask(ask_end), talk.answer(command(0, 2, 1, {"offset": "90"}))]
    asked += [talk.ask(ask_time), talk.answer(command(0, 3, 1, {"offset": "40"}))]
    shown = ("kind", "client_id", "topic", "queue_id", "broker_name", "searched_ts", "answer_offset", "response_code")
    end, time = ([made[name] for name in shown] for made in lookups(*asked))
    assert end == ["MAX", ID, "t", 3, "b", None, 90, 0]
    assert time == ["SEARCH", ID, "t", 3, "b", MS, 40, 0]


def test_a_consumer_sends_a_message_back():
    talk = Talk()
    header = {"offset": "34801", "group": "g", "delayLevel": "0", "originMsgId": "7F00", "originTopic": "t"}
    header |= {"unitMode": "false", "maxReconsumeTimes": "2"}
    asked = [talk.ask(heartbeat(ID, 1)), talk.ask(command(36, 2, ext=header)), talk.answer(command(0, 2, 1, {}))]
    sent = record([register(), *asked], "other_requests")
    shown = ("client_id", "consumer_group", "topic", "msg_id", "commitlog_offset", "delay_level")
    assert [sent[name] for name in shown] == [ID, "g", "t", "7F00", 34801, 0]
    assert (sent["max_reconsume_times"], sent["unit_mode"], sent["broker_name"]) == (2, False, "b")
    assert (sent["response_code"], sent["mode"]) == (0, "sync")


def test_an_admin_tool_asks_for_ends_too():
    assert lookups(Talk().ask(command(30, 2, ext={"topic": "t", "queueId": "3"}))) == []


@pytest.mark.parametrize("beats", [(), (ID, "another")])
def test_a_connection_of_none_or_of_two_clients_is_nobodys(beats):
    talk = Talk()
    sent = [talk.ask(heartbeat(name, 10 + n)) for n, name in enumerate(beats)]
    found = records([register(), *sent, talk.ask(command(11, 1, ext=PULL))])
    assert found[-1] == ("Unnamed", "the client of its connection: no heartbeat on it")


def test_a_broker_that_nobody_names_is_no_broker():
    talk = Talk()
    found = records([talk.ask(heartbeat(ID, 2)), talk.ask(command(11, 1, ext=PULL))])
    assert found[-1] == ("Unnamed", f"the broker at {BROKER}: no route or registration has it")


ROUTE = b'{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.9:10911"},"brokerName":"b","cluster":"C"}],"queueDatas":[]}'


@pytest.mark.parametrize(("clients", "named"), [((ID,), ID), ((ID, "10.0.0.1@78"), None), ((), None)])
def test_a_route_is_asked_by_the_one_client_of_its_host(clients, named):
    sent = [Talk(f"10.0.0.1:4100{n}").ask(heartbeat(name, 1)) for n, name in enumerate(clients)]
    asking = Talk("10.0.0.1:40001", NAMESRV)
    sent += [asking.ask(command(105, 1, ext={"topic": "t"})), asking.answer(command(0, 1, 1, body=ROUTE))]
    route = record(sent, "routes")
    assert (route["client_id"], route["namesrv_addr"], route["topic"]) == (named, NAMESRV, "t")
    assert route["broker_datas"] == [("b", {0: BROKER})], "and so the broker is known"
    assert [one[0] for one in records(sent)].count("heartbeats") == len(clients)


def test_a_route_that_is_not_there():
    asking = Talk(CLIENT, NAMESRV)
    sent = [asking.ask(command(105, 1, ext={"topic": "t"})), asking.answer(command(17, 1, 1, remark="No topic route"))]
    ((_, route),) = records(sent)
    assert (route["response_code"], route["remark"], route["broker_datas"]) == (17, "No topic route", None)


def test_what_a_broker_asks_a_client():
    talk = Talk()
    reset = b'{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"t"}:28}}'
    reported = [
        talk.answer(command(40, 5, 2, {"consumerGroup": "g"})),
        talk.answer(command(220, 6, 2, {"group": "g"}, reset)),
    ]
    found = records([register(), *reported, talk.ask(heartbeat(ID, 2))])
    (_, changed), (stem, moved), _ = found
    assert (changed["client_id"], changed["consumer_group"], changed["broker_name"]) == (ID, "g", "b")
    assert (stem, moved["name"]) == ("server_requests", "RESET_CONSUMER_CLIENT_OFFSET")
    assert moved["reset_offsets"] == [("t", "b", 0, 28)]


def test_locks_name_their_client():
    talk = Talk()
    asked = b'{"clientId":"10.0.0.1@77","consumerGroup":"g","mqSet":[{"brokerName":"b","queueId":0,"topic":"t"}]}'
    granted = b'{"lockOKMQSet":[]}'
    sent = [
        talk.ask(command(41, 1, body=asked)),
        talk.answer(command(0, 1, 1, body=granted)),
        talk.ask(command(42, 2, 2, body=asked)),
    ]
    (_, lock), (_, unlock) = records([register(), *sent])
    assert (lock["kind"], lock["client_id"], lock["lock_ok_mq_set"]) == ("LOCK_BATCH_MQ", ID, [])
    assert (unlock["kind"], unlock["mode"], unlock["lock_ok_mq_set"]) == ("UNLOCK_BATCH_MQ", "oneway", None)


def test_figures_that_somebody_asked_for():
    talk = Talk()
    table = b'{"table":{"commitLogMaxOffset":"55","brokerVersionDesc":"V5_3_3"}}'
    sent = [talk.ask(command(28, 1)), talk.answer(command(0, 1, 1, body=table)), talk.ask(command(28, 2))]
    sent.append(talk.answer(command(1, 2, 1, remark="busy")))
    ((stem, runtime),) = records([register(), *sent])
    assert (stem, runtime["ts"], runtime["commit_log_max_offset"]) == ("broker_runtime", MS + 2, 55)


def test_states_of_slaves_that_somebody_asked_for():
    talk = Talk()
    body = (
        b'{"haConnectionInfo":[{"addr":"127.0.0.1:33310","diff":471,"inSync":true,"slaveAckOffset":114072,'
        b'"transferFromWhere":114072,"transferredByteInSecond":6637}],"inSyncSlaveNums":1,"master":true,'
        b'"masterCommitLogMaxOffset":114543}'
    )
    sent = [talk.ask(command(907, 1)), talk.answer(command(0, 1, 1, body=body)), talk.ask(command(907, 2))]
    sent.append(talk.answer(command(3, 2, 1, remark=" request type 907 not supported")))
    ((stem, status),) = records([register(), *sent])
    assert (stem, status["master_end"], status["broker_name"]) == ("ha_status", 114_543, "b")
    assert status["slaves"] == [("127.0.0.1:33310", 114_072, 471, True, 6637, 114_072)]


def test_a_body_without_which_a_record_means_nothing():
    talk, whole = Talk(), heartbeat(ID, 2)
    cut, pull = talk.ask(whole, kept=len(whole) - 5), talk.ask(command(11, 1, ext=PULL))
    found = records([register(), cut, pull])
    assert found[0] == ("Cut", "")
    assert found[1][1]["client_id"] == ID, "its first bytes still say who it is"


def test_messages_of_a_body():
    body = message(7, 1000, MS) + message(9, 1200, MS)
    first = {"first_queue_offset": 7, "first_commitlog_offset": 1000, "first_born_ts": MS}
    last = {"msg_count": 2, "last_queue_offset": 9, "last_commitlog_offset": 1200, "last_store_size": 100}
    assert messages_of(body, whole=True) == first | last
    assert messages_of(body[:-1], whole=False) == first
    assert messages_of(b"", whole=True) == {"msg_count": 0}
    assert messages_of(b"", whole=False) == {}
    assert messages_of(body[:40], whole=False) == {}
    assert messages_of(bytes(200), whole=True) == {}


def test_one_side_alone_with_a_gap():
    talk = Talk()
    first = talk.ask(heartbeat(ID, 1))
    talk.ask(b"lost")
    found = records([register(), first, talk.ask(command(11, 2, ext=PULL))])
    named = [(stem, record["client_id"], record["broker_name"]) for stem, record in found]
    assert named == [("heartbeats", ID, "b"), ("pull_log", ID, "b")]


@pytest.mark.parametrize(
    "table", [b'{"table":{{"a":1}:"5"}}', b'{"table":{0:"5"}}', b'{"table":{"a":5}}', b'{"table":[]}']
)
def test_figures_that_are_none(table):
    talk = Talk()
    with pytest.raises(DecodeError, match="wrong_type"):
        records([register(), talk.ask(command(28, 1)), talk.answer(command(0, 1, 1, body=table))])


def test_a_header_whose_numbers_are_no_ints_is_none():
    talk = Talk()
    calls = Calls([talk.ask(command(11, 2**31)), talk.ask(command(2**40, 1)), talk.ask(command(11, 2))])
    assert [call.request.opaque for call in calls] == [2]
    assert calls.cut == 2


def test_an_address_has_the_id_that_its_broker_states_then():
    """A controller makes a replica the master; name servers may list another id at any time."""
    talk, names = Talk(), Talk("10.0.0.9:50000", NAMESRV)
    segments = [talk.ask(heartbeat(ID, 9))]
    for opaque, broker_id in enumerate((2, 0), 1):
        names.now_us = talk.now_us
        segments.append(names.ask(registration("b", broker_id, BROKER, opaque)))
        talk.now_us = names.now_us
        segments.append(talk.ask(command(11, opaque, ext=PULL)))
    assert [made["broker_id"] for kind, made in records(segments) if kind == "pull_log"] == [2, 0]
