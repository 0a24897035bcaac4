"""What is read of locks is the same by groups, dealt to tasks in any way, as by all rows."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

from each_case import for_each
from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.rebalance_lock_manager import LockEntry, try_lock_batch, unlock_batch
from mqreplay.decisions.judgement import judgement
from mqreplay.decisions.queue_lock import LOCK, QUEUE_LOCK, UNLOCK, queue_lock, stored_rows
from mqreplay.decisions.queue_owner import lock_intervals
from mqreplay.engines.passes import Pass
from mqreplay.engines.rows import FrameRows
from mqreplay.engines.shards import Shard
from mqreplay.evidence.client_clocks import CLOCK_SCHEMA
from mqreplay.evidence.members.agreed_lists import queue_lists
from mqreplay.evidence.messages.sent_back import lock_requests_of_shard, with_unexpired_locks
from mqreplay.findings.locks import blocked_locks
from mqreplay.lake.buckets import buckets
from mqreplay.lake.contract import arrow_schema, load_contracts
from mqreplay.replay import group_pass
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import Day, DayRows, Skew
from mqreplay.replay.group_pass import GROUP_BUCKET, LockResult
from mqreplay.replay.task_results import counted_rows
from mqreplay.settings import Settings
from silver_moments import BEGAN, at
from silver_rows import rows

Row = dict[str, Any]
Locks = Mapping[MessageQueue, LockEntry]
SECONDS = 900
GROUPS = [f"g{number}" for number in range(8)]
BROKERS = {"a": "10.0.0.1:10911", "b": "10.0.0.2:10911"}
STARTS = [at(0), at(500)]
DAY = Day("c", BEGAN.date(), dt.datetime.combine(BEGAN.date(), dt.time(), dt.UTC), is_first=True)
CONTRACTS = load_contracts()


@dataclass
class Groups:
    """Runs the pass on the rows of whole groups, as an engine does; keeps the rows of gold."""

    lock: pl.DataFrame
    shards: Sequence[Shard] = ()
    gold: dict[str, list[pl.DataFrame]] = field(default_factory=dict)

    @property
    def source(self) -> FrameRows:
        return self.of(self.lock)

    @staticmethod
    def of(part: pl.DataFrame) -> FrameRows:
        schemas = {}
        for table in group_pass.GROUP_PASS.tables:
            made = set() if table.function is None else set(table.function.gives)
            columns = [(each.name, each.type) for each in CONTRACTS[table.name].columns if each.name != "cluster"]
            columns += [(each.name, each.type) for each in CONTRACTS["gold.allocation"].columns if each.name in made]
            schemas[table.name] = pa.schema(arrow_schema(columns))
        return FrameRows(schemas, {"silver.lock": part})

    def run(self, step: Pass[Any, Any], shards: Sequence[Shard], inputs: Any) -> Iterator[Any]:
        assert "silver.lock" in [table.name for table in step.tables if table.key == GROUP_BUCKET]
        self.shards, bucket = shards, buckets(self.lock, GROUP_BUCKET)
        for shard in shards:
            part = self.lock.filter(bucket.is_between(shard.low, shard.high))
            yield step.run(self.of(part), shard, inputs, self)

    def add(self, table: str, made: pl.DataFrame) -> None:
        self.gold.setdefault(table, []).append(made)

    def commit(self, replaced: object) -> None:
        """Write nothing."""


@dataclass
class Night:
    """Requests for locks, the members of their groups, what is known of the brokers, and the clients' clocks."""

    lock: pl.DataFrame
    members: pl.DataFrame
    broker: pl.DataFrame
    broker_runtime: pl.DataFrame
    skew: Skew | None


def night(seed: int) -> Night:
    """Clients that lock their queues every 20 s; some stop, wait for locks of others, or get a wrong answer."""
    draw = random.Random(seed)
    boots = {"a": [-500.0], "b": [-500.0, draw.uniform(300, 800)][: 1 + seed % 2]}
    releasing = GROUPS if seed % 4 == 0 else GROUPS[:1] if seed % 4 == 1 else []
    found, members = list[Row](), list[Row]()
    for group in GROUPS[:-1]:  # the last one has members alone
        tables: dict[str, Locks] = {name: {} for name in BROKERS}
        clients = [f"{group}-c{number}" for number in range(draw.choice((1, 2, 3)))]
        lives = {client: (draw.choice((0, 0, 200)), draw.choice((SECONDS, SECONDS, 450))) for client in clients}
        times = sorted(
            (began + turn * 20 + draw.choice((0, 0.004, 3)) + number, client)
            for number, (client, (began, ended)) in enumerate(lives.items())
            for turn in range((ended - began) // 20)
            if draw.random() > 0.03
        )
        for second, client in times:
            for name, address in BROKERS.items():
                queues = [MessageQueue("t", name, queue) for queue in range(3)]
                first = clients.index(client) % 3
                wanted = draw.choice((queues, queues, queues[first:]))
                asked = {"consumer_group": group, "client_id": client, "broker_name": name, "broker_addr": address}
                asked |= {"broker_id": 0, "ts": at(round(second, 3)), "mq_set": wanted, "kind": LOCK}
                if group in releasing and draw.random() < 0.05:
                    tables[name] = unlock_batch(tables[name], wanted, client)
                    found.append(asked | {"kind": UNLOCK})
                    continue
                locked, tables[name] = try_lock_batch(tables[name], wanted, client, int(second * 1000))
                answer = sorted(set(wanted) - locked if draw.random() < 0.02 else locked)
                answered = {"response_ts": at(round(second + 0.01, 3)), "lock_ok_mq_set": answer}
                by_log = {"lock_ok_mq_set": answer, "other_client_id": draw.choice(clients), "broker_addr": None}
                found.append(asked | draw.choice((*[answered] * 20, {}, by_log)))
        members += [_member(group, client, *lives[client]) for client in clients]
        members += [_member(group, "no orderly client", 0, SECONDS)][: draw.random() < 0.3]
    members.append(_member(GROUPS[-1], "c", 0, SECONDS))
    draw.shuffle(found)
    strict = {"lockInStrictMode": "true", "totalReplicas": "2"} if seed % 3 == 2 else {}
    polls = [
        {"broker_name": name, "ts": at(second), "boot_ts": at(max(boot for boot in each if boot <= second))}
        for name, each in boots.items()
        for second in range(0, SECONDS, 60)
    ]
    wrong = [(f"{GROUPS[1]}-c0", None, None, None, 4_000, 9), (f"{GROUPS[3]}-c0", None, None, None, -70_000, 9)]
    return Night(
        rows("silver.lock", {}, found),
        pl.DataFrame(members),
        rows("silver.broker", {"broker_id": 0, "ts": at(0)}, [{"broker_name": "a", "properties": strict}]),
        rows("silver.broker_runtime", {"broker_id": 0}, polls),
        Skew(pl.DataFrame(wrong, CLOCK_SCHEMA, orient="row")) if seed % 3 == 1 else None,
    )


def _member(group: str, client: str, since: float, until: float) -> Row:
    return {"consumer_group": group, "client_id": client, "from_ts": at(since), "to_ts": at(until)}


def replayed(of: Night) -> tuple[LockResult, Groups, pl.DataFrame]:
    """Return what tasks find, their runner with the rows of gold, and the number of requests by group."""
    runner = Groups(of.lock)
    small = {"broker": of.broker, "broker_runtime": of.broker_runtime}
    context = ReplayContext(DAY, Settings(), {start: start for start in STARTS}, small, small, of.skew)
    lists = queue_lists(rows("silver.route", {}, []), rows("silver.topic_config", {}, []))
    asked = group_pass.asked_locks(DayRows(DAY, runner.source), context)
    shared = group_pass.group_input(context, lists, of.members, asked)
    none = rows("silver.rebalance", {}, []), rows("silver.assignment", {}, [])
    return group_pass.run_groups(runner, shared, *none, asked).locks, runner, asked


def same(one: pl.DataFrame, other: pl.DataFrame) -> None:
    assert_frame_equal(one, other, check_row_order=False)


seen: set[str] = set()


@for_each(range(8))
def _same_by_groups(seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_pass, "REQUESTS_PER_TASK", 150 + 50 * seed)
        of = night(seed)
        made, runner, asked = replayed(of)
        assert len(runner.shards) > 1
        check(of, made, runner, asked)


def check(of: Night, made: LockResult, runner: Groups, asked: pl.DataFrame) -> None:
    lock = DayRows(DAY, runner.source).silver("lock", None, of.skew)
    assert sum(asked["requests"]) == len(lock)
    same(asked.select("consumer_group").unique(), lock.select("consumer_group").unique())
    known = of.broker_runtime, of.broker, of.members, STARTS, DAY.since
    judged = queue_lock(lock, *known, UNLOCK in lock["kind"])
    seen.update(judged["judgement"], judged["reason"])
    same(stored_rows(judged), pl.concat(runner.gold[QUEUE_LOCK.table]))
    counted = counted_rows(QUEUE_LOCK, judged)
    same(judgement(counted.judgements), judgement(made.judged.judgements))
    same(counted.gaps, made.judged.gaps)
    intervals = lock_intervals(lock, of.members)
    assert len(intervals) > 0
    same(intervals, made.locked)
    blocked = blocked_locks(judged)
    assert len(blocked) > 0
    same(blocked, made.blocked_locks)
    sent = pl.DataFrame(
        {"record_id": f"{group} {name} {second}", "consumer_group": group, "stored_by": name, "sent_ts": at(second)}
        for group in GROUPS
        for name in BROKERS
        for second in range(-5, SECONDS, 7)
    )
    by_all = with_unexpired_locks(sent, lock_requests_of_shard(lock))
    assert by_all["has_lock"].n_unique() == 3
    same(by_all, with_unexpired_locks(sent, made.lock_requests))


def test_the_rules_of_a_night_give_the_same() -> None:
    _same_by_groups()
    assert {"agree", "differ", "undetermined"} <= seen
    assert len(seen) > 15, "most reasons"


def test_few_groups_are_one_task() -> None:
    of = night(0)
    made, runner, asked = replayed(of)
    assert len(runner.shards) == 1
    check(of, made, runner, asked)


def test_a_night_without_locks() -> None:
    of = night(0)
    of.lock = of.lock.clear()
    made, runner, _ = replayed(of)
    assert (len(made.locked), len(made.blocked_locks), len(made.lock_requests)) == (0, 0, 0)
    assert [len(each) for each in runner.gold[QUEUE_LOCK.table]] == [0]
