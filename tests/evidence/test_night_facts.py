"""Facts of the night do not depend on the rows that are surveyed together."""

from __future__ import annotations

import polars as pl

from last_instants import last_instant_of_shard
from mqreplay.evidence.night_facts import CHANGE, COMMIT_COLUMNS, PULL_COLUMNS, NightFacts, Survey, night_facts, survey
from mqreplay.evidence.offsets.queue_events import last_instant, queue_events
from silver_moments import BEGAN, at
from silver_rows import rows

STARTS = {BEGAN: BEGAN}
QUEUE = {"broker_name": "b", "topic": "t", "queue_id": 0, "consumer_group": "g"}
MS = 1000


def ms(seconds: float) -> int:
    return int(at(seconds).timestamp() * MS)


PULLS = rows(
    "silver.pull",
    QUEUE | {"broker_id": 0, "max_offset": 9},
    [
        {"client_id": "old", "request_ts": at(1), "response_ts": at(2), "sub_version": ms(-60)},
        {"client_id": "new", "request_ts": at(3), "response_ts": at(4), "sub_version": ms(3)},
        {"client_id": "new", "request_ts": at(90), "broker_id": 1, "sub_version": ms(5)},
    ],
)
COMMITS = rows(
    "silver.offset_commit",
    {"kind": "UPDATE", "client_id": "new"} | QUEUE,
    [
        {"ts": at(5), "commit_offset": 3},
        {"ts": at(80), "commit_offset": 4, "consumer_group": "failing", "error": "timeout"},
        {"ts": at(85), "kind": "QUERY", "consumer_group": "asking"},
    ],
)
CHANGES = rows(
    "silver.offset_change",
    {"source_name": "b-0", "broker_id": 0} | QUEUE,
    [
        {"to_ts": at(70), "new_offset": 5},  # of a group that commits: its commits count instead
        {"to_ts": at(20), "new_offset": 5, "consumer_group": "silent"},
        {"to_ts": at(60), "new_offset": None, "consumer_group": "silent"},
    ],
)
STATS = rows("silver.topic_stats", {}, [])


def surveyed(pull: pl.DataFrame, commits: pl.DataFrame, changes: pl.DataFrame) -> Survey:
    return survey(pull.select(PULL_COLUMNS), commits.select(COMMIT_COLUMNS), changes.select(CHANGE), STARTS)


def test_facts_of_a_night() -> None:
    facts = night_facts([surveyed(PULLS, COMMITS, CHANGES)], STATS, STARTS)
    assert facts.new_clients["client_id"].to_list() == ["new"]
    assert facts.groups_with_accepted_commits == {"g"}
    assert facts.groups_with_commits == {"g", "failing"}
    assert facts.last_ms == ms(20)


def test_rows_surveyed_apart_give_the_same_facts() -> None:
    whole = night_facts([surveyed(PULLS, COMMITS, CHANGES)], STATS, STARTS)
    none = [frame.clear() for frame in (PULLS, COMMITS, CHANGES)]
    parts = [
        *(surveyed(PULLS[n], none[1], none[2]) for n in range(3)),
        *(surveyed(none[0], COMMITS[n], none[2]) for n in range(3)),
        *(surveyed(none[0], none[1], CHANGES[n]) for n in range(3)),
    ]
    assert plain(night_facts(parts, STATS, STARTS)) == plain(whole)


def test_the_last_instant_is_that_of_the_events() -> None:
    facts = night_facts([surveyed(PULLS, COMMITS, CHANGES)], STATS, STARTS)
    events = queue_events(CHANGES, COMMITS, PULLS, STATS, facts.groups_with_accepted_commits)
    assert facts.last_ms == last_instant([last_instant_of_shard(events)], STATS)


def test_an_empty_night_has_no_last_instant() -> None:
    facts = night_facts([surveyed(PULLS.clear(), COMMITS.clear(), CHANGES.clear())], STATS, STARTS)
    assert plain(facts) == ([], frozenset(), frozenset(), None)


def plain(facts: NightFacts) -> tuple[object, ...]:
    return (
        sorted(facts.new_clients.rows()),
        facts.groups_with_accepted_commits,
        facts.groups_with_commits,
        facts.last_ms,
    )
