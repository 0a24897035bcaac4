"""Records of sends: short names, properties, answers, and clients that no heartbeat names."""

from __future__ import annotations

import struct

import pytest

from decode.capture.test_lines import ID, record, records, register
from decode.capture.wire import BROKER, CLIENT, MS, Talk, command, heartbeat
from mqreplay.decode.capture.sends import FULL_NAMES
from mqreplay.decode.kinds import KINDS
from mqreplay.words.errors import DecodeError

# A send of the sample, and its answer.
SENT = {"a": "rig-producer-group", "b": "order-topic", "c": "TBW102", "d": "4", "e": "1", "f": "0", "g": str(MS)}
SENT |= {"h": "0", "j": "0", "k": "false", "m": "false", "n": "broker-a"}
PROPERTIES = "KEYS\x01order-topic-49\x02UNIQ_KEY\x017F0000011C714E0E2F2A67922539010A\x02WAIT\x01true\x02TAGS\x01TagB"
STORED = {
    "queueId": "1",
    "TRACE_ON": "true",
    "MSG_REGION": "DefaultRegion",
    "msgId": "7F00000100002A9F000000000000B411",
}
STORED |= {"queueOffset": "12"}


def sent(code=310, flag=0, properties=PROPERTIES, **changed):
    """The record of a send, with other fields of its header."""
    talk = Talk()
    asked = talk.ask(command(code, 1, flag, SENT | {"i": properties} | changed, b"x" * 128))
    return record([register(), asked, talk.ask(heartbeat(ID, 2))], "sends")


def test_a_send_and_its_answer():
    talk = Talk()
    asked = talk.ask(command(310, 1, ext=SENT | {"i": PROPERTIES}, body=b"x" * 128))
    answered = talk.answer(command(0, 1, 1, STORED))
    found = record([register(), asked, answered, talk.ask(heartbeat(ID, 2))], "sends")
    assert found == dict.fromkeys(found) | {
        **{
            "ts": MS + 1,
            "response_ts": MS + 2,
            "mode": "sync",
            "client_id": ID,
            "client_addr": CLIENT,
            "topic": "order-topic",
        },
        **{"producer_group": "rig-producer-group", "queue_id": 1, "broker_name": "b", "broker_addr": BROKER},
        **{
            "broker_id": 0,
            "is_batch": False,
            "is_transaction": False,
            "is_delayed": False,
            "born_ts": MS,
            "sys_flag": 0,
        },
        **{"reconsume_times": 0, "msg_id": "7F0000011C714E0E2F2A67922539010A", "keys": "order-topic-49", "size": 128},
        **{"response_code": 0, "response_name": "SUCCESS", "answer_queue_id": 1, "queue_offset": 12},
        **{"offset_msg_id": "7F00000100002A9F000000000000B411", "tags": "TagB"},
    }


def test_the_long_names_of_an_old_client_are_the_same():
    talk = Talk()
    long = {FULL_NAMES.get(name, name): value for name, value in (SENT | {"i": PROPERTIES}).items()}
    asked = talk.ask(command(10, 1, ext=long, body=b"x" * 128))
    assert record([register(), asked, talk.ask(heartbeat(ID, 2))], "sends") == sent()


def test_kinds_of_messages():
    assert sent(320, properties="WAIT\x01true")["is_batch"]
    assert sent(m="true")["is_batch"]
    assert sent(properties="TRAN_MSG\x01true\x02")["is_transaction"]
    for name in ("DELAY", "TIMER_DELIVER_MS"):
        assert sent(properties=f"{name}\x013")["is_delayed"]
    assert (sent(flag=2)["mode"], sent(e="-1")["queue_id"]) == ("oneway", None)


def batched(*properties: str) -> bytes:
    """The body of a batch: MessageDecoder#encodeMessage for each message."""
    parts = [
        struct.pack(">iiiii", 25 + len(text), 0, 0, 0, 3) + b"abc" + struct.pack(">h", len(text)) + text.encode()
        for text in properties
    ]
    return b"".join(parts)


def batch(body: bytes):
    """The messages of a batch in the record of its request."""
    talk = Talk()
    asked = talk.ask(command(320, 1, 0, SENT | {"i": "WAIT\x01true", "m": "true"}, body))
    return record([register(), asked, talk.ask(heartbeat(ID, 2))], "sends")


def test_the_messages_of_a_batch() -> None:
    found = batch(batched("KEYS\x01k0\x02UNIQ_KEY\x017F00", "UNIQ_KEY\x017F01\x02TAGS\x01TagA\x02", ""))
    assert found["batch"] == [("7F00", "k0", ""), ("7F01", None, "TagA"), (None, None, "")]
    assert (found["is_batch"], found["tags"], found["msg_id"]) == (True, None, None)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        batched("WAIT\x01true")[:-1],
        batched("WAIT\x01true")[:15],
        batched("") + b"x" * 30,
        struct.pack(">iiiii", 24, 0, 0, 0, -3) + b"x" * 4,
        struct.pack(">iiiiih", 22, 0, 0, 0, 0, -2),
    ],
)
def test_a_body_that_is_no_batch_has_no_messages(body: bytes) -> None:
    assert batch(body)["batch"] is None


def test_a_batch_of_a_record_is_a_list_of_objects() -> None:
    line = '{"ts":1795228831033,"topic":"t","broker_name":"b","batch":%s}'
    found = KINDS["sends"].decode((line % '[{"msg_id":"7F"},{}]').encode())
    assert found["batch"] == [("7F", None, None), (None, None, None)]
    for wrong in ('{"msg_id":"7F"}', '["7F"]', '[{"tags":1}]'):
        with pytest.raises(DecodeError) as error:
            KINDS["sends"].decode((line % wrong).encode())
        assert error.value.code == "wrong_type"


def test_no_tags_are_known_and_unlike_unknown_tags() -> None:
    assert (sent(properties="WAIT\x01true")["tags"], sent()["tags"]) == ("", "TagB")
    line = b'{"ts":1795228831033,"topic":"t","broker_name":"b"}'
    assert KINDS["sends"].decode(line)["tags"] is None


def test_a_proxy_has_no_client_and_an_unknown_broker_no_record():
    talk = Talk()
    asked = talk.ask(command(310, 1, ext=SENT))
    assert record([register(), asked], "sends")["client_id"] is None
    ((kind, why),) = records([Talk().ask(command(310, 1, ext=SENT))])
    assert (kind, why) == ("Unnamed", f"the broker at {BROKER}: no route or registration has it")


def test_a_number_that_is_none_is_refused_by_the_kind():
    talk = Talk()
    with pytest.raises(DecodeError) as error:
        records([register(), talk.ask(command(310, 1, ext=SENT | {"g": "soon"}))])
    assert error.value.code == "wrong_type"
    with pytest.raises(DecodeError):
        KINDS["sends"].decode(b'{"ts":1795228831033,"topic":"t","broker_name":"b","mode":"batch"}')
