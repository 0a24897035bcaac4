"""Findings of breaks in offsets and of resets: one finding for one cause, and its severity."""

from __future__ import annotations

import polars as pl
import pytest

from evidence_keys import evidence_of
from findings.offset_breaks import (
    BREAKS,
    GAP_S,
    HANDOVER_S,
    NO_RESETS,
    OWNERS,
    PUSHES,
    REACH_S,
    RESET_GAP_S,
    RESETS,
    Row,
    breaks,
    broke,
    of_resets,
    owned,
    pushed,
)
from mqreplay.findings.offset_resets import reset_findings
from mqreplay.findings.offsets import offset_findings
from mqreplay.findings.shape import EVIDENCE_ROWS, SCHEMA
from silver_moments import at


@pytest.fixture(scope="module")
def found() -> dict[str, list[Row]]:
    sent = pl.DataFrame(PUSHES, RESETS)
    moved = offset_findings(breaks(BREAKS), owned(OWNERS), "c", GAP_S, HANDOVER_S, sent)
    resets = reset_findings(sent, breaks(BREAKS), "c", RESET_GAP_S, REACH_S)
    groups: dict[str, list[Row]] = {}
    for row in pl.concat([moved, resets]).sort("from_ts", "kind").iter_rows(named=True):
        groups.setdefault(row["consumer_group"], []).append(row)
    return groups


def test_queues_of_one_cause_are_one_finding_of_the_master(found):
    (row,) = found["went back"]
    assert (row["kind"], row["severity"], row["broker_name"], row["queue_id"]) == (
        "offset_rewind",
        "warning",
        "b",
        None,
    )
    where = "(b/1: from 109 to 100)"
    assert f"the offset of 2 queues went back by up to 9 messages {where}, by a commit by a client" in row["summary"]
    assert "at most 16 messages" in row["summary"], "the slave's copy delivers nothing"
    assert row["evidence"][0] == evidence_of(
        "gold.offset_continuity",
        broker_name="b",
        broker_id=0,
        topic="T",
        consumer_group="went back",
        queue_id=0,
        kind="rewind",
        to_ts=at(10),
    )
    assert len(row["evidence"]) == 3


def test_a_rewind_that_delivers_nothing_again_is_no_alarm(found):
    assert [(row["kind"], row["severity"]) for row in found["nothing again"]] == [("offset_rewind", "info")]
    (row,) = found["more than a bigint"]
    assert row["summary"].endswith("by a commit by a client."), "how many is not known"


def test_a_break_that_only_a_slave_shows(found):
    (row,) = found["a slave alone"]
    assert (row["severity"], row["from_ts"], row["to_ts"]) == ("info", at(5), at(10))
    assert "by an unknown cause: no commits or resets were recorded." in row["summary"]


def test_several_causes_are_all_named(found):
    reset, row = found["two causes"]
    assert reset["kind"] == "offset_reset"
    assert "by a commit by a client and a change from outside: no client committed it; at most" in row["summary"]


def test_an_offset_past_the_end_and_its_correction_are_one(found):
    (row,) = found["past the end"]
    assert (row["kind"], row["severity"]) == ("offset_beyond_max", "warning")
    assert (row["from_ts"], row["to_ts"]) == (at(5), at(40))
    assert "999, past the end of the queue at 99, by a change from outside" in row["summary"]
    (row,) = found["past an unknown end"]
    assert "was set to 999, past the end of the queue, by a commit by a client." in row["summary"]


def test_a_slaves_later_copy_does_not_move_the_finding(found):
    (row,) = found["shown late"]
    assert (row["from_ts"], row["to_ts"]) == (at(45), at(60))
    assert "of 1 queue was set to 999, past the end of the queue at 99, by a change from outside" in row["summary"]
    assert len(row["evidence"]) == 4


def test_commits_of_two_clients_between_which_a_queue_goes_are_no_alarm(found):
    (row,) = found["handed over"]
    assert row["severity"] == "info"
    assert "by commits of the clients between which queues changed hands; at most 7 messages" in row["summary"]
    reset, row = found["handed over and back"]
    assert (row["kind"], reset["kind"]) == ("offset_rewind", "offset_reset")
    assert row["severity"] == "warning", "somebody else set it, too"
    assert [found[group][0]["severity"] for group in ("held alone", "handed over long before")] == ["warning"] * 2
    assert all("by a commit by a client;" in found[g][0]["summary"] for g in ("held alone", "handed over long before"))


def test_breaks_further_apart_are_two_findings(found):
    assert len(found["within the gap"]) == 1
    assert len(found["past the gap"]) == 2


def test_a_reset_says_which_way_it_went(found):
    back, rewind = found["reset back"]
    assert (back["kind"], back["severity"], rewind["kind"]) == ("offset_reset", "warning", "offset_rewind")
    assert back["summary"] == (
        "Group reset back on T: 2 queues reset, back by up to 7 messages (b/0: from 107 to 100); at most 7 messages"
        " delivered again."
    )
    assert "by an offset reset" in rewind["summary"]
    keys = [evidence_of("silver.server_request", record_id=f"reset back100{c}") for c in ("c1", "c2")]
    assert back["evidence"] == keys
    ahead, jump = found["reset ahead"]
    assert "ahead by up to 90 messages" in ahead["summary"]
    assert "moved ahead by up to 90 messages" in jump["summary"]


def test_a_reset_that_moved_nothing_is_reported_but_alarms_nobody(found):
    assert [(row["kind"], row["severity"]) for row in found["reset to where it was"]] == [("offset_reset", "info")]
    assert [(row["kind"], row["severity"]) for row in found["reset, shown late"]] == [
        ("offset_reset", "info"),
        ("offset_rewind", "warning"),
    ]
    reset = [row for row in found["reset, copied by a slave"] if row["kind"] == "offset_reset"]
    assert [row["severity"] for row in reset] == ["info"]


def test_pushes_within_half_a_minute_are_one_reset(found):
    assert [(row["to_ts"] - row["from_ts"]).total_seconds() for row in found["reset again and again"]] == [30, 0]


def test_evidence_is_bounded():
    many = [row for client in range(EVIDENCE_ROWS + 10) for row in pushed("g", 100, f"c{client:03}")]
    (reset,) = of_resets(many, [])
    assert len(reset["evidence"]) == EVIDENCE_ROWS
    back = offset_findings(breaks([broke("g", 10, 7, queue_id=q) for q in range(99)]), owned([]), "c", 1, 1, NO_RESETS)
    assert back["evidence"].list.len().to_list() == [EVIDENCE_ROWS]
    assert "the offset of 99 queues" in back["summary"][0]


def test_other_breaks_are_no_findings(found):
    assert found.keys().isdisjoint({"gone", "cleaned"})


def test_no_rows_give_no_findings():
    assert offset_findings(breaks([]), owned([]), "c", GAP_S, HANDOVER_S, NO_RESETS).schema == SCHEMA
    assert reset_findings(pl.DataFrame(schema=RESETS), breaks([]), "c", RESET_GAP_S, REACH_S).schema == SCHEMA


@pytest.mark.parametrize(("sent", "bound"), [([], "at least"), (pushed("g", 40), "at most")])
def test_how_much_is_delivered_again_is_bounded_where_clients_were_recorded(sent, bound):
    frames = breaks([broke("g", 50, 7, 7, cause="reset")]), owned([])
    (row,) = offset_findings(*frames, "c", GAP_S, HANDOVER_S, pl.DataFrame(sent, RESETS)).to_dicts()
    assert f"by an offset reset; {bound} 7 messages delivered again." in row["summary"]


def test_rewinds_of_several_causes_are_several_findings_unless_they_are_at_once():
    first, second = broke("g", 10, 7, 7, cause="reset"), broke("g", 60, 7, 7, cause="set_from_outside")
    at_once = broke("g", 12, 7, 7, cause="set_from_outside", queue_id=1)
    second_of_slave = second | {"broker_id": 1, "from_ts": at(60), "to_ts": at(75)}
    for breaks_of_g, count in (([first, second, second_of_slave], 2), ([first, at_once], 1)):
        assert len(offset_findings(breaks(breaks_of_g), owned([]), "c", GAP_S, HANDOVER_S, NO_RESETS)) == count


def test_a_slave_that_copies_its_master_is_no_finding_by_itself():
    copied = broke("g", 20, 33, 33, broker_id=1, cause="copied_from_master")
    assert offset_findings(breaks([copied]), owned([]), "c", GAP_S, HANDOVER_S, NO_RESETS).is_empty()
