"""POP on the wire: real packets of RocketMQ 5.3.3, and requests that they lack."""

from __future__ import annotations

import json
import lzma
from base64 import b64encode
from collections import Counter
from io import BytesIO
from pathlib import Path

import pytest

from decode.capture.test_lines import record, records, register
from decode.capture.wire import MS, Talk, command
from mqreplay.decode.capture.messages import pop_messages_of
from mqreplay.decode.capture.packets import segments

CAPTURE = Path(__file__).parents[2] / "data" / "pop-5.3.3.pcap.xz"


@pytest.fixture(scope="module")
def captured():
    return records(list(segments(BytesIO(lzma.decompress(CAPTURE.read_bytes())))))


def rows(captured, stem):
    return [row for kind, row in captured if kind == stem]


def test_a_capture_has_the_messages_that_pop_handed_out(captured):
    pops = rows(captured, "pop_log")
    handed = [(pop, receipt) for pop in pops for receipt in pop["receipts"] or ()]
    assert {pop["consumer_group"] for pop in pops} == {"r-pop", "r-share", "r-never", "g-simple", "g-fifo"}
    assert {pop["is_order"] for pop in pops if pop["consumer_group"] == "g-fifo"} == {True}
    assert {pop["revive_queue_id"] for pop, _ in handed if pop["is_order"]} == {999}
    # Every message is in its body too: with its id, and when the broker stored it.
    assert all(receipt[4] is not None and receipt[6] is not None for _, receipt in handed)
    revived = [(pop["consumer_group"], receipt[5]) for pop, receipt in handed if receipt[0] != "0"]
    assert Counter(revived).keys() <= {("r-never", 1), ("r-pop", 1), ("r-share", 1), ("g-simple", 1)}
    assert revived


def test_acknowledgements_belong_to_messages_that_were_handed_out(captured):
    handed = {
        (pop["consumer_group"], pop["topic"], receipt[1], receipt[3], pop["pop_ts"])
        for pop in rows(captured, "pop_log")
        for receipt in pop["receipts"] or ()
    }
    acked = [tuple(receipt[:5]) for ack in rows(captured, "pop_acks") for receipt in ack["receipts"]]
    assert len(acked) > 500
    assert len([one for one in acked if one in handed]) / len(acked) > 0.95
    assert "r-never" not in {one[0] for one in acked}


def test_a_capture_has_the_assignments_of_the_broker(captured):
    passed = {
        (row["consumer_group"], row["mode"], tuple(queue for queue in row["queues"]))
        for row in rows(captured, "pop_assignments")
        if row["topic"] == "t-rem" and row["queues"] is not None
    }
    assert ("r-pop", "POP", (("ba", -1),)) in passed
    assert {queues for group, _, queues in passed if group == "r-share"} != {(("ba", -1),)}


EXTRA = f"5 {MS} 60000 3 0 b 2 6"


def test_a_changed_invisible_time_and_its_new_receipt():
    talk, ext = Talk(), {"consumerGroup": "g", "topic": "t", "queueId": "2", "extraInfo": EXTRA, "offset": "6"}
    asked = talk.ask(command(200053, 1, ext=ext | {"invisibleTime": "10000"}))
    answer = talk.answer(command(0, 1, 1, {"popTime": str(MS + 7), "invisibleTime": "10000", "reviveQid": "3"}))
    change = record([register(), asked, answer], "pop_acks")
    assert (change["kind"], change["pop_ts"], change["answer_invisible_time_ms"]) == (
        "CHANGE_INVISIBLE_TIME",
        MS + 7,
        10000,
    )
    assert change["receipts"] == [("g", "t", 2, 6, MS, 60000, 3)]


def test_a_batch_acknowledges_the_messages_of_a_bit_set():
    bits = b64encode(bytes([0b101, 0b1])).decode()
    ack = {"b": bits, "c": "g", "it": 60000, "pt": MS, "q": 0, "r": "1", "rq": 3, "so": 40, "t": "t"}
    talk = Talk()
    asked = talk.ask(command(200151, 1, body=json.dumps({"acks": [ack], "brokerName": "b"}).encode()))
    batch = record([register(), asked, talk.answer(command(0, 1, 1))], "pop_acks")
    assert [receipt[1:4] for receipt in batch["receipts"]] == [("%RETRY%g_t", 0, n) for n in (40, 42, 48)]


def test_a_cut_body_gives_its_whole_messages_only():
    assert pop_messages_of(b"") == []
    assert pop_messages_of(bytes(200)) == []
