"""The part of a night that the peers do too (same_tables.py)."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import polars as pl
from night_run import session_of

from mqreplay.decisions.offset_continuity import offset_continuity, skips, suspects
from mqreplay.decisions.pull_route import pull_route
from mqreplay.engines.choice import running_engine
from mqreplay.engines.spark import SparkEngine
from mqreplay.evidence.night_facts import NightFacts
from mqreplay.evidence.offset_causes import offset_resets
from mqreplay.evidence.queue_ends import queue_ends
from mqreplay.evidence.queue_events import queue_events
from mqreplay.evidence.route_changes import route_changes
from mqreplay.ingest.digests import KnownDigests
from mqreplay.ingest.listing import find_recordings
from mqreplay.lake.lock import warehouse_lock
from mqreplay.night import nightly as night
from mqreplay.night import replay_day
from mqreplay.replay import plan
from mqreplay.replay.day import DESCRIPTIONS
from mqreplay.replay.shards import Shard, deal, total
from mqreplay.replay.tasks import Files, Night, Part, judge_groups, survey_files
from mqreplay.settings import load_settings


class SamePart(plan.Replay):
    """The replay of a day, with only the tables of peers/equal.py."""

    def run(self) -> Files:
        """Judge and write them."""
        raw = {name: self.day.silver(name) for name in plan.SMALL}
        raw |= {name: self.day.described(name) for name in DESCRIPTIONS}
        mine = Night(self.day, self.settings, self.landings, self.recorded.starts(plan.NOT_OFF), raw, raw, None)
        surveyed = list(self.engine.map(survey_files, self._pieces(), mine))
        facts = plan.night_facts([part for part, _ in surveyed], raw["topic_stats"], mine.starts)
        shards = deal(total([counts for _, counts in surveyed]))
        changes = route_changes(raw["route"], mine.starts)
        queues = self.engine.map(judge_same_queues, shards, (mine, facts, changes))
        groups = self.engine.map(judge_groups, self._group_shards(mine), mine)
        return plan.Merged([*queues, *groups]).files()


def judge_same_queues(shard: Shard, given: tuple[Night, NightFacts, pl.DataFrame]) -> Part:
    """Judge the pull routes and the breaks of a shard's queues."""
    mine, facts, changes = given
    day, part, replay = mine.day, Part(), mine.settings.replay
    of_day = pl.col("day") == day.day
    pull, commits, offset_changes = (day.silver(name, shard) for name in ("pull", "offset_commit", "offset_change"))
    routes = pull_route(pull, changes, facts.new_clients, mine.starts, replay.route_slack_ms)
    part.land(mine, "gold.pull_route", routes.filter(of_day))
    stats = mine.small["topic_stats"]
    events = queue_events(offset_changes, commits, pull, stats, facts.groups_with_accepted_commits)
    breaks = offset_continuity(
        offset_changes,
        queue_ends(pull, stats),
        pl.DataFrame(pl.from_arrow(suspects(events))),
        offset_resets(mine.small["server_request"], pull),
        pl.DataFrame(pl.from_arrow(skips(events))),
        commits,
        pull,
        facts.groups_with_commits,
        replay.reset_reach_s,
    )
    part.land(mine, "gold.offset_continuity", breaks.filter(of_day))
    return part


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
        mine = night.Night(running, str(out), settings, progress)
        (ingested,) = mine.ingest(KnownDigests(str(out)).of_recordings(found), None)
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
