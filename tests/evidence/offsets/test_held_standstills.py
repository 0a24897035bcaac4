"""Standstills that members held, and the pulls that brokers refused meanwhile."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.evidence.offsets.queue_events import groups_with_accepted_commits_of_shard, queue_events
from mqreplay.evidence.offsets.standstills import held_standstills, refused_pulls_of_shard, standstill_spans
from silver_moments import at
from silver_rows import rows

QUEUE = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0}
INSTANT = pl.Datetime("us", "UTC")
STANDSTILL = {
    "offset": pl.Int64,
    "since_ts": INSTANT,
    "from_ts": INSTANT,
    "to_ts": INSTANT,
    "waiting": pl.Int64,
    "arrived": pl.Int64,
}
STILL = {
    "consumer_group": pl.String,
    "topic": pl.String,
    "broker_name": pl.String,
    "queue_id": pl.Int32,
    "spans": pl.List(pl.Struct(STANDSTILL)),
}
STUCK_S = 60
Row = dict[str, Any]


def standstill(offset: int, since: float, began: float, ended: float, waiting: int = 7) -> Row:
    return {
        "offset": offset,
        "since_ts": at(since),
        "from_ts": at(began),
        "to_ts": at(ended),
        "waiting": waiting,
        "arrived": 0,
    }


def still_queue(*standstills: Row, **differs: object) -> Row:
    return QUEUE | {"spans": list(standstills)} | differs


def span(client: str, since: float, until: float, **differs: object) -> Row:
    return {"client_id": client, "from_ts": at(since), "to_ts": at(until), "source": "pull"} | differs


def pulled(seconds: float, code: int | None = 2, broker_id: int = 1, **differs: object) -> Row:
    return {"request_ts": at(seconds), "response_code": code, "broker_id": broker_id} | differs


def held(still: list[Row], owners: list[Row], pulls: list[Row] | None = None, shards: int = 1) -> pl.DataFrame:
    pull = rows("silver.pull", QUEUE | {"client_id": "c", "queue_offset": 0}, pulls or [])
    refused = [refused_pulls_of_shard(pull.filter(pl.col("queue_id") % shards == n)) for n in range(shards)]
    frame = pl.DataFrame(still, STILL)
    return held_standstills(frame, pl.concat(refused), rows("gold.queue_owner", QUEUE, owners), STUCK_S)


def offsets(*args: Any) -> list[int]:
    return sorted(held(*args)["offset"])


def test_a_standstill_keeps_its_bounds_its_offset_and_what_waited():
    (row,) = held([still_queue(standstill(30, 5, 10, 100, 110))], [span("c", 0, 200)]).to_dicts()
    assert row == QUEUE | {
        "from_ts": at(10),
        "to_ts": at(100),
        "offset": 30,
        "waiting": 110,
        "refused": 0,
        "held_ms": 90_000,
    }


@pytest.mark.parametrize(
    ("owners", "stuck"),
    [
        ([span("c", 0, 200)], True),
        ([span("c", 0, 70)], True),
        ([span("c", 0, 69.999)], False),
        ([span("c", 40, 200)], True),
        ([span("c", 40.001, 200)], False),
        ([span("c", 0, 40), span("d", 70, 200)], True),
        ([span("c", 0, 40), span("d", 70.001, 200)], False),
        ([span("c", 0, 40), span("d", 0, 40)], True),  # two at once count twice
        ([span("c", 0, 5), span("c", 120, 200)], False),
        ([span("c", 0, 200, queue_id=1), span("c", 0, 200, consumer_group="h")], False),
        ([], False),
    ],
)
def test_members_must_hold_the_queue_for_long_enough(owners, stuck):
    assert offsets([still_queue(standstill(30, 5, 10, 100))], owners) == ([30] if stuck else [])


def test_each_standstill_of_a_queue_counts_by_itself():
    still = [still_queue(standstill(30, 0, 0, 60), standstill(40, 100, 100, 200), standstill(50, 300, 300, 400))]
    assert offsets(still, [span("c", 0, 150), span("c", 300, 400)]) == [30, 50]


@pytest.mark.parametrize("shards", [1, 7])
def test_refusals_are_counted_since_the_offset_was_set(shards):
    pulls = [pulled(s) for s in (4.999, 5, 50, 100, 100.001)]
    pulls += [pulled(60, 0), pulled(60, None), pulled(60, 2, queue_id=1), pulled(60, 2, consumer_group="h")]
    pulls += [pulled(70), pulled(70, broker_id=2), pulled(80, 2, queue_id=2)]
    still = [still_queue(standstill(30, 5, 10, 100)), still_queue(standstill(40, 5, 10, 100), queue_id=2)]
    found = held(still, [span("c", 0, 200), span("c", 0, 200, queue_id=2)], pulls, shards).sort("queue_id")
    assert found["refused"].to_list() == [5, 1]


SPANS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 90)), max_size=6)


@given(SPANS, SPANS, st.lists(st.integers(0, 200), max_size=12))
def test_any_standstills_owners_and_refusals(standing, held_spans, refusals):
    still = [still_queue(*[standstill(n, s, s + 3, s + 3 + long) for n, (s, long) in enumerate(standing)])]
    want = []
    for n, (since, long) in enumerate(standing):
        held_s = [min(since + 3 + long, h + held_long) - max(since + 3, h) for h, held_long in held_spans]
        if sum(s for s in held_s if s > 0) >= STUCK_S:
            want.append((n, sum(since <= s <= since + 3 + long for s in refusals)))
    found = held(
        still if standing else [], [span("c", s, s + long) for s, long in held_spans], [*map(pulled, refusals)]
    )
    assert found.select("offset", "refused").sort("offset").rows() == want


ENDS = [(s, 40 + s) for s in range(0, 200, 5)]


def found_of(
    commits: list[tuple[float, int]],
    ends: list[tuple[float, int]],
    owned: tuple[float, float] = (0, 200),
    pulls: list[Row] | None = None,
    saved: list[tuple[float, int]] | None = None,
    copies: list[float] | None = None,
) -> list[tuple[int, int, int]]:
    """Offset, waiting and refused of what held_standstills finds in records: (second, offset) each."""
    change = {"source_name": "b-0", "broker_id": 0}
    copied = [at(s) for s in copies or []]
    before = [None, *(offset for _, offset in saved or [])]  # what the copy before showed
    changes = [
        change
        | {"to_ts": at(s), "new_offset": offset, "previous_offset": old}
        | {"from_ts": max((c for c in copied if c < at(s)), default=None)}
        for (s, offset), old in zip(saved or [], before, strict=False)
    ]
    sent = [{"ts": at(s), "commit_offset": offset, "client_id": "c", "kind": "UPDATE"} for s, offset in commits]
    answers = [
        {"request_ts": at(s), "response_ts": at(s), "max_offset": end, "min_offset": 0, "broker_id": 0}
        for s, end in ends
    ]
    pull = rows("silver.pull", QUEUE | {"client_id": "c", "queue_offset": 0}, answers + (pulls or []))
    commit = rows("silver.offset_commit", QUEUE, sent)
    events = queue_events(
        rows("silver.offset_change", QUEUE, changes),
        commit,
        pull,
        rows("silver.topic_stats", {}, []),
        groups_with_accepted_commits_of_shard(commit),
    )
    last = {"b": int(copied[-1].timestamp()) * 1_000_000} if copied else {}
    still = pl.DataFrame(pl.from_arrow(standstill_spans(events, STUCK_S, last)))
    owners = rows("gold.queue_owner", QUEUE, [span("c", *owned)])
    found = held_standstills(still, refused_pulls_of_shard(pull), owners, STUCK_S)
    return found.select("offset", "waiting", "refused").rows()


def test_an_offset_that_does_not_move_while_messages_wait_is_a_standstill():
    assert found_of([(0, 10), (5, 30), (100, 95), (150, 140), (199, 190)], ENDS) == [(30, 110, 0)]


def test_a_short_standstill_or_one_with_nothing_waiting_is_none():
    assert found_of([(0, 10), (5, 30), (60, 95), (110, 140), (160, 150), (199, 160)], ENDS) == []
    assert found_of([(0, 240)], [(s, 240) for s in range(0, 200, 5)]) == []


def test_a_group_that_was_stopped_is_not_stuck():
    assert found_of([(0, 10), (5, 30)], ENDS, owned=(0, 30)) == []


def test_between_two_copies_an_offset_may_have_moved_at_any_time():
    saved = [(0, 30), (100, 95), (199, 190)]
    assert found_of([], ENDS, saved=saved, copies=[0, 100, 199]) == []
    assert found_of([], ENDS, saved=saved, copies=[0, 80, 100, 199]) == [(30, 90, 0)]


def test_refusals_are_counted():
    busy = [{"request_ts": at(s), "response_code": 2, "broker_id": 1} for s in range(20, 90, 10)]
    assert found_of([(0, 10), (5, 30), (100, 95), (150, 96), (199, 97)], ENDS, pulls=busy) == [(30, 110, 7)]


def test_no_rows_give_no_standstills():
    none = held([], [])
    assert none.is_empty()
    assert none.schema == held([still_queue(standstill(30, 5, 10, 100))], [span("c", 0, 200)]).schema
    assert none.schema["refused"] == pl.Int64
