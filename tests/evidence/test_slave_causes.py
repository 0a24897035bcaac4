"""The cause of what a slave's file shows is that of its master's row, never another one."""

from __future__ import annotations

from typing import Any

import pytest

from mqreplay.evidence.offsets.offset_causes import COPIED, with_causes_of_masters
from offset_nights import change, continuity, pull, tables
from silver_moments import at
from silver_rows import rows

REACH_S = 60
PLACE = {"broker_name": "b", "broker_id": 0, "topic": "T", "consumer_group": "g", "queue_id": 0, "kind": "rewind"}
Row = dict[str, Any]


def broke(seconds: float, new: int | None, cause: str, **differs: object) -> Row:
    return PLACE | {"from_ts": at(seconds - 5), "to_ts": at(seconds), "new_offset": new, "cause": cause} | differs


def causes(*breaks: Row) -> list[str]:
    return with_causes_of_masters(rows("gold.offset_continuity", {}, list(breaks)), REACH_S)["cause"].to_list()


def of_slave(seconds: float, new: int | None, cause: str = COPIED, **differs: object) -> Row:
    return broke(seconds, new, cause, broker_id=1) | differs


@pytest.mark.parametrize("cause", [COPIED, "client_commit", "unknown", "set_from_outside"])
def test_the_same_offset_has_the_cause_that_it_has_on_the_master(cause):
    past_end = {"kind": "beyond_max"}
    master = broke(10, 999_999, "set_from_outside", **past_end)
    assert causes(master, of_slave(40, 999_999, cause, **past_end)) == ["set_from_outside"] * 2
    # A slave copies what its master has in memory: its file may show that first.
    assert causes(master, of_slave(8, 999_999, cause, **past_end)) == ["set_from_outside"] * 2


@pytest.mark.parametrize(
    "differs",
    [{"queue_id": 1}, {"consumer_group": "h"}, {"broker_name": "other"}, {"new_offset": 5}, {"kind": "stale"}],
)
def test_a_row_of_something_else_keeps_its_cause(differs):
    row = of_slave(40, 3, "client_commit") | differs
    assert causes(broke(10, 3, "reset"), row) == ["reset", "client_commit"]


def test_what_the_master_did_long_before_is_not_the_cause():
    assert causes(broke(10, 3, "reset"), of_slave(76, 3)) == ["reset", COPIED]
    assert causes(broke(10, 3, "reset"), of_slave(75, 3)) == ["reset", "reset"]


def test_a_slave_may_copy_an_offset_that_has_risen_since():
    assert causes(broke(10, 3, "reset"), of_slave(40, 7)) == ["reset", "reset"]
    assert causes(broke(10, 3, "reset"), of_slave(40, 7, "client_commit")) == ["reset", "client_commit"]


def test_without_a_slave_or_a_master_nothing_changes():
    assert causes(broke(10, 3, "reset")) == ["reset"]
    assert causes(of_slave(10, 3, "unknown")) == ["unknown"]
    assert causes() == []


def found_causes(commit_to: int) -> list[tuple[int, str]]:
    """A slave that took commits while its master was down falls back to what the master has when it returns."""
    slave = {"broker_id": 1, "source_name": "b-1"}
    changes = [change(10, 60, 77), change(30, 77, 110) | slave, change(60, 110, 77) | slave, change(70, 77, 111)]
    sent = [{"ts": at(8), "commit_offset": 77, "broker_id": 0}, {"ts": at(50), "commit_offset": 77}]
    commits = [sent[0], sent[1] | {"broker_id": commit_to}]
    night = tables(changes, [pull(5, 77, 111, 200)], commits)
    return [(row["broker_id"], row["cause"]) for row in continuity(night).rows(named=True)]


def test_a_slave_that_falls_back_to_its_master_copied_that():
    assert found_causes(commit_to=0) == [(1, COPIED)]


def test_what_a_client_committed_to_the_slave_itself_is_its_commit():
    assert found_causes(commit_to=1) == [(1, "client_commit")]


def test_without_copies_of_a_master_a_slave_is_judged_by_itself():
    only = continuity(tables([change(60, 110, 77) | {"broker_id": 1, "source_name": "b-1"}]))
    assert only["cause"].to_list() == ["unknown"]
