"""Of a night the part that the peers do too (same_tables.py)."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl

from mqreplay import night, replay_day
from mqreplay.ingest.digests import KnownDigests
from mqreplay.ingest.recording import find_recordings
from mqreplay.judge.night_facts import NightFacts
from mqreplay.judge.offset_causes import offset_resets
from mqreplay.judge.offset_continuity import offset_continuity, queue_ends, skips, suspects
from mqreplay.judge.pull_route import pull_route
from mqreplay.judge.queue_events import queue_events
from mqreplay.judge.route_changes import route_changes
from mqreplay.lake.session import build_session, fit_to
from mqreplay.run import plan
from mqreplay.run.day import DESCRIPTIONS
from mqreplay.run.shards import Shard, deal, total
from mqreplay.run.tasks import Files, Night, Part, judge_groups, survey_files
from mqreplay.settings import load_settings


class SamePart(plan.Replay):
    """Of a day's tables those of peers/equal.py."""

    def run(self) -> Files:
        """Judge and write them."""
        raw = {name: self.day.silver(name) for name in plan.SMALL}
        raw |= {name: self.day.described(name) for name in DESCRIPTIONS}
        mine = Night(self.day, self.settings, self.landings, self.recorded.starts(plan.NOT_OFF), raw, raw, None)
        surveyed = self.engine.map(survey_files, self._pieces(), mine)
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
    pull, commits, moves = (day.silver(name, shard) for name in ("pull", "offset_commit", "offset_change"))
    routes = pull_route(pull, changes, facts.born, mine.starts, replay.route_slack_ms)
    part.land(mine, "gold.pull_route", routes.filter(of_day))
    stats = mine.small["topic_stats"]
    events = queue_events(moves, commits, pull, stats, facts.groups_with_accepted_commits)
    breaks = offset_continuity(
        moves,
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


def stages(recording: Path, out: Path, began: float) -> dict[str, float]:
    """Return seconds of each stage since ``began`` (of time.perf_counter), and Spark jobs; names as in `make bench`."""
    settings, found = load_settings(), find_recordings([str(recording)])
    size = sum(file.bytes for files in found.values() for file in files)
    with ThreadPoolExecutor(1) as beside:
        digested = beside.submit(KnownDigests(str(out)).of_recordings, found)
        spark = build_session("same tables", settings.spark, size)
        fit_to(spark, size, settings.spark.shuffle_partitions)
        ready = time.perf_counter()
        mine = night.Night(spark, str(out), settings, lambda text: print(text, file=sys.stderr))
        (ingested,) = mine.ingest(digested.result(), None)
    read = time.perf_counter()
    whole, replay_day.Replay = replay_day.Replay, SamePart
    try:
        mine.replay(ingested.cluster)
    finally:
        replay_day.Replay = whole
    over = time.perf_counter()
    jobs = spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs()
    seconds = {"session": ready - began, "ingest": read - ready, "replay": over - read, "all": over - began}
    return seconds | {"Spark jobs": float(jobs)}
