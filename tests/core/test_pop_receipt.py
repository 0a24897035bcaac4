"""Receipts of POP: what a broker gives out, a client returns and the broker reads is one and the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core.java import INT_MAX, LONG_MAX
from mqreplay.core.pop_receipt import (
    ReceiptHandle,
    build_extra_info,
    decode_receipt_handle,
    encode_receipt_handle,
    parse_extra_info,
    parse_msg_offset_info,
    parse_start_offset_info,
    popped_receipts,
    real_topic,
    topic_type,
)
from mqreplay.words.errors import IllegalArgument, NumberFormat

LONGS = st.integers(0, LONG_MAX)
INTS = st.integers(0, INT_MAX)
RECEIPTS = st.builds(
    ReceiptHandle, LONGS, LONGS, LONGS, INTS, st.sampled_from("012"), st.text("ab-_", min_size=1), INTS, LONGS, LONGS
)


@given(RECEIPTS)
def test_a_handle_of_nine_fields_keeps_everything(receipt: ReceiptHandle) -> None:
    assert decode_receipt_handle(encode_receipt_handle(receipt)) == receipt


@given(RECEIPTS)
def test_a_handle_of_eight_or_seven_fields_loses_only_what_it_lacks(receipt: ReceiptHandle) -> None:
    remoting = receipt._replace(commit_log_offset=-1)
    assert parse_extra_info(build_extra_info(remoting)) == remoting == decode_receipt_handle(build_extra_info(receipt))
    assert parse_extra_info(build_extra_info(remoting._replace(offset=None))) == remoting._replace(offset=None)


@pytest.mark.parametrize("topic", ["T", "%RETRY%g_T", "%RETRY%g+T"])
def test_the_mark_of_a_topic_leads_back_to_it(topic: str) -> None:
    assert real_topic(topic_type(topic), "T", "g") == topic


@pytest.mark.parametrize("text", ["", "1 2 3 4 0 b", "1 2 3 4 0 b 5"])
def test_a_handle_that_is_too_short_is_refused(text: str) -> None:
    with pytest.raises(IllegalArgument, match="dataList size"):
        decode_receipt_handle(text)


def test_a_handle_with_text_for_a_number_is_refused() -> None:
    with pytest.raises(NumberFormat):
        parse_extra_info("x 2 3 4 0 b 5")


def test_an_answer_gives_one_receipt_a_message_with_the_start_of_its_queue() -> None:
    receipts = popped_receipts("0 0 5;0 1 7;2 0 1", "0 0 5,6;2 0 1", 1000, 300, 3, "b")
    assert [(r.start_offset, r.topic_type, r.queue_id, r.offset) for r in receipts] == [
        (5, "0", 0, 5),
        (5, "0", 0, 6),
        (1, "2", 0, 1),
    ]
    assert {r.next_visible_time for r in receipts} == {1300}


def test_an_empty_answer_has_no_receipts_and_a_queue_twice_is_refused() -> None:
    assert parse_start_offset_info("") is None
    assert popped_receipts("", None, 1000, 300, 3, "b") == []
    with pytest.raises(IllegalArgument, match="duplicate"):
        parse_msg_offset_info("0 0 5;0 0 6")
