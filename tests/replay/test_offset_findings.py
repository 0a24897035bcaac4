"""What is told of breaks in offsets and of resets: one finding for one cause, and how loud it is."""

from __future__ import annotations

import pytest

from mqreplay.replay.findings.offsets import offset_findings, reset_findings
from mqreplay.replay.offset_resets import offset_resets
from silver_moments import at

GAP_S, RESET_GAP_S, REACH_S, HANDOVER_S = 120, 30, 60, 45
BREAK = {"topic": "T", "broker_name": "b", "broker_id": 0, "queue_id": 0, "kind": "rewind", "cause": "client_commit"}


def broke(group: str, seconds: float, size: int, again: int | None = 0, **differs: object) -> dict[str, object]:
    row = {"consumer_group": group, "from_ts": at(seconds - 5), "to_ts": at(seconds), "size": size}
    return BREAK | row | {"new_offset": 100, "redelivered_max": again} | differs


BREAKS = [
    broke("went back", 10, 7, 7),
    broke("went back", 10, 9, 9, queue_id=1),
    # The slave's copy of it tells the same, later, and knows no cause.
    broke("went back", 20, 9, 9, queue_id=1, broker_id=1, cause="unknown"),
    broke("nothing again", 10, 7, 0),
    # Past the end, and put back to the end by the next pull: one finding, as long as it was there.
    broke("past the end", 10, 900, kind="beyond_max", new_offset=999, queue_max_offset=99, cause="set_from_outside"),
    broke("past the end", 40, 900, cause="corrected", new_offset=99, queue_max_offset=104),
    # A slave of 5.x copies its master's offsets once a minute, and knows the queue's end of then.
    broke("shown late", 50, 900, kind="beyond_max", new_offset=999, queue_max_offset=99, cause="set_from_outside"),
    broke("shown late", 70, 900, kind="beyond_max", new_offset=999, queue_max_offset=120, broker_id=1, from_ts=at(1)),
    broke("shown late", 60, 900, cause="corrected", new_offset=99, queue_max_offset=99),
    broke("shown late", 130, 900, cause="corrected", new_offset=130, queue_max_offset=130, broker_id=1),
    broke("handed over", 100, 7, 7),
    broke("handed over and back", 100, 7, 7),
    broke("handed over and back", 100, 8, 8, queue_id=1, cause="set_from_outside"),
    broke("handed over long before", 100, 7, 7),
    broke("held alone", 100, 7, 7),
    broke("within the gap", 10, 7, 7),
    broke("within the gap", 135 - 5, 7, 7),
    broke("past the gap", 10, 7, 7),
    broke("past the gap", 130.001, 7, 7),
    broke("reset back", 108, 7, 7, cause="reset"),
    broke("reset ahead", 108, 80, kind="jump", cause="reset"),
    broke("reset ahead", 109, 90, kind="jump", cause="reset", queue_id=1),
    broke("reset, shown late", 161, 7, 7, cause="reset"),
    # Not told as findings of their own: an entry that is gone, an offset below the queue's beginning.
    broke("gone", 10, 0, kind="vanished", new_offset=None),
    broke("cleaned", 10, 0, kind="below_min"),
]


def held(group: str, client: str, since: float, until: float, **differs: object) -> dict[str, object]:
    row = {"consumer_group": group, "client_id": client, "from_ts": at(since), "to_ts": at(until)}
    return row | {"topic": "T", "broker_name": "b", "queue_id": 0, "source": "assignments"} | differs


OWNERS = [
    *[held(g, "old", 0, 96) for g in ("handed over", "handed over and back", "held alone")],
    *[held(g, "new", 90, 500) for g in ("handed over", "handed over and back")],
    held("held alone", "old", 96, 500),
    held("held alone", "other", 0, 500, queue_id=1),
    held("handed over long before", "old", 0, 49),
    held("handed over long before", "new", 50, 500),
]


def pushed(group: str, seconds: float, client: str = "c1") -> dict[str, object]:
    row = {"consumer_group": group, "ts": at(seconds), "client_id": client, "record_id": f"{group}{seconds}{client}"}
    return row | {"request_code": 220, "reset_offsets": [("T", "b", q, 100) for q in (0, 1)]}


PUSHES = [
    *[pushed("reset back", 100, client) for client in ("c1", "c2")],
    pushed("reset ahead", 100),
    pushed("reset to where it was", 100),
    pushed("reset, shown late", 100),
    *[pushed("reset again and again", s) for s in (100, 130, 160.001)],
]


@pytest.fixture(scope="module")
def told(rows):
    breaks = rows("gold.offset_continuity", {}, BREAKS)
    resets = offset_resets(rows("silver.server_request", {}, PUSHES), rows("silver.pull", {}, []))
    moved = offset_findings(breaks, rows("gold.queue_owner", {}, OWNERS), GAP_S, HANDOVER_S)
    found = moved.unionByName(reset_findings(resets, breaks, RESET_GAP_S, REACH_S))
    groups: dict[str, list] = {}
    for row in found.orderBy("from_ts", "kind").collect():
        groups.setdefault(row.consumer_group, []).append(row)
    return groups


def test_queues_of_one_cause_are_one_finding_of_the_master(told):
    (row,) = told["went back"]
    assert (row.kind, row.severity, row.broker_name, row.queue_id) == ("offset_rewind", "warning", "b", None)
    assert "the offset of 2 queues went back by up to 9 messages, by a commit by a client" in row.summary
    assert "at most 16 messages" in row.summary, "the slave's copy delivers nothing"
    assert len(row.evidence) == 3


def test_a_rewind_that_delivers_nothing_again_is_no_alarm(told):
    assert [(row.kind, row.severity) for row in told["nothing again"]] == [("offset_rewind", "info")]


def test_an_offset_past_the_end_and_its_correction_are_one(told):
    (row,) = told["past the end"]
    assert (row.kind, row.severity) == ("offset_beyond_max", "warning")
    assert (row.from_ts, row.to_ts) == (at(5).replace(tzinfo=None), at(40).replace(tzinfo=None))
    assert "999, past the end of the queue at 99, by a change from outside" in row.summary


def test_what_a_slave_shows_later_moves_nothing(told):
    (row,) = told["shown late"]
    assert (row.from_ts, row.to_ts) == (at(45).replace(tzinfo=None), at(60).replace(tzinfo=None))
    assert "of 1 queue was set to 999, past the end of the queue at 99, by a change from outside" in row.summary
    assert len(row.evidence) == 4


def test_commits_of_two_clients_between_which_a_queue_goes_are_no_alarm(told):
    (row,) = told["handed over"]
    assert row.severity == "info"
    assert "by commits of the clients between which queues changed hands; at most 7 messages" in row.summary
    (row,) = told["handed over and back"]
    assert row.severity == "warning", "somebody else set it, too"
    assert [told[group][0].severity for group in ("held alone", "handed over long before")] == ["warning"] * 2
    assert all("by a commit by a client;" in told[g][0].summary for g in ("held alone", "handed over long before"))


def test_what_is_further_apart_is_told_apart(told):
    assert len(told["within the gap"]) == 1
    assert len(told["past the gap"]) == 2


def test_a_reset_says_which_way_it_went(told):
    back, rewind = told["reset back"]
    assert (back.kind, back.severity, rewind.kind) == ("offset_reset", "warning", "offset_rewind")
    assert "2 queues reset, back by up to 7 messages" in back.summary
    assert "by an offset reset" in rewind.summary
    assert {e.key for e in back.evidence} == {"record_id=reset back100c1", "record_id=reset back100c2"}
    ahead, jump = told["reset ahead"]
    assert "ahead by up to 90 messages" in ahead.summary
    assert "moved ahead by up to 90 messages" in jump.summary


def test_a_reset_that_moved_nothing_is_told_but_alarms_nobody(told):
    assert [(row.kind, row.severity) for row in told["reset to where it was"]] == [("offset_reset", "info")]
    assert [(row.kind, row.severity) for row in told["reset, shown late"]] == [
        ("offset_reset", "info"),
        ("offset_rewind", "warning"),
    ]


def test_pushes_within_half_a_minute_are_one_reset(told):
    assert [(row.to_ts - row.from_ts).total_seconds() for row in told["reset again and again"]] == [30, 0]


def test_other_breaks_are_not_told(told):
    assert told.keys().isdisjoint({"gone", "cleaned"})
