"""What a reset did: which pushes clients carried out, which change each answer explains, and what is one reset."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.decisions.offset_continuity import skips
from mqreplay.evidence.offsets.offset_causes import pushed_resets, with_reset_ahead
from mqreplay.evidence.offsets.queue_events import queue_events
from mqreplay.evidence.offsets.reset_effects import applied_resets_of_shard, with_applied
from offset_nights import COMMIT, PULL, REQUEST, change, pull, pushed, tables
from silver_moments import at
from silver_rows import rows

REACH_S = 60
Row = dict[str, Any]


def applied(commits: list[Row], pulls: list[Row]) -> list[tuple[Any, ...]]:
    """Queue, asked and delivered_to of resets of two queues to offset 10, pushed at 100 s, that were carried out."""
    request = rows("silver.server_request", REQUEST, [pushed(100, 10), pushed(100, 10, 1)])
    frames = rows("silver.offset_commit", COMMIT, commits), rows("silver.pull", PULL, pulls)
    found = applied_resets_of_shard(request, *frames, REACH_S)
    known = with_applied(pushed_resets(request).with_columns(record_id=pl.lit("other")), found)
    assert known["asked"].null_count() == len(known), "of another request"
    known = with_applied(pushed_resets(request), found)
    assert known.columns == pushed_resets(request).columns
    return known.filter(pl.col("asked").is_not_null()).select("queue_id", "asked", "delivered_to").rows()


def committed(seconds: float, offset: int, **differs: object) -> Row:
    return {"ts": at(seconds), "commit_offset": offset} | differs


def test_a_client_carries_a_reset_out_when_it_commits_where_it_leads():
    commits = [committed(90, 41), committed(95, 44), committed(110, 10), committed(112, 42)]
    pulls = [pull(94, 44, 47, 50), pull(111, 10, 42, 50)]
    assert applied(commits, pulls) == [(0, 44, 47)]
    # Messages that it received later are not delivered again.
    assert applied(commits, []) == [(0, 44, None)]


def test_a_pull_from_there_shows_it_too():
    assert applied([], [pull(94, 44, 47, 50), pull(111, 10, 42, 50)]) == [(0, 47, 47)]


@pytest.mark.parametrize(
    "acts",
    [
        [committed(95, 44), committed(110, 11)],
        [committed(95, 10), committed(99, 44)],
        [committed(95, 44), committed(161, 10)],
        [committed(95, 44), committed(110, 10, consumer_group="h")],
        [committed(95, 44, kind="QUERY"), committed(110, 10, kind="QUERY")],
    ],
    ids=["elsewhere", "before it", "long after it", "another group", "asked for"],
)
def test_what_shows_no_reset(acts):
    assert applied(acts, []) == []


def test_without_resets_nothing_was_carried_out():
    none = [rows(f"silver.{name}", {}, []) for name in ("server_request", "offset_commit", "pull")]
    assert applied_resets_of_shard(*none, REACH_S).is_empty()


def ahead(changed: Row, pulls: list[Row], seconds: float = 100, offset: int = 50) -> bool:
    """Whether a reset pushed at 100 s to offset 50 explains the change."""
    night = tables([changed], pulls, (), [pushed(seconds, offset)])
    events = queue_events(night["offset_change"], night["offset_commit"], night["pull"], night["topic_stats"], set())
    skipped = pl.DataFrame(pl.from_arrow(skips(events)))
    changes = night["offset_change"].with_columns(reset=pl.lit(False))
    return with_reset_ahead(changes, pushed_resets(night["server_request"]), skipped, REACH_S)["reset"].item()


SKIPPED = [pull(90, 20, 25, 99), pull(111, 50, 58, 99)]


def test_a_group_goes_on_from_where_a_reset_ahead_leads():
    assert ahead(change(115, 22, 58), SKIPPED)
    assert ahead(change(115, 22, 50), SKIPPED)


@pytest.mark.parametrize(
    ("changed", "pulls"),
    [
        (change(115, 22, 49), SKIPPED),
        (change(115, 50, 58), SKIPPED),
        (change(105, 22, 58), SKIPPED),
        (change(190, 22, 58), SKIPPED),
        (change(115, 22, 58), [pull(90, 20, 25, 99), pull(109, 25, 50, 99), pull(111, 50, 58, 99)]),
        (change(115, 22, 58), [pull(90, 20, 25, 99), pull(111, 51, 58, 99)]),
    ],
    ids=[
        "not so far",
        "passed before",
        "before the pull",
        "long after it",
        "all was delivered",
        "pulled from elsewhere",
    ],
)
def test_what_is_no_reset_ahead(changed, pulls):
    assert not ahead(changed, pulls)


def test_a_skip_long_before_the_reset_is_not_of_it():
    assert not ahead(change(115, 22, 58), SKIPPED, seconds=172)
    assert ahead(change(115, 22, 58), SKIPPED, seconds=171)
