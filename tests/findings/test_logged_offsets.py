"""Findings of resets and rewinds that only logs show: what is known of them, and how sure they are."""

from __future__ import annotations

from typing import Any

import pytest

from mqreplay.evidence.offsets.break_causes import asked_resets
from mqreplay.evidence.offsets.offset_causes import offset_resets
from mqreplay.findings.offset_resets import reset_findings
from mqreplay.findings.offsets import offset_findings
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
PLACE = {"consumer_group": "g", "topic": "t", "broker_name": "b"}
ASKED = PLACE | {"request_code": 222, "client_addr": "h:1", "ext": {"timestamp": "1796293817000"}}
SENT = PLACE | {"request_code": 220, "client_id": "c", "ext": {"timestamp": "1796293817000"}}
OFFSETS = [("t", "b", 1, 60)]
TO = "2026-12-03 10:30:17 UTC"
BREAK = PLACE | {"queue_id": 1, "broker_id": 0, "kind": "rewind", "cause": "client_commit", "source": "broker_log"}
FEW = 20


def resets(*requests: Row, breaks: list[Row] = []) -> list[Row]:  # noqa: B006
    sent = rows("silver.server_request", {"ts": at(90)}, list(requests))
    continuity = rows("gold.offset_continuity", {}, breaks)
    none = rows("silver.pull", {}, [])
    found = reset_findings(offset_resets(sent, none), continuity, "c", 30, 60, asked_resets(sent))
    return found.sort("from_ts").to_dicts()


@pytest.mark.parametrize(
    ("requests", "confidence", "text"),
    [
        ([ASKED, SENT], 0.9, f"offsets were reset to {TO}, started by h:1; to which offsets is not recorded."),
        ([SENT], 0.9, f"offsets were reset to {TO}; to which offsets is not recorded."),
        (
            [ASKED],
            0.7,
            f"a reset of the offsets to {TO} was started by h:1;"
            " whether it was carried out, and to which offsets, is not recorded.",
        ),
        (
            [ASKED | {"error": "no member of the group was online"}],
            0.9,
            f"a reset of the offsets to {TO} was started by h:1, and refused: no member of the group was online.",
        ),
        (
            [ASKED | {"ext": {"timestamp": "-1"}}, SENT, ASKED | {"client_addr": "h:2", "broker_name": "b2"}],
            0.9,
            f"offsets were reset to the ends of the queues and {TO}, started by h:1 and h:2;"
            " to which offsets is not recorded.",
        ),
        ([ASKED | {"reset_offsets": OFFSETS}], 1.0, "1 queue reset, started by h:1."),
        ([ASKED, SENT | {"reset_offsets": OFFSETS}], 1.0, "1 queue reset, started by h:1."),
    ],
)
def test_a_reset_of_which_only_the_request_is_known(requests: list[Row], confidence: float, text: str) -> None:
    (found,) = resets(*requests)
    assert found["summary"] == f"Group g on t: {text}"
    assert (found["severity"], found["confidence"]) == ("info", confidence)
    assert found["evidence_count"] == len(requests)


def test_a_request_is_one_finding_with_the_offsets_that_went_back() -> None:
    shown = BREAK | {"cause": "reset", "source": "copies", "previous_offset": 130, "new_offset": 60, "size": 70}
    shown |= {"redelivered_max": 70, "from_ts": at(95), "to_ts": at(105)}
    (found,) = resets(ASKED, SENT, breaks=[shown])
    assert found["severity"] == "warning"
    assert "1 queue reset, back by up to 70 messages (b/1: from 130 to 60), started by h:1" in found["summary"]
    assert "concluded" not in found["summary"]


def test_requests_of_two_groups_or_far_apart_are_several_findings() -> None:
    found = resets(ASKED, ASKED | {"consumer_group": "g2"}, ASKED | {"ts": at(121)})
    places = {(each["consumer_group"], each["from_ts"]) for each in found}
    assert places == {("g", at(90)), ("g", at(121)), ("g2", at(90))}


def rewinds(*breaks: Row, owners: list[Row] = []) -> list[Row]:  # noqa: B006
    moved = {"from_ts": at(100), "to_ts": at(100), "previous_offset": 100, "new_offset": 99}
    moved_rows = rows("gold.offset_continuity", BREAK | moved | {"size": 1, "redelivered_max": 1}, list(breaks))
    none = offset_resets(rows("silver.server_request", {}, []), rows("silver.pull", {}, []))
    held = rows("gold.queue_owner", PLACE | {"queue_id": 1}, owners)
    return offset_findings(moved_rows, held, "c", 120, 45, none, FEW).to_dicts()


ALONE = [{"client_id": "a", "from_ts": at(0), "to_ts": at(500)}]
HANDED_OVER = [
    {"client_id": "a", "from_ts": at(0), "to_ts": at(98)},
    {"client_id": "b", "from_ts": at(97), "to_ts": at(500)},
]
RETAKEN = [
    {"client_id": "a", "from_ts": at(0), "to_ts": at(90)},
    {"client_id": "a", "from_ts": at(95), "to_ts": at(500)},
]
BIG = {"size": 67145, "redelivered_max": 67145}


@pytest.mark.parametrize(
    ("break_", "owners", "severity", "confidence", "cause"),
    [
        ({}, [], "info", 0.8, "a commit by a client"),
        (BIG, [], "warning", 0.8, "a commit by a client"),
        ({}, ALONE, "warning", 1.0, "a commit by a client"),
        ({"source": "commits"}, ALONE, "warning", 0.9, "a commit by a client"),
        ({}, HANDED_OVER, "info", 1.0, "commits of the clients between which queues changed hands"),
        ({"source": "commits"}, RETAKEN, "info", 0.9, "commits of the clients between which queues changed hands"),
        # The same client had committed more than it loses by giving a queue up.
        (BIG | {"source": "commits"}, RETAKEN, "warning", 0.9, "a commit by a client"),
        # By copies, owners decide only between two clients, as ever.
        ({"source": "copies"}, RETAKEN, "warning", 1.0, "a commit by a client"),
        ({"source": None}, [], "warning", 1.0, "a commit by a client"),
    ],
)
def test_how_sure_and_how_bad_a_rewind_by_commits_is(
    break_: Row, owners: list[Row], severity: str, confidence: float, cause: str
) -> None:
    (found,) = rewinds(break_, owners=owners)
    assert (found["severity"], found["confidence"]) == (severity, confidence)
    assert f", by {cause}" in found["summary"]
    assert ("Whether the queue changed hands then is not recorded." in found["summary"]) == (confidence == 0.8)


def test_the_addresses_that_sent_lower_offsets_are_named() -> None:
    queues = [{"queue_id": number, "client_addr": f"h:{number}"} for number in range(5)]
    (found,) = rewinds(*queues)
    assert ", sent from h:0 and h:1 and h:2 and 2 more; at most 5 messages delivered again." in found["summary"]


def test_an_offset_past_the_end_that_only_its_correction_shows() -> None:
    corrected = {"cause": "corrected", "previous_offset": 999_999, "new_offset": 60, "redelivered_max": 0}
    (found,) = rewinds(corrected)
    assert found["kind"] == "offset_beyond_max"
    assert found["summary"] == "Group g on t: the offset of 1 queue was set to 999999, past the end of the queue."
