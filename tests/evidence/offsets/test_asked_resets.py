"""Requests to reset offsets, of which only who asked is known."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.evidence.offsets.break_causes import asked_resets, wide_resets, with_asked_resets
from mqreplay.evidence.offsets.offset_causes import pushed_resets
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
PLACE = {"consumer_group": "g", "topic": "t", "broker_name": "b"}
ASKED = PLACE | {"request_code": 222, "client_addr": "h:1", "ext": {"timestamp": "5000", "topic": "t"}}
SENT = PLACE | {"request_code": 220, "client_id": "c", "ext": {"timestamp": "5000"}}
OFFSETS = [("t", "b", 1, 60)]
REWIND = PLACE | {"queue_id": 1, "broker_id": 0, "kind": "rewind", "from_ts": at(100), "to_ts": at(110)}


def requests(*differing: Row) -> pl.DataFrame:
    return rows("silver.server_request", {"ts": at(90)}, list(differing))


def test_requests_of_a_broker_and_those_that_it_sent_without_offsets() -> None:
    changed = {"request_code": 40, "client_id": "c", "ext": {"consumerGroup": "g"}}
    found = asked_resets(requests(ASKED, SENT, SENT | {"reset_offsets": OFFSETS}, changed, ASKED | {"error": "no"}))
    assert found.select("client_addr", "is_sent", "error", "to_ms").rows() == [
        ("h:1", False, None, 5000),
        (None, True, None, 5000),
        ("h:1", False, "no", 5000),
    ]
    done = asked_resets(requests(ASKED | {"reset_offsets": OFFSETS, "ext": {}}))
    assert done.select("is_sent", "to_ms").rows() == [(True, None)]


@pytest.mark.parametrize(
    ("request_", "break_", "cause"),
    [
        (ASKED, {}, "reset"),
        (ASKED, {"cause": "client_commit"}, "reset"),
        (ASKED, {"cause": "corrected"}, "corrected"),
        (ASKED, {"kind": "vanished"}, "unknown"),
        (ASKED, {"broker_id": 1}, "unknown"),
        (ASKED, {"broker_name": "other"}, "unknown"),
        (ASKED | {"ts": at(30)}, {}, "unknown"),
        (ASKED | {"ts": at(111)}, {}, "unknown"),
        (ASKED | {"error": "no member of the group was online"}, {}, "unknown"),
        # To the end of the queues: no offset goes back.
        (ASKED | {"ext": {"timestamp": "-1"}}, {}, "unknown"),
        # Its offsets are known, and did not lead there.
        (ASKED | {"reset_offsets": [("t", "b", 1, 9999)]}, {}, "unknown"),
    ],
)
def test_an_offset_that_goes_back_after_a_request_was_reset(request_: Row, break_: Row, cause: str) -> None:
    breaks = rows("gold.offset_continuity", REWIND | {"cause": "unknown"}, [break_])
    sent = requests(request_)
    assert with_asked_resets(breaks, asked_resets(sent), pushed_resets(sent), 60)["cause"].to_list() == [cause]


def test_duplicates_may_follow_from_a_request_that_was_accepted() -> None:
    found = wide_resets(asked_resets(requests(ASKED, ASKED | {"error": "no"})))
    assert found.schema.names() == pushed_resets(requests(ASKED)).schema.names()
    assert found.select("consumer_group", "topic", "offset").rows() == [("g", "t", None)]
