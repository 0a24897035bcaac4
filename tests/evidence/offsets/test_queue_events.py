"""Events of queues from silver frames, and what adds up over shards: a night in shards gives what it gives in one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random

import polars as pl
import pyarrow as pa
import pytest

from last_instants import last_instant_of_shard
from mqreplay.decisions.failover_exposure import failover_exposure, lacked_by_minute, lacked_of_shard
from mqreplay.decisions.group_status import group_status, merged_status, status_of_shard
from mqreplay.decisions.offset_continuity import skips, suspects
from mqreplay.decisions.queue_progress import queue_progress
from mqreplay.decisions.status_windows import windows
from mqreplay.evidence.client_clocks import client_clocks, clock_samples
from mqreplay.evidence.offsets.queue_events import (
    CHANGE_ROW,
    COMMIT_ROW,
    PULL_ROW,
    STATS_ROW,
    QueueEvents,
    groups_with_accepted_commits_of_shard,
    last_copies,
    last_instant,
    queue_events,
)
from mqreplay.evidence.offsets.slave_copies import both_files
from mqreplay.evidence.offsets.standstills import standstill_spans
from queue_answers import slave_copies
from queue_recordings import (
    SEEDS,
    START,
    STUCK_S,
    WINDOW_S,
    Event,
    Silver,
    copies_of,
    recorded,
    silver,
    slaves_of,
    table,
)
from queue_shards import queue_shards
from silver_moments import at
from silver_rows import rows

Lines = Counter[str]


def whole(frames: Silver) -> QueueEvents:
    return queue_events(*frames, groups_with_accepted_commits_of_shard(frames.offset_commit))


def with_ends(events: Iterable[Event]) -> list[Event]:
    """The events, less the ends of queues of which nothing else is known."""
    kept = [e for e in events if e.what != STATS_ROW]
    queues = {e.queue for e in kept}
    return kept + [e for e in events if e.what == STATS_ROW and e.queue in queues]


def lines(found: pa.Table | pl.DataFrame) -> Lines:
    """The rows in no order."""
    each = found.to_pylist() if isinstance(found, pa.Table) else found.to_dicts()
    return Counter(map(repr, each))


def test_events_are_the_rows_of_the_silver_tables() -> None:
    for seed in SEEDS[::4]:
        events, _ = recorded(seed)
        assert lines(whole(silver(events)).rows) == lines(table(with_ends(events))), seed


CHANGED = {"source_name": "b-0", "broker_name": "b", "broker_id": 0, "topic": "T", "consumer_group": "g", "queue_id": 0}
SENT = {"client_id": "c", "consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0, "broker_id": 0}
POLLED = {"broker_name": "b", "topic": "T", "broker_id": 0}
NO_STATS = rows("silver.topic_stats", {}, [])


def of_rows(
    changed: Sequence[dict[str, object]] = (),
    sent: Sequence[dict[str, object]] = (),
    pulled: Sequence[dict[str, object]] = (),
    polled: Sequence[dict[str, object]] = (),
) -> Silver:
    return Silver(
        rows("silver.offset_change", CHANGED, changed),
        rows("silver.offset_commit", SENT | {"kind": "UPDATE"}, sent),
        rows("silver.pull", SENT, pulled),
        rows("silver.topic_stats", POLLED, polled),
    )


def kinds(frames: Silver) -> list[int]:
    return whole(frames).rows["what"].to_pylist()


def test_files_of_clients_and_questions_are_no_events() -> None:
    saved = {"to_ts": at(1), "new_offset": 5}
    assert kinds(of_rows(changed=[saved, saved | {"broker_id": None, "client_id": "c"}])) == [CHANGE_ROW]
    commit = {"ts": at(1), "commit_offset": 5}
    assert kinds(of_rows(sent=[commit, commit | {"kind": "QUERY"}, {"ts": at(1)}])) == [COMMIT_ROW]


def ends(*queues: tuple[str, int], topic: str = "T") -> list[tuple[str, str, int, int, int, None]]:
    return [(topic, name, queue_id, 0, 9, None) for name, queue_id in queues]


def test_statistics_are_of_a_masters_answer_and_name_their_own_queues() -> None:
    polls = [
        {"ts": at(1), "offsets": ends(("b", 0), ("b", 1), ("z", 0))},
        {"ts": at(2), "offsets": ends(("b", 0), topic="U")},
        {"ts": at(3), "offsets": ends(("b", 0)), "broker_name": None, "topic": "asked"},
        {"ts": at(4), "offsets": ends(("b", 0)), "broker_id": 1},
        {"ts": at(5), "offsets": ends(("b", 0)), "broker_id": None},
        {"ts": at(6), "offsets": None},
        {"ts": at(7), "offsets": []},
    ]
    frames = of_rows(sent=[{"ts": at(1), "commit_offset": 5}], polled=polls)
    found = whole(frames).rows.filter(pa.array([False, True, True]))
    assert found["at"].to_pylist() == [at(1), at(3)]
    assert found["max_offset"].to_pylist() == [9, 9]


def test_a_groups_snapshots_count_where_no_commit_of_it_reached_a_broker() -> None:
    saved = {"to_ts": at(1), "new_offset": 5}
    changed = [saved, saved | {"new_offset": None}, saved | {"broker_id": 1}]
    sent = [{"ts": at(1), "commit_offset": 5, "error": "connect failed"}, {"ts": at(1), "commit_offset": None}]
    frames = of_rows(changed, sent)
    assert groups_with_accepted_commits_of_shard(frames.offset_commit) == set()
    assert whole(frames).rows["counts"].to_pylist() == [True, False, False, False]
    assert queue_events(*frames, {"g"}).rows["counts"].to_pylist() == [False] * 4
    assert groups_with_accepted_commits_of_shard(of_rows(sent=[{"ts": at(1), "commit_offset": 0}]).offset_commit) == {
        "g"
    }


def ms(seconds: float) -> int:
    return int(at(seconds).timestamp() * 1000)


def test_the_last_instant_is_of_a_commit_that_counts_or_a_masters_end() -> None:
    commit = {"ts": at(10), "commit_offset": 5}
    pull = {"request_ts": at(1), "max_offset": 9}
    poll = {"ts": at(80), "offsets": ends(("elsewhere", 0))}
    # Each row is later than the one before it, and last if it is of any use.
    for frames, want in (
        (of_rows(), None),
        (of_rows(changed=[{"to_ts": at(5), "new_offset": 5}, {"to_ts": at(9), "new_offset": None}]), 5),
        (of_rows(changed=[{"to_ts": at(99), "new_offset": 5}], sent=[commit]), 10),
        (of_rows(sent=[commit, commit | {"ts": at(20), "error": "e"}]), 10),
        (of_rows(pulled=[pull | {"response_ts": at(30)}, pull | {"request_ts": at(40)}]), 40),
        (of_rows(pulled=[pull, {"request_ts": at(50)}, pull | {"request_ts": at(60), "broker_id": 1}]), 1),
        (of_rows(sent=[commit], polled=[poll, poll | {"ts": at(90), "offsets": []}]), 80),
        (of_rows(sent=[commit], polled=[poll | {"ts": at(1)}]), 10),
    ):
        found = last_instant([None, last_instant_of_shard(whole(frames))], frames.topic_stats)
        assert found == (None if want is None else ms(want)), frames
    assert last_instant([], NO_STATS) is None


def test_a_last_instant_is_cut_to_milliseconds() -> None:
    frames = of_rows(sent=[{"ts": at(10.000_9), "commit_offset": 5}])
    assert last_instant([last_instant_of_shard(whole(frames))], NO_STATS) == ms(10)


def test_when_a_brokers_file_was_last_copied() -> None:
    copy = {"source_name": "b-0", "broker_name": "b", "broker_id": 0, "file_name": "consumerOffset.json"}
    copies = [
        *[{"ts": at(s)} for s in (1, 3, 2)],
        {"ts": at(9), "file_name": "topics.json"},
        {"ts": at(9), "broker_id": None, "client_id": "c"},
        {"ts": at(4), "broker_id": 1, "file_name": "consumerOffset.json.gz"},
        {"ts": at(5), "broker_id": 2},
        {"ts": at(6), "broker_name": "z", "broker_id": 1},
    ]
    counts = {"entries": 1, "changed": 0}
    found = last_copies(rows("silver.snapshot", copy | counts, copies))
    assert found.of_masters == {"b": ms(3) * 1000}
    assert found.of_slaves == {"b": {1: ms(4) * 1000, 2: ms(5) * 1000}, "z": {1: ms(6) * 1000}}
    assert last_copies(rows("silver.snapshot", {}, [])) == ({}, {})


# What adds up over shards.


def answers(frames: Silver, shards: int, seed: int) -> dict[str, Lines | int | list[dict[str, object]] | None]:
    """Everything that is made of a night's shards."""
    parts = list(zip(*(queue_shards(frame, shards) for frame in frames[:3]), strict=True))
    groups = set().union(*(groups_with_accepted_commits_of_shard(commits) for _, commits, _ in parts))
    events = [queue_events(*part, frames.topic_stats, groups) for part in parts]
    last = last_instant(map(last_instant_of_shard, events), frames.topic_stats)
    copies = [slave_copies(part, slaves_of(seed), STUCK_S * 1000) for part in events]
    status = [status_of_shard(windows(part, WINDOW_S, last or 0)) for part in events]
    lacked = lacked_by_minute([lacked_of_shard(both_files(part, slaves_of(seed))) for part in events])
    samples = [pl.DataFrame(clock_samples(part)) for part in events]
    per_queue: dict[str, list[pa.Table | pl.DataFrame]] = {
        "samples": list(samples),
        "suspects": [suspects(part) for part in events],
        "skips": [skips(part) for part in events],
        "standing": [standstill_spans(part, STUCK_S, copies_of(seed)) for part in events],
        "copies": list(copies),
        "queue_progress": [queue_progress(part) for part in events],
    }
    order = Random(seed).sample(status, len(status))
    by_two = [merged_status(order[:2]), merged_status(order[2:])]
    return {
        "groups": sorted(groups),
        "last": last,
        "group_status": lines(group_status(by_two, WINDOW_S)),
        "failover_exposure": lines(failover_exposure(rows("silver.broker_runtime", {}, []), lacked)),
        "client_clocks": client_clocks(samples, 60).to_dicts(),
        **{name: sum(map(lines, tables), Lines()) for name, tables in per_queue.items()},
    }


@pytest.mark.parametrize("seeds", [SEEDS[::8], pytest.param(SEEDS[::4], marks=pytest.mark.long)], ids=len)
def test_a_night_in_shards_gives_what_it_gives_in_one(seeds: Sequence[int]) -> None:
    met: Counter[str] = Counter()
    for seed in seeds:
        events, _ = recorded(seed, open_ties=True)
        frames = silver(events)
        want = answers(frames, 1, seed)
        for shards in (2, 7):
            found = answers(frames, shards, seed)
            for name, of_one in want.items():
                assert found[name] == of_one, (seed, shards, name)
        met.update(name for name, of_one in want.items() if of_one)
    assert met.keys() == want.keys()


@pytest.mark.parametrize("missing", [CHANGE_ROW, COMMIT_ROW, PULL_ROW, STATS_ROW])
def test_a_night_without_one_of_the_tables(missing: int) -> None:
    for seed in SEEDS[1::40]:
        events = [e for e in recorded(seed, open_ties=True)[0] if e.what != missing]
        assert answers(silver(events), 1, seed) == answers(silver(events), 7, seed), seed


def test_a_night_without_rows() -> None:
    found = answers(silver([]), 3, 0)
    assert not any(found.values())


def test_ends_of_other_queues_change_no_result() -> None:
    for seed in SEEDS[2::20]:
        events, _ = recorded(seed, open_ties=True)
        others = [
            Event(STATS_ROW, *queue, broker_id=0, at=START + 1, min_offset=3, max_offset=4)
            for queue in (("broker-a", "Orders", 9), ("broker-a", "Others", 0), ("broker-c", "Orders", 0))
        ]
        frames = silver(events)
        with_others = whole(frames._replace(topic_stats=silver([*events, *others]).topic_stats))
        assert lines(with_others.rows) == lines(whole(frames).rows), seed
        # Nor would they if they were kept.
        kept, left_out = QueueEvents(table([*events, *others])), QueueEvents(table(events))
        for find in (clock_samples, suspects, skips, queue_progress):
            assert lines(find(kept)) == lines(find(left_out)), seed
        found = [
            [
                lines(windows(of, WINDOW_S, START // 1000)),
                lines(standstill_spans(of, STUCK_S, copies_of(seed))),
                lines(slave_copies(of, slaves_of(seed), STUCK_S * 1000)),
            ]
            for of in (kept, left_out)
        ]
        assert found[0] == found[1], seed
