"""The part of a night that the peers do too (same_tables.py)."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from night_run import session_of

from mqreplay.decisions.offset_continuity import offset_continuity, skips, suspects
from mqreplay.decisions.pull_route import PULL_ROUTE, pull_route
from mqreplay.engines.choice import running_engine
from mqreplay.engines.passes import GoldRows, Pass
from mqreplay.engines.rows import RowSource
from mqreplay.engines.shards import Shard
from mqreplay.engines.spark import SparkEngine
from mqreplay.evidence.brokers.routes import route_changes
from mqreplay.evidence.intervals import INSTANT
from mqreplay.evidence.night_facts import NightFacts
from mqreplay.evidence.offsets.offset_causes import offset_resets
from mqreplay.evidence.offsets.queue_ends import queue_ends
from mqreplay.evidence.offsets.queue_events import queue_events
from mqreplay.ingest.digests import KnownDigests
from mqreplay.ingest.listing import find_recordings
from mqreplay.lake.lock import warehouse_lock
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night import replay_day
from mqreplay.night.nightly_run import NightlyRun
from mqreplay.replay import plan
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import DayRows
from mqreplay.replay.group_pass import group_input, run_groups, run_pops
from mqreplay.replay.queue_pass import QUEUE_PASS
from mqreplay.replay.task_results import JudgedRows, add_judged
from mqreplay.settings import load_settings
from mqreplay.words.keys import MEMBER


@dataclass(frozen=True)
class SameInput:
    """What all queues share."""

    context: ReplayContext
    facts: NightFacts
    route_changes: pl.DataFrame


@dataclass(frozen=True)
class SameResult:
    """Breaks of a shard's queues, and counts of its pull routes."""

    breaks: pl.DataFrame
    routes: JudgedRows


class SamePart(plan.Replay):
    """The replay of a day, with only the tables of peers/equal.py."""

    def run(self) -> dict[str, pl.DataFrame]:
        """Judge and write them."""
        context = self.context()
        frames = self.frames(context, None)
        routes = self._rows.silver("route").filter(pl.col("client_id").is_not_null())
        shared = SameInput(context, frames["facts"], route_changes(routes, context.starts))
        breaks = [result.breaks for result in self.runner.run(SAME_PASS, frames["shards"], shared)]
        # The peers judge no locks, and know no members.
        members = pl.DataFrame(schema=dict.fromkeys(MEMBER, pl.String) | dict.fromkeys(("from_ts", "to_ts"), INSTANT))
        groups = group_input(context, frames["queue_lists"], members, frames["asked_locks"])
        changes = frames["raw_rebalance"], frames["raw_assignment"], frames["asked_locks"]
        run_groups(self.runner, groups, *changes)
        run_pops(self.runner, groups, frames["popped"], frames["assigned"])
        return {"gold.offset_continuity": pl.concat(breaks).filter(self.day.judged)}


def judge_same_queues(source: RowSource, shard: Shard, shared: SameInput, gold: GoldRows) -> SameResult:
    """Judge the pull routes and the breaks of a shard's queues."""
    context, facts = shared.context, shared.facts
    day, replay = DayRows(context.day, source), context.settings.replay
    of_day = pl.col("day") == context.day.day
    pull, commits, offset_changes = (day.silver(name, shard) for name in ("pull", "offset_commit", "offset_change"))
    routes = pull_route(pull, shared.route_changes, facts.new_clients, context.starts, replay.route_slack_ms)
    judged = add_judged(gold, PULL_ROUTE, routes.filter(of_day))
    stats = context.small["topic_stats"]
    events = queue_events(offset_changes, commits, pull, stats, facts.groups_with_accepted_commits)
    breaks = offset_continuity(
        offset_changes,
        queue_ends(pull, stats),
        pl.DataFrame(pl.from_arrow(suspects(events))),
        offset_resets(context.small["server_request"], pull),
        pl.DataFrame(pl.from_arrow(skips(events))),
        commits,
        pull,
        facts.groups_with_commits,
        replay.reset_reach_s,
    )
    return SameResult(breaks.filter(of_day), judged)


SAME_PASS = Pass(judge_same_queues, QUEUE_PASS.tables, ("gold.pull_route",))


def stages(engine: str, recording: Path, out: Path, began: float) -> dict[str, float]:
    """Return seconds of each stage since ``began`` (of time.perf_counter), and on Spark its jobs.

    The stages are those of `make bench`: ``session`` is the start of Spark, after the plan of the ingest.
    """
    settings, found = load_settings(), find_recordings([str(recording)])
    lines: list[tuple[float, str]] = []

    def progress(text: str) -> None:
        lines.append((time.perf_counter() - began, text))
        print(text, file=sys.stderr)

    with warehouse_lock(str(out)) as lock, running_engine(engine, "same tables", settings, lock, progress) as running:
        mine = NightlyRun(running, Warehouse(str(out)), settings, progress)
        (ingested,) = mine.ingest(mine.of_clusters(KnownDigests(str(out)).of_recordings(found), None))
        read = time.perf_counter() - began
        whole, replay_day.Replay = replay_day.Replay, SamePart
        try:
            mine.replay(ingested.cluster)
        finally:
            replay_day.Replay = whole
        over = time.perf_counter() - began
        session = session_of(lines)
        seconds = {"session": session, "ingest": read - session, "replay": over - read, "all": over}
        if not isinstance(running, SparkEngine):
            return seconds
        jobs = running.session.sparkContext._jsc.sc().dagScheduler().numTotalJobs()
        return seconds | {"Spark jobs": float(jobs)}
