"""Wrong clocks and corrected times: just below and above each bound, and compared with core."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from random import Random

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.core.client_clock import ClockSample
from mqreplay.core.clock_stretch import SURE_MS, ClockStretch, clock_stretches, recorders_ms
from mqreplay.evidence.client_clocks import (
    SCHEMA,
    WORDS,
    Stretch,
    Words,
    by_recorders_clock,
    client_clocks,
    client_words,
    stretches,
)
from mqreplay.evidence.queue_events import queue_events
from queue_shards import queue_shards
from silver_moments import at
from silver_rows import rows

QUEUE = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0}
COMMIT = QUEUE | {"client_id": "b", "kind": "UPDATE"}
UTC = pl.Datetime("us", "UTC")
HOUR = 3_600_000
MOST_MS = 60_000
COPY_MS = 5_000
WRITTEN_MS = 3_000  # a commit is shown by a copy of about so long after
Word = tuple[str, int, int, int, int]


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
        words = [pl.DataFrame(client_words(queue_events(*part, *none, {"g"}))) for part in parts]
        found = client_clocks(words, 60)
        assert found.schema == SCHEMA
        assert found.select("client_id", "skew_ms", "said_until_ms").rows() == [("b", HOUR, None)]
    right = by_recorders_clock(sent, found, "ts")
    assert right.schema == sent.schema
    assert right["ts"].to_list() == [at(10 * n) for n in range(1, 6)] * 2
    assert right.drop("ts").equals(sent.drop("ts"))


def words_of(*each: Word) -> pl.DataFrame:
    return pl.DataFrame(each, WORDS, orient="row")


def test_copies_far_apart_leave_open_whether_a_clock_is_off() -> None:
    given = [("near", 70_000, 135_000, 10), ("far", HOUR, 135_000, 10), ("seldom", HOUR, 0, 2)]
    each = [(who, off + n, n, off, unsure) for who, off, unsure, count in given for n in range(0, count * 5_000, 5_000)]
    assert client_clocks([words_of(*each)], 60)["client_id"].to_list() == ["far"]


@pytest.mark.parametrize("shards", [1, 3])
def test_words_of_a_client_count_together_whichever_queues_they_are_of(shards: int) -> None:
    said = [("c", HOUR + n, n, HOUR, 0) for n in range(0, 15_000, 5_000)]
    assert client_clocks([words_of(*said[part::shards]) for part in range(shards)], 60)["matches"].to_list() == [3]


def test_what_is_found_is_what_is_found_of_each_client_by_itself() -> None:
    met = set()
    for seed in range(60):
        random = Random(seed)
        each: list[Word] = []
        for client in ("c2", "c1", "c3", "c4"):
            jump, skews = random.randrange(40), [random.choice([0, 0, HOUR, -HOUR, 61_000]) for _ in range(2)]
            for copy in range(random.choice([1, 2, 3, 40])):
                off = skews[copy >= jump] - 3_000 + random.randrange(500)
                shown = copy * 5_000
                each.append((client, shown + off, shown, off, random.choice([0, 0, 900])))
        want = []
        for client in sorted({word[0] for word in each}):
            own = [ClockSample(*word[1:]) for word in each if word[0] == client]
            want += [(client, *stretch) for stretch in clock_stretches(own, 60_000)]
        random.shuffle(each)
        assert client_clocks([words_of(*each[part::3]) for part in range(3)], 60).rows() == want, seed
        met.add(len(want))
    assert len(met) > 3


@pytest.mark.parametrize("parts", [[], [words_of()], [words_of(), words_of(("c", 0, 0, 0, 0))]])
def test_where_no_clock_is_off_there_are_no_rows(parts: list[pl.DataFrame]) -> None:
    found = client_clocks(parts, 60)
    assert found.is_empty()
    assert found.schema == SCHEMA


# Put right.


def skewed(*each: tuple[str, int | None, int]) -> pl.DataFrame:
    """Stretches: client, until when by its clock (ms), by how much it is ahead (ms)."""
    return pl.DataFrame([(who, until, None, None, skew, 9) for who, until, skew in each], SCHEMA, orient="row")


def ms(seconds: float) -> int:
    return int(at(seconds).timestamp() * 1000)


def test_a_clock_that_jumps_is_put_right_in_each_of_its_stretches() -> None:
    sent = rows("silver.offset_commit", COMMIT, [{"ts": at(s)} for s in (0, 99, 3_700)])
    right = by_recorders_clock(sent, skewed(("b", ms(200), 0), ("b", None, HOUR)), "ts")
    assert right["ts"].to_list() == [at(s) for s in (0, 99, 100)]


def test_all_instants_go_by_the_stretch_of_the_first() -> None:
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
            # A clock that went back may begin a stretch before the one before it ends.
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
            of_client = [ClockStretch(until, None, None, skew, 9) for who, until, skew in found if who == client]
            return recorders_ms(us // 1000, of_client) * 1000

        put = by_recorders_clock(frame, skewed(*found), "ts", "also")
        want = [right(client, us) for client, us in frame.select("client_id", pl.col("ts").cast(pl.Int64)).rows()]
        assert put["ts"].cast(pl.Int64).to_list() == want, seed
        assert put["also"].equals(put["ts"])
        assert put["client_id"].equals(frame["client_id"])


def told(off: Callable[[int], int], copies: int = 100, unsure: int = 0) -> Words:
    """A word a copy, said by a clock that is ``off`` by so much at the moment of the copy."""
    shown = np.arange(copies) * COPY_MS + 1_000_000
    off_ms = np.array([off(number) - WRITTEN_MS for number in range(copies)])
    return Words(shown + off_ms, shown, off_ms, np.full(copies, unsure))


def skews(words: Words) -> list[int]:
    return [stretch.skew_ms for stretch in stretches(words, MOST_MS)]


def test_a_clock_that_is_right_or_nearly_so_is_not_told() -> None:
    assert skews(told(lambda n: 0)) == []
    assert skews(told(lambda n: 59_000)) == []
    assert skews(told(lambda n: 100_000, unsure=50_000)) == []


def test_a_clock_that_is_off_all_night_is_one_stretch() -> None:
    assert stretches(told(lambda n: HOUR), MOST_MS) == [Stretch(None, None, None, HOUR, 100)]
    assert skews(told(lambda n: HOUR, copies=3)) == [HOUR]
    assert skews(told(lambda n: HOUR, copies=2)) == []


@pytest.mark.parametrize("since", [6, 50, 94])
@pytest.mark.parametrize("by", [HOUR, -HOUR, 65_000])
def test_a_clock_that_jumps_has_a_stretch_before_and_one_after(since: int, by: int) -> None:
    words = told(lambda n: by if n >= since else 0)
    before, after = stretches(words, MOST_MS)
    assert (before.skew_ms, after.skew_ms) == (0, by)
    assert before.matches + after.matches == 100
    if by > 0:
        assert words.said[since - 1] < before.said_until_ms <= words.said[since]
    else:
        assert before.said_until_ms == words.said[since - 1] + 1
    assert (before.shown_until_ms, after.shown_from_ms) == (words.shown[since - 1], words.shown[since])


def test_a_clock_that_is_set_right_again_has_three() -> None:
    assert skews(told(lambda n: HOUR if 40 <= n < 60 else 0)) == [0, HOUR, 0]


def test_what_shows_for_a_moment_only_is_no_stretch() -> None:
    least = SURE_MS // COPY_MS
    assert skews(told(lambda n: HOUR if 40 <= n < 40 + least else 0)) == []
    assert skews(told(lambda n: HOUR if 40 <= n <= 40 + least else 0)) == [0, HOUR, 0]
    assert skews(told(lambda n: HOUR if n >= 100 - least else 0)) == []


def test_single_words_that_say_otherwise_end_no_stretch() -> None:
    wrong = {10, 11, 30, 50, 70, 71}
    assert skews(told(lambda n: 0 if n in wrong else HOUR)) == [HOUR]
    assert skews(told(lambda n: HOUR if n in wrong else 0)) == []


def test_commits_that_a_broker_lost_while_it_was_down_are_no_clock() -> None:
    """All of ten minutes are in the first copy after its return, a queue's last ones or those of many queues."""
    usual = told(lambda n: 0)
    back, said = usual.shown[50], np.linspace(usual.shown[50] - 600_000, usual.shown[50], 200).astype(np.int64)
    lost = Words(said, np.full(200, back), said - back, np.zeros(200, np.int64))
    pairs = zip(vars(usual).values(), vars(lost).values(), strict=True)
    assert skews(Words(*map(np.concatenate, pairs))) == []


def test_a_word_that_is_unsure_by_the_jump_itself_joins_no_stretches() -> None:
    usual = told(lambda n: HOUR if n >= 50 else 0)
    unsure = usual.unsure.copy()
    unsure[49:51] = HOUR // 2
    assert skews(Words(usual.said, usual.shown, usual.off, unsure)) == [0, HOUR]


def test_the_order_of_words_does_not_matter() -> None:
    words = told(lambda n: HOUR if n >= 50 else 0)
    found = stretches(words, MOST_MS)
    for seed in range(20):
        assert stretches(words.of(np.random.default_rng(seed).permutation(100)), MOST_MS) == found


@st.composite
def jumping_clocks(draw: st.DrawFn) -> list[ClockSample]:
    """Samples of a clock that is set a few times, some of them unsure or wrong, and some of one copy."""
    offs = st.sampled_from([0, 0, 60_000, 60_001, HOUR, -HOUR, -63_000])
    found: list[ClockSample] = []
    shown = 0
    for off in draw(st.lists(offs, min_size=1, max_size=4)):
        for _ in range(draw(st.integers(1, 9))):
            shown += draw(st.sampled_from([0, COPY_MS, COPY_MS, 4 * COPY_MS]))
            wrong = draw(st.sampled_from([0] * 8 + [HOUR, -14_999, 15_000, 15_001]))
            off_ms = off + wrong - WRITTEN_MS + draw(st.integers(-500, 500))
            found.append(ClockSample(shown + off_ms, shown, off_ms, draw(st.sampled_from([0, 0, 0, 1_000, HOUR // 2]))))
    return found


@given(jumping_clocks(), st.sampled_from([1, MOST_MS, HOUR - 1_000]))
def test_stretches_are_those_of_the_law(samples: list[ClockSample], most_ms: int) -> None:
    words = Words(*(np.array(column) for column in zip(*samples, strict=True)))
    found = [tuple(vars(stretch).values()) for stretch in stretches(words, most_ms)]
    assert found == [tuple(stretch) for stretch in clock_stretches(samples, most_ms)]
