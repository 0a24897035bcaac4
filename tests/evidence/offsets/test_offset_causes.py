"""Resets, and causes of offset changes against each rule in plain Python: any row of evidence that meets the bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from random import Random
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from each_case import for_each
from mqreplay.decisions.offset_continuity import skips
from mqreplay.evidence.offsets.offset_causes import (
    moved_resets_of_shard,
    offset_resets,
    pushed_resets,
    with_awaited_reset,
    with_committed,
    with_reset,
    with_skip,
)
from mqreplay.evidence.offsets.queue_events import queue_events
from mqreplay.words.keys import GROUP_QUEUE
from silver_moments import at
from silver_rows import rows

SEEDS = range(60)
REACH_S = 3
REACH = timedelta(seconds=REACH_S)
BASE = {"broker_name": "b", "topic": "T", "client_id": "c"}
REQUEST = {"client_id": "c", "request_code": 220, "consumer_group": "g"}
PULL = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0, "client_id": "c", "broker_id": 0}
MOVED = PULL | {"response_code": 21, "min_offset": 5, "max_offset": 9, "next_begin_offset": 3, "response_ts": at(4)}
CHANGE = BASE | {"source_name": "b-0", "broker_id": 0}
NONE = {name: rows(f"silver.{name}", {}, []) for name in ("offset_change", "offset_commit", "pull", "topic_stats")}
NO_RESET = offset_resets(rows("silver.server_request", {}, []), NONE["pull"])
NO_SKIP = pl.DataFrame(pl.from_arrow(skips(queue_events(*NONE.values(), set()))))

Row = dict[str, Any]


class Night:
    """Changes and evidence of three offsets, in few seconds and with few values: much agrees, or nearly so."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def some(self, one: Callable[[], Row]) -> list[Row]:
        return [BASE | self._place() | one() for _ in range(self.random.randrange(30))]

    def second(self) -> int:
        return self.random.randrange(14)

    def offset(self) -> int | None:
        return self.random.choice([None, 0, 1, 1, 2, 2, 3])

    def _place(self) -> Row:
        return self.random.choice([{"consumer_group": g, "queue_id": q} for g, q in (("g", 0), ("g", 1), ("h", 0))])

    def changes(self) -> pl.DataFrame:
        """Rows that source_digest numbers, in any order."""
        listed = []
        for number in range(40):
            to_s, wait = self.second(), self.random.choice([None, 0, 1, 2, 4])
            times = {"from_ts": None if wait is None else at(to_s - wait), "to_ts": at(to_s)}
            offsets = {"previous_offset": self.offset(), "new_offset": self.offset()}
            listed.append(self._place() | offsets | times | {"source_digest": str(number)})
        return rows("silver.offset_change", CHANGE, listed)

    def reset(self) -> Row:
        since, by = self.second(), self.random.choice(["server_request", "pull"])
        wait = self.random.choice([0, 0, 1, 4, 8])
        times = {"since": at(since), "ts": at(since + wait)}
        return {
            "asked": 3,
            "delivered_to": 3,
            "offset": self.offset(),
            "table_name": f"silver.{by}",
            "record_id": "r",
        } | times

    def skip(self) -> Row:
        skipped = {f"skipped_{end}": self.random.randrange(4) for end in ("from", "to")}
        return skipped | {"ts": at(self.second())}

    def commit(self) -> Row:
        kind = self.random.choice(["UPDATE", "UPDATE", "QUERY"])
        return {"ts": at(self.second()), "commit_offset": self.offset(), "kind": kind}

    def pull(self) -> Row:
        flag = self.random.choice([None, 2, 3, 3])
        return {"request_ts": at(self.second()), "commit_offset": self.offset(), "sys_flag": flag}


def framed(listed: list[Row], like: pl.DataFrame) -> pl.DataFrame:
    return pl.DataFrame([{name: row[name] for name in like.columns} for row in listed], like.schema)


def hits(changes: pl.DataFrame, evidence: Iterable[Row], is_hit: Callable[[Row, Row], bool]) -> dict[str, bool]:
    """Of each change whether any evidence of its group and queue agrees with it."""
    found = {}
    for change in changes.iter_rows(named=True):
        mine = (row for row in evidence if all(row[name] == change[name] for name in ("consumer_group", "queue_id")))
        found[change["source_digest"]] = any(is_hit(change, row) for row in mine)
    return found


def added(changes: pl.DataFrame, name: str) -> dict[str, Any]:
    return dict(changes.select("source_digest", name).iter_rows())


def began(change: Row) -> Any:
    return change["from_ts"] or change["to_ts"]


def is_back(change: Row) -> bool:
    old, new = change["previous_offset"], change["new_offset"]
    return None not in (old, new) and new < old


@for_each(SEEDS)
def test_resets(seed):
    def is_hit(change: Row, reset: Row) -> bool:
        if reset["offset"] is None or change["new_offset"] is None:
            return False
        back, answered = is_back(change), reset["table_name"] == "silver.pull"
        latest = change["to_ts"] + (REACH if back and answered else timedelta())
        in_reach = reset["ts"] >= began(change) - REACH and reset["since"] <= latest
        since = began(change) - (timedelta() if reset["table_name"] == "silver.pull" else REACH)
        between = since <= reset["ts"] <= change["to_ts"]
        to_this = reset["offset"] == change["new_offset"] and in_reach
        return to_this or (back and reset["offset"] <= change["new_offset"] and between)

    night = Night(seed)
    changes, resets = night.changes(), night.some(night.reset)
    found = with_reset(changes, framed(resets, NO_RESET), REACH_S)
    assert added(found, "reset") == hits(changes, resets, is_hit)
    assert found.drop("reset").equals(changes)


@for_each(SEEDS)
def test_skips(seed):
    def is_hit(change: Row, skip: Row) -> bool:
        old, new = change["previous_offset"], change["new_offset"]
        if old is None or skip["skipped_to"] != new or skip["ts"] < began(change) - REACH:
            return False
        return old <= skip["skipped_from"] <= new

    night = Night(seed)
    changes, skipped = night.changes(), night.some(night.skip)
    found = with_skip(changes, framed(skipped, NO_SKIP), REACH_S)
    assert added(found, "skipped") == hits(changes, skipped, is_hit)
    assert found.drop("skipped").equals(changes)


@for_each(SEEDS)
def test_commits(seed):
    def is_hit(change: Row, sent: Row) -> bool:
        if sent["commit_offset"] is None or sent["commit_offset"] != change["new_offset"]:
            return False
        if "kind" in sent:
            return sent["kind"] == "UPDATE" and began(change) - REACH <= sent["ts"] <= change["to_ts"]
        carries = sent["sys_flag"] == 3 and change["from_ts"] is not None
        return carries and change["from_ts"] <= sent["request_ts"] <= change["to_ts"]

    night = Night(seed)
    changes, commits, pulls = night.changes(), night.some(night.commit), night.some(night.pull)
    recording = set(night.random.choice(["", "g", "h", "gh"]))
    frames = (rows("silver.offset_commit", {}, commits), rows("silver.pull", {}, pulls))
    found = with_committed(changes, *frames, recording, REACH_S)
    group = added(changes, "consumer_group")
    expected = {
        number: hit or (False if group[number] in recording else None)
        for number, hit in hits(changes, [*commits, *pulls], is_hit).items()
    }
    assert added(found, "committed") == expected
    assert found.drop("committed").equals(changes)


@pytest.fixture
def server_request():
    requests = [
        {"ts": at(1), "reset_offsets": [("T", "b", 0, 7), ("T", "b", 1, 8)]},
        {"ts": at(2), "reset_offsets": []},
        {"ts": at(3), "reset_offsets": None},
    ]
    return rows("silver.server_request", REQUEST, requests)


@pytest.fixture
def pull():
    pulls = [
        {"request_ts": at(1), "queue_offset": 5},
        {"request_ts": at(2), "queue_offset": 9, "response_ts": None, "queue_id": 1},
        # An offset outside of the queue's range is corrected: nobody reset it.
        {"request_ts": at(3), "queue_offset": 4},
        {"request_ts": at(3), "queue_offset": 10},
        {"request_ts": at(3), "queue_offset": 5, "max_offset": None},
        {"request_ts": at(3), "queue_offset": 5, "response_code": 0},
    ]
    return rows("silver.pull", MOVED, pulls)


def test_resets_pushed_and_answered(server_request, pull):
    resets = offset_resets(server_request, pull)
    assert resets.columns == [*GROUP_QUEUE, "asked", "delivered_to", "offset", "since", "ts", "table_name", "record_id"]
    assert resets.rows() == [
        ("g", "T", "b", 0, None, None, 7, at(1), at(1), "silver.server_request", "r0"),
        ("g", "T", "b", 1, None, None, 8, at(1), at(1), "silver.server_request", "r0"),
        ("g", "T", "b", 0, 5, 3, 3, at(1), at(4), "silver.pull", "r0"),
        ("g", "T", "b", 1, 9, None, 3, at(2), at(2), "silver.pull", "r1"),
    ]


def test_resets_of_shards_together_are_those_of_the_whole(server_request, pull):
    shards = [moved_resets_of_shard(pull.filter(pl.col("queue_id") == queue)) for queue in (0, 1)]
    whole = offset_resets(server_request, pull)
    assert_frame_equal(pl.concat([pushed_resets(server_request), *shards]), whole, check_row_order=False)


def test_without_rows_there_are_no_resets(server_request, pull):
    empty = offset_resets(server_request.clear(), pull.clear())
    assert empty.is_empty()
    assert empty.schema == offset_resets(server_request, pull).schema


def commit_by(client: str) -> Row:
    return (
        BASE
        | {"consumer_group": "g", "queue_id": 0, "ts": at(9), "kind": "UPDATE", "commit_offset": 3}
        | {"client_id": client}
    )


@pytest.mark.parametrize(
    ("client", "pulls", "committed"),
    [
        ("c", [PULL | {"opaque": 1}], True),
        # mqadmin commits for a group that is down; the group's own clients pull.
        ("mqadmin", [PULL | {"opaque": 1}], False),
        ("mqadmin", [PULL | {"opaque": 1, "queue_id": 1}], True),
        # The log of a client has a few answers, and no requests.
        ("another", [PULL | {"opaque": None}], True),
    ],
)
def test_a_commit_by_a_client_that_never_pulled_the_queue_is_from_outside(client, pulls, committed):
    change = CHANGE | {"consumer_group": "g", "queue_id": 0, "previous_offset": 9, "new_offset": 3}
    changes = rows("silver.offset_change", change, [{"from_ts": at(8), "to_ts": at(10)}])
    frames = (rows("silver.offset_commit", {}, [commit_by(client)]), rows("silver.pull", {}, pulls))
    assert with_committed(changes, *frames, {"g"}, 60)["committed"].to_list() == [committed]


def test_a_master_shows_a_commit_within_seconds_and_a_slave_within_a_minute():
    change = CHANGE | {"consumer_group": "g", "queue_id": 0, "previous_offset": 9, "new_offset": 3}
    spans = [{"from_ts": at(start), "to_ts": at(start + 5), "broker_id": b} for start in (20, 40) for b in (0, 1)]
    changes = rows("silver.offset_change", change, spans)
    found = with_committed(changes, rows("silver.offset_commit", {}, [commit_by("c")]), NONE["pull"], {"g"}, 60)
    assert found["committed"].to_list() == [True, True, False, True]


# A reset of which a client hears minutes later, with the answer to its next pull.
ANSWERED_LATE = {
    "consumer_group": "g",
    "broker_name": "b",
    "topic": "T",
    "queue_id": 0,
    "asked": 3,
    "delivered_to": 3,
    "offset": 3,
    "since": at(600),
    "ts": at(601),
    "table_name": "silver.pull",
    "record_id": "r",
}


@pytest.mark.parametrize(
    ("differs", "reset"),
    [
        ({}, True),
        ({"offset": 4}, False),
        ({"table_name": "silver.server_request"}, False),
        ({"since": at(9)}, False),
        ({"queue_id": 1}, False),
    ],
    ids=["answered", "elsewhere", "pushed", "before it", "another queue"],
)
def test_a_pull_that_is_answered_with_a_reset_minutes_later(differs, reset):
    change = CHANGE | {"consumer_group": "g", "queue_id": 0, "previous_offset": 9, "new_offset": 3}
    changes = rows("silver.offset_change", change, [{"from_ts": at(5), "to_ts": at(10)}])
    changes = changes.with_columns(reset=pl.lit(False), committed=pl.lit(None, pl.Boolean))
    found = with_awaited_reset(changes, framed([ANSWERED_LATE | differs], NO_RESET))
    assert found["reset"].to_list() == [reset]
    assert found.drop("reset").equals(changes.drop("reset"))


@pytest.mark.parametrize(("committed", "reset"), [(True, False), (None, False), (False, True)])
def test_an_offset_that_rose_to_where_a_reset_leads_is_of_it_only_if_nobody_committed_it(committed, reset):
    change = CHANGE | {"consumer_group": "g", "queue_id": 0, "previous_offset": 1, "new_offset": 3}
    changes = rows("silver.offset_change", change, [{"from_ts": at(5), "to_ts": at(10)}])
    changes = changes.with_columns(reset=pl.lit(False), committed=pl.lit(committed, pl.Boolean))
    assert with_awaited_reset(changes, framed([ANSWERED_LATE], NO_RESET))["reset"].to_list() == [reset]
