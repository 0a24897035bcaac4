"""Wrong clocks and corrected times: just below and above each bound, and compared with core."""

from __future__ import annotations

import datetime as dt
from random import Random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core.clock_span import ClockSample, ClockSpan, clock_spans
from mqreplay.evidence.client_clocks import CLOCK_SCHEMA, SAMPLES, by_recorders_clock, client_clocks, clock_samples
from mqreplay.evidence.offsets.queue_events import queue_events
from oracles.client_clock import recorders_ms
from queue_shards import queue_shards
from silver_moments import at
from silver_rows import rows

QUEUE = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0}
COMMIT = QUEUE | {"client_id": "b", "kind": "UPDATE"}
UTC = pl.Datetime("us", "UTC")
HOUR = 3_600_000
Sample = tuple[str, int, int, int, int]  # of SAMPLES' columns


def test_a_clock_that_is_off_is_found_by_commits_and_put_right() -> None:
    commits = [
        {"client_id": client, "ts": at(off + 10 * n), "commit_offset": 10 * n, "queue_id": queue}
        for client, off, queue in (("a", 0, 1), ("b", 3600, 2))
        for n in range(1, 6)
    ]
    changes = [
        {"previous_offset": 10 * (n - 1), "new_offset": 10 * n, "to_ts": at(10 * n + 3), "queue_id": queue}
        for n in range(1, 6)
        for queue in (1, 2)
    ]
    sent = rows("silver.offset_commit", COMMIT, commits)
    changed = rows("silver.offset_change", QUEUE | {"broker_id": 0, "source_name": "b-0"}, changes)
    none = rows("silver.pull", {}, []), rows("silver.topic_stats", {}, [])
    for shards in (1, 7):
        parts = zip(queue_shards(changed, shards), queue_shards(sent, shards), strict=True)
        samples = [pl.DataFrame(clock_samples(queue_events(*part, *none, {"g"}))) for part in parts]
        found = client_clocks(samples, 60)
        assert found.schema == CLOCK_SCHEMA
        assert found.select("client_id", "skew_ms", "stated_until_ms").rows() == [("b", HOUR, None)]
    right = by_recorders_clock(sent, found, "ts")
    assert right.schema == sent.schema
    assert right["ts"].to_list() == [at(10 * n) for n in range(1, 6)] * 2
    assert right.drop("ts").equals(sent.drop("ts"))


def samples_of(*each: Sample) -> pl.DataFrame:
    return pl.DataFrame(each, SAMPLES, orient="row")


def test_copies_far_apart_leave_open_whether_a_clock_is_off() -> None:
    cases = [("near", 70_000, 135_000, 10), ("far", HOUR, 135_000, 10), ("seldom", HOUR, 0, 2)]
    each = [(who, off + n, n, off, unsure) for who, off, unsure, count in cases for n in range(0, count * 5_000, 5_000)]
    assert client_clocks([samples_of(*each)], 60)["client_id"].to_list() == ["far"]


@pytest.mark.parametrize("shards", [1, 3])
def test_samples_of_a_client_count_together_whichever_queues_they_are_of(shards: int) -> None:
    stated = [("c", HOUR + n, n, HOUR, 0) for n in range(0, 15_000, 5_000)]
    assert client_clocks([samples_of(*stated[part::shards]) for part in range(shards)], 60)["matches"].to_list() == [3]


def test_what_is_found_is_what_is_found_of_each_client_by_itself() -> None:
    met = set()
    for seed in range(60):
        random = Random(seed)
        each: list[Sample] = []
        for client in ("c2", "c1", "c3", "c4"):
            jump, skews = random.randrange(40), [random.choice([0, 0, HOUR, -HOUR, 61_000]) for _ in range(2)]
            for copy in range(random.choice([1, 2, 3, 40])):
                off = skews[copy >= jump] - 3_000 + random.randrange(500)
                shown = copy * 5_000
                each.append((client, shown + off, shown, off, random.choice([0, 0, 900])))
        want = []
        for client in sorted({sample[0] for sample in each}):
            own = [ClockSample(*sample[1:]) for sample in each if sample[0] == client]
            want += [(client, *span) for span in clock_spans(own, 60_000)]
        random.shuffle(each)
        assert client_clocks([samples_of(*each[part::3]) for part in range(3)], 60).rows() == want, seed
        met.add(len(want))
    assert len(met) > 3


OFF_MS, UNSURE_MS = (-62_000, 0, 58_999, 61_000, 66_999, 67_001, 70_000), (0, 4_000, 9_999, 10_001)
COPIED = st.tuples(st.integers(0, 20), st.sampled_from(OFF_MS), st.sampled_from(UNSURE_MS))


@given(st.lists(COPIED, min_size=3, max_size=12), st.integers(1, 3))
def test_no_client_is_left_out_that_core_finds(copies: list[tuple[int, int, int]], apart: int) -> None:
    # Offs and uncertainties around the bound: the medians of a client may be off where few of its samples are.
    samples = [(5_000 * apart * n + off, 5_000 * apart * n, off - 3_000, unsure) for n, off, unsure in copies]
    want = [("c", *span) for span in clock_spans([ClockSample(*each) for each in samples], 60_000)]
    assert client_clocks([samples_of(*(("c", *each) for each in samples))], 60).rows() == want


@pytest.mark.parametrize("parts", [[], [samples_of()], [samples_of(), samples_of(("c", 0, 0, 0, 0))]])
def test_where_no_clock_is_off_there_are_no_rows(parts: list[pl.DataFrame]) -> None:
    found = client_clocks(parts, 60)
    assert found.is_empty()
    assert found.schema == CLOCK_SCHEMA


# Put right.


def skewed(*each: tuple[str, int | None, int]) -> pl.DataFrame:
    """Spans: client, until when by its clock (ms), by how much it is ahead (ms)."""
    return pl.DataFrame([(who, until, None, None, skew, 9) for who, until, skew in each], CLOCK_SCHEMA, orient="row")


def ms(seconds: float) -> int:
    return int(at(seconds).timestamp() * 1000)


def test_a_clock_that_jumps_is_put_right_in_each_of_its_spans() -> None:
    sent = rows("silver.offset_commit", COMMIT, [{"ts": at(s)} for s in (0, 99, 3_700)])
    right = by_recorders_clock(sent, skewed(("b", ms(200), 0), ("b", None, HOUR)), "ts")
    assert right["ts"].to_list() == [at(s) for s in (0, 99, 100)]


def test_all_instants_go_by_the_span_of_the_first() -> None:
    pull = rows(
        "silver.pull",
        QUEUE | {"client_id": "b", "queue_offset": 0},
        [{"request_ts": at(199), "response_ts": at(201)}, {"request_ts": at(200), "response_ts": None}],
    )
    right = by_recorders_clock(pull, skewed(("b", ms(200), 1_000), ("b", None, 2_000)), "request_ts", "response_ts")
    assert right["request_ts"].to_list() == [at(198), at(198)]
    assert right["response_ts"].to_list() == [at(200), None]


def test_instants_put_right_are_whole_milliseconds() -> None:
    sent = rows("silver.offset_commit", COMMIT, [{"ts": at(0.000_999)}, {"ts": at(0.000_999), "client_id": "other"}])
    assert by_recorders_clock(sent, skewed(("b", None, 1)), "ts")["ts"].to_list() == [at(-0.001), at(0)]
    early = pl.DataFrame({"client_id": ["b"], "ts": [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC)]})
    early = early.with_columns(pl.col("ts").cast(UTC))
    assert by_recorders_clock(early, skewed(("b", None, 0)), "ts")["ts"][0].microsecond == 999_000


def test_rows_are_put_right_as_row_by_row() -> None:
    for seed in range(40):
        random = Random(seed)
        found = [
            (client, until, random.choice([0, HOUR, -HOUR, 5]))
            for client in random.sample(("c1", "c2", "c3"), 2)
            # A clock that went back may begin a span before the one before it ends.
            for until in [*(random.randrange(10) * 100 for _ in range(random.randrange(4))), None]
        ]
        frame = pl.DataFrame(
            [
                (random.choice(["c1", "c2", "c3", None]), *(random.choice([None, random.randrange(10**6)]),) * 2)
                for _ in range(50)
            ],
            {"client_id": pl.String, "ts": UTC, "also": UTC},
            orient="row",
        )

        def right(client: str | None, us: int | None, found: list[tuple[str, int | None, int]] = found) -> int | None:
            if us is None:
                return None
            of_client = [ClockSpan(until, None, None, skew, 9) for who, until, skew in found if who == client]
            return recorders_ms(us // 1000, of_client) * 1000

        put = by_recorders_clock(frame, skewed(*found), "ts", "also")
        want = [right(client, us) for client, us in frame.select("client_id", pl.col("ts").cast(pl.Int64)).rows()]
        assert put["ts"].cast(pl.Int64).to_list() == want, seed
        assert put["also"].equals(put["ts"])
        assert put["client_id"].equals(frame["client_id"])
