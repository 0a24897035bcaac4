"""Turns of a producer's threads: as the rule of core finds them, and only where they are hardly chance."""

from __future__ import annotations

import random
from collections.abc import Sequence

import polars as pl
import pytest

from mqreplay.core.select_queue import continues_a_turn
from mqreplay.evidence.messages import sends as module
from mqreplay.evidence.messages.sends import thread_turns


def sends(producers: Sequence[tuple[int, Sequence[int]]]) -> pl.DataFrame:
    """First tries of several producers, each with its number of queues and the positions of its sends, interleaved."""
    listed = [
        {"producer": number, "queues": queues, "position": position, "nth": nth}
        for number, (queues, positions) in enumerate(producers)
        for nth, position in enumerate(positions)
    ]
    listed.sort(key=lambda row: (row["nth"], row["producer"]))
    return pl.DataFrame(listed).with_columns(
        pl.int_range(pl.len()).alias("send"), pl.col("position").alias("from_position"), pl.lit(True).alias("is_first")
    )


def by_threads(threads: int, queues: int, count: int, seed: int) -> list[int]:
    """The positions of sends of threads that take the queues in turn, each with a counter that begins at random."""
    rng = random.Random(seed)
    counters = [rng.randrange(queues) for _ in range(threads)]
    positions = []
    for _ in range(count):
        thread = rng.randrange(threads)
        positions.append(counters[thread])
        counters[thread] = (counters[thread] + 1) % queues
    return positions


@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_rule_of_core(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHANCE", float("inf"))
    rng = random.Random(seed)
    made = []
    for _ in range(rng.randrange(1, 6)):
        queues = rng.randrange(1, 7)
        made.append((queues, [rng.randrange(queues) for _ in range(rng.randrange(1, 60))]))
    rows = sends(made)
    found = dict(thread_turns(rows).select("send", "continues_turn").iter_rows())
    for number, (queues, positions) in enumerate(made):
        mine = rows.filter(producer=number).sort("send")["send"]
        assert [found[send] for send in mine] == continues_a_turn(positions, queues)


@pytest.mark.parametrize(("threads", "queues"), [(1, 4), (2, 4), (4, 4), (6, 8), (9, 4)])
def test_threads_in_turn_are_found_also_if_they_are_more_than_the_queues(threads: int, queues: int) -> None:
    rows = sends([(queues, by_threads(threads, queues, 2000, threads))])
    found = thread_turns(rows)
    assert len(found) == 2000
    assert (~found["continues_turn"]).sum() <= threads


@pytest.mark.parametrize(
    "positions",
    [
        [random.Random(1).randrange(4) for _ in range(3000)],
        [3] * 3000,
        [min(int(random.Random(n).expovariate(1)), 3) for n in range(3000)],
        [n % 4 for n in range(9)],
        [(4 - n) % 4 for n in range(40)],
        by_threads(4, 4, 30, 5),
    ],
    ids=["at random", "one queue", "most to one queue", "few sends", "backwards", "few sends of threads"],
)
def test_what_may_be_chance_is_not_judged(positions: list[int]) -> None:
    assert thread_turns(sends([(4, positions)])).is_empty()


def test_one_queue_proves_nothing() -> None:
    assert thread_turns(sends([(1, [0] * 500)])).is_empty()


def test_a_producer_in_turn_does_not_vouch_for_another() -> None:
    rng = random.Random(3)
    rows = sends([(4, by_threads(3, 4, 400, 1)), (4, [rng.randrange(4) for _ in range(400)])])
    found = thread_turns(rows).join(rows, "send")
    assert set(found["producer"]) == {0}


def test_a_retry_takes_its_thread_to_another_queue() -> None:
    """The thread took place 1, which failed; its retry took 3 (2 is on the same broker), and then it took 0."""
    positions = [*(n % 4 for n in range(200)), 0, 1, 3, *(n % 4 for n in range(200))]
    rows = sends([(4, positions)])
    is_retry = pl.col("send") == 202
    retried = rows.with_columns(
        pl.when(is_retry).then(2).otherwise("from_position").alias("from_position"), (~is_retry).alias("is_first")
    )
    assert (~thread_turns(retried)["continues_turn"]).sum() == 1
    assert (~thread_turns(rows)["continues_turn"]).sum() == 2
