"""Findings of breaks in offsets and of resets: one finding for one cause, and its severity."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evidence_keys import evidence_of
from mqreplay.evidence.intervals import INSTANT
from mqreplay.evidence.offsets.break_causes import with_explained_rewinds
from mqreplay.findings.offset_resets import reset_findings
from mqreplay.findings.offsets import offset_findings
from mqreplay.findings.shape import EVIDENCE_ROWS, SCHEMA
from silver_moments import at
from silver_rows import rows

GAP_S, RESET_GAP_S, REACH_S, HANDOVER_S = 120, 30, 60, 45
BREAK = {"topic": "T", "broker_name": "b", "broker_id": 0, "queue_id": 0, "kind": "rewind", "cause": "client_commit"}
Row = dict[str, Any]


def broke(group: str, seconds: float, size: int | None, again: int | None = 0, **differs: object) -> Row:
    row = {"consumer_group": group, "from_ts": at(seconds - 5), "to_ts": at(seconds), "size": size}
    step = 0 if size is None else -size if differs.get("kind") in ("jump", "beyond_max") else size
    row |= {"previous_offset": 100 + step, "new_offset": 100, "redelivered_max": again}
    return BREAK | row | differs


BREAKS = [
    broke("went back", 10, 7, 7),
    broke("went back", 10, 9, 9, queue_id=1),
    # The slave's copy of it shows the same, later, and without a cause.
    broke("went back", 20, 9, 9, queue_id=1, broker_id=1, cause="unknown"),
    broke("nothing again", 10, 7, 0),
    broke("a slave alone", 10, 7, 7, broker_id=1, cause="unknown"),
    broke("more than a bigint", 10, 7, 2**63 - 1),
    broke("more than a bigint", 10, 7, 2**63 - 1, queue_id=1),
    broke("more than a bigint", 10, 7, 9, queue_id=2),
    broke("two causes", 10, 7, 7),
    broke("two causes", 10, 7, 7, cause="set_from_outside", queue_id=1),
    # Past the end, and put back to the end by the next pull: one finding, as long as it was there.
    broke("past the end", 10, 900, kind="beyond_max", new_offset=999, queue_max_offset=99, cause="set_from_outside"),
    broke("past the end", 40, 900, cause="corrected", new_offset=99, queue_max_offset=104),
    # A slave of 5.x copies its master's offsets once a minute, and knows the queue's end of then.
    broke("shown late", 50, 900, kind="beyond_max", new_offset=999, queue_max_offset=99, cause="set_from_outside"),
    broke("shown late", 70, 900, kind="beyond_max", new_offset=999, queue_max_offset=120, broker_id=1, from_ts=at(1)),
    broke("shown late", 60, 900, cause="corrected", new_offset=99, queue_max_offset=99),
    broke("shown late", 130, 900, cause="corrected", new_offset=130, queue_max_offset=130, broker_id=1),
    broke("past an unknown end", 10, 900, kind="beyond_max", new_offset=999),
    broke("handed over", 100, 7, 7),
    broke("handed over and back", 100, 7, 7),
    broke("handed over and back", 100, 8, 8, queue_id=1, cause="set_from_outside"),
    broke("handed over long before", 100, 7, 7),
    broke("held alone", 100, 7, 7),
    broke("within the gap", 10, 7, 7),
    broke("within the gap", 40, 7, 7),
    broke("past the gap", 10, 7, 7),
    broke("past the gap", 40.001, 7, 7),
    broke("reset back", 108, 7, 7, cause="reset"),
    broke("reset ahead", 108, 80, kind="jump", cause="reset"),
    broke("reset ahead", 109, 90, kind="jump", cause="reset", queue_id=1),
    broke("reset, shown late", 161, 7, 7, cause="reset"),
    broke("reset, copied by a slave", 108, 7, 7, cause="reset", broker_id=1),
    # No findings of their own: an entry that is gone, an offset below the queue's beginning.
    broke("gone", 10, 0, kind="vanished", new_offset=None),
    broke("cleaned", 10, 0, kind="below_min"),
]


def down(*spans: tuple[float, float]) -> pl.DataFrame:
    """Outages of the master b."""
    schema = {"broker_name": pl.String, "broker_id": pl.Int64, "from_ts": INSTANT, "to_ts": INSTANT}
    return pl.DataFrame([("b", 0, at(since), at(until)) for since, until in spans], schema, orient="row")


def held(group: str, client: str, since: float, until: float, **differs: object) -> Row:
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


def pushed(group: str, seconds: float, client: str = "c1") -> list[Row]:
    """A reset of two queues, as offset_resets gives it."""
    place = {"consumer_group": group, "topic": "T", "broker_name": "b", "offset": 100}
    sent = {
        "since": at(seconds),
        "ts": at(seconds),
        "table_name": "silver.server_request",
        "record_id": f"{group}{seconds}{client}",
    }
    return [place | sent | {"queue_id": queue} for queue in (0, 1)]


PUSHES = [
    *[row for client in ("c1", "c2") for row in pushed("reset back", 100, client)],
    *pushed("reset ahead", 100),
    *pushed("reset to where it was", 100),
    *pushed("reset, shown late", 100),
    *pushed("reset, copied by a slave", 100),
    *[row for seconds in (100, 130, 160.001) for row in pushed("reset again and again", seconds)],
]
RESETS = {
    "consumer_group": pl.String,
    "broker_name": pl.String,
    "topic": pl.String,
    "queue_id": pl.Int32,
    "asked": pl.Int64,
    "offset": pl.Int64,
    "delivered_to": pl.Int64,
    "since": pl.Datetime("us", "UTC"),
    "ts": pl.Datetime("us", "UTC"),
    "table_name": pl.String,
    "record_id": pl.String,
}


NO_RESETS = pl.DataFrame(schema=RESETS)


def breaks(differs: list[Row]) -> pl.DataFrame:
    return rows("gold.offset_continuity", {}, differs)


def owned(differs: list[Row]) -> pl.DataFrame:
    return rows("gold.queue_owner", {}, differs)


def of_resets(resets: list[Row], differs: list[Row]) -> list[Row]:
    found = reset_findings(pl.DataFrame(resets, RESETS), breaks(differs), "c", RESET_GAP_S, REACH_S)
    return found.sort("from_ts").to_dicts()


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


SPANS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from([0, 0, 1]), st.integers(0, 30), st.integers(0, 12)), max_size=8
)


# The first client holds the queue throughout, the others one after the other.
@example([("a", 0, 0, 100), ("b", 0, 10, 10), ("c", 0, 30, 10)], [(41, 3)], 0)
@given(SPANS, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6)), min_size=1, max_size=6), st.integers(0, 6))
def test_two_clients_held_the_queue(spans, moments, handover_s):
    owners = [held("g", client, since, since + long, queue_id=queue) for client, queue, since, long in spans]
    for to, long in moments:
        row = broke("g", to, 7, from_ts=at(to - long))
        near = row["from_ts"] - dt.timedelta(seconds=handover_s)
        here = [o for o in owners if o["queue_id"] == 0 and o["from_ts"] <= row["to_ts"] and o["to_ts"] >= near]
        (finding,) = offset_findings(breaks([row]), owned(owners), "c", 1, handover_s, NO_RESETS).to_dicts()
        assert ("changed hands" in finding["summary"]) == (len({o["client_id"] for o in here}) > 1)


def test_a_broker_that_was_killed_comes_back_with_older_offsets():
    rewinds = breaks([broke("g", 50, 7, 7, cause="unknown"), broke("h", 10, 7, 7, cause="unknown")])
    rewinds = with_explained_rewinds(rewinds, owned([]), down((46, 49)), HANDOVER_S)
    found = offset_findings(rewinds, owned([]), "c", GAP_S, HANDOVER_S, NO_RESETS).sort("consumer_group")
    restarted, unknown = found["summary"].to_list()
    assert "by a restart of the broker, which had not saved its latest offsets" in restarted
    assert "by an unknown cause" in unknown


@pytest.mark.parametrize(("seconds", "severity"), [(40, "warning"), (90, "info")])
def test_an_overtaken_commit_explains_its_own_queue_alone(seconds, severity):
    rows = [broke("g", 50, 1, 1, cause="overtaken"), broke("g", seconds, 40, 40, cause="unknown", queue_id=1)]
    known = with_explained_rewinds(breaks(rows), owned([]), down(), HANDOVER_S)
    found = offset_findings(known, owned([]), "c", GAP_S, HANDOVER_S, NO_RESETS).filter(
        pl.col("queue_id").ne_missing(1)
    )
    assert found["severity"].to_list() == [severity]


@pytest.mark.parametrize(("other", "severity"), [("overtaken", "info"), ("handover", "info"), ("unknown", "warning")])
def test_an_overtaken_commit_is_no_warning_alone(other, severity):
    rows = breaks([broke("g", 50, 1, 1, cause="overtaken"), broke("g", 50, 2, 2, cause=other, queue_id=1)])
    (found,) = offset_findings(rows, owned([]), "c", GAP_S, HANDOVER_S, NO_RESETS).to_dicts()
    assert "two commits of a client that the broker took in the wrong order" in found["summary"]
    assert found["severity"] == severity


@pytest.mark.parametrize(
    ("outages", "owners", "words", "severity"),
    [
        (down(), [], "by an unknown cause", "warning"),
        (down(), [held("g", "a", 0, 48), held("g", "b", 48, 90)], "between which queues changed hands", "info"),
        (down((46, 49)), [held("g", "a", 0, 48), held("g", "b", 48, 90)], "by a restart of the broker", "warning"),
    ],
)
def test_without_recorded_commits_owners_show_a_handover(outages, owners, words, severity):
    rewind = breaks([broke("g", 50, 1, 1, cause="unknown")])
    rewind = with_explained_rewinds(rewind, owned(owners), outages, HANDOVER_S)
    (found,) = offset_findings(rewind, owned(owners), "c", GAP_S, HANDOVER_S, NO_RESETS).to_dicts()
    assert words in found["summary"]
    assert found["severity"] == severity


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
