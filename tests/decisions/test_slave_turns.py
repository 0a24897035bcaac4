"""gold.slave_copy against slaves that copy by core: sync_configs at each turn that is_due, from the master they ask."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest

from decisions.test_slave_copy import of, polls, topic
from evidence.offsets.slave_turns import MASTER, SLAVE, at_time, turns
from mqreplay.core.slave_synchronize import staleness_max, sync_configs
from mqreplay.decisions.slave_copy import slave_copy
from silver_moments import at
from silver_rows import rows

LONG = 900  # seconds
NAMES = ("a", "b", "c", "d")
Table = dict[str, int]  # topic -> perm
History = dict[int, Table]


def master_history(pick: random.Random) -> History:
    """A master's topics: each change adds a topic, removes one or changes its perm."""
    history: History = {0: {"a": 6, "b": 6}}
    table = history[0]
    for ms in sorted(pick.sample(range(30_000, (LONG - 60) * 1000), 6)):
        table = dict(table)
        name = pick.choice(NAMES)
        if name in table and pick.random() < 0.3:
            del table[name]
        else:
            table[name] = pick.choice([perm for perm in (2, 4, 6) if perm != table.get(name)])
        history[ms] = table
    return history


def slave_history(master: History, version: str, pick: random.Random, lost_after: int | None) -> History:
    """What the slave has after each of its turns; after ``lost_after`` seconds it takes itself for its master."""
    history: History = {0: dict(master[0])}
    synced = master[0]

    def master_addr(ms: int) -> str:
        return MASTER if lost_after is None or ms < lost_after * 1000 else SLAVE

    for now in turns(version, LONG, pick, master_addr=master_addr):
        current = at_time(master, now)
        # Each change of the master gives its table a new version.
        history[now] = dict(sync_configs(at_time(history, now), current, synced is current))  # type: ignore[arg-type]
        synced = current
    return history


def copies(history: History, broker_id: int, times: list[int]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of silver.topic_config and silver.snapshot of copies at these seconds: changes since the copy before."""
    topics: list[dict[str, Any]] = []
    before: Table = {}
    for s in times:
        table = at_time(history, s * 1000)
        for name in before.keys() | table.keys():
            if before.get(name) != table.get(name):
                kind = "removed" if name not in table else "changed" if name in before else "first"
                topics.append(topic(s, broker_id, name, perm=table.get(name, before.get(name)), change=kind))
        before = table
    files = [of(s, broker_id, file_name="topics.json", source_digest=f"{broker_id}-{s}") for s in times]
    return topics, files


def judged(seed: int, version: str, lost_after: int | None = None) -> tuple[pl.DataFrame, History, History]:
    pick = random.Random(seed)
    master = master_history(pick)
    slave = slave_history(master, version, pick, lost_after)
    made = [copies(history, n, list(range(5 * n, LONG, 20))) for n, history in ((0, master), (1, slave))]
    topics, files = ([row for part in made for row in part[which]] for which in (0, 1))
    found = slave_copy(
        rows("silver.topic_config", {}, topics),
        rows("silver.subscription_group", {}, []),
        rows("silver.delay_offset", {}, []),
        rows("silver.snapshot", {}, files),
        polls((0, 0, LONG), (1, 0, LONG)),
        rows("silver.broker", {}, [{"broker_name": "b", "broker_id": 1, "ts": at(0), "rocketmq_version": version}]),
    )
    return found, master, slave


@pytest.mark.parametrize("version", ["4.9.7", "5.3.3"])
def test_no_copy_of_a_slave_that_copies_differs(version: str) -> None:
    counts: dict[str, int] = {}
    for seed in range(30):
        found, _, slave = judged(seed, version)
        assert len(slave) > 10
        for verdict in found["judgement"]:
            counts[verdict] = counts.get(verdict, 0) + 1
    assert counts.get("differ", 0) == 0
    assert counts["agree"] > 10 * counts.get("undetermined", 0)


@pytest.mark.parametrize("version", ["4.9.7", "5.3.3"])
def test_a_slave_that_no_longer_copies_differs_where_its_master_changed(version: str) -> None:
    differs = 0
    for seed in range(30):
        found, master, slave = judged(seed, version, lost_after=200)
        for ts in found.filter(pl.col("judgement") == "differ")["ts"]:
            ms = int((ts - at(0)).total_seconds() * 1000)
            window = [table for since, table in master.items() if ms - staleness_max(version) <= since <= ms]
            assert at_time(slave, ms) not in [at_time(master, ms - staleness_max(version)), *window]
            differs += 1
    assert differs > 100
