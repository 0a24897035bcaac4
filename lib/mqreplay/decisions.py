"""Silver -> gold for some days of one cluster: reads, asks replay/, writes. The rules are all in replay/."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.ingest.recording import RECORD_TABLES
from mqreplay.lake.sql import among, quoted
from mqreplay.lake.warehouse import Warehouse
from mqreplay.replay.allocation import allocation
from mqreplay.replay.findings.offsets import offset_findings
from mqreplay.replay.findings.pulls import pull_findings
from mqreplay.replay.findings.snapshots import snapshot_findings
from mqreplay.replay.gaps import Missing, missing_kinds, undetermined
from mqreplay.replay.offset_continuity import offset_continuity
from mqreplay.replay.offset_resets import offset_resets, skipping_pulls
from mqreplay.replay.pull_route import pull_route
from mqreplay.replay.queue_ends import queue_ends
from mqreplay.replay.queue_progress import queue_progress
from mqreplay.replay.slave_suggestion import slave_suggestion
from mqreplay.settings import Settings
from mqreplay.steps import DAY, Span, days_of, gapless_starts

Progress = Callable[[str], None]
WRITERS = 2


class Replay:
    """The replay of ``days`` of one cluster. Frames are made once and kept until ``close``."""

    def __init__(
        self,
        warehouse: Warehouse,
        cluster: str,
        days: list[dt.date],
        found: list[Span],
        settings: Settings,
        *,
        afresh: bool = False,
    ) -> None:
        """Nothing is read yet. ``afresh`` is the caller's word that gold holds no row of these days."""
        self.afresh = afresh
        self.warehouse, self.cluster, self.days, self.found, self.settings = warehouse, cluster, days, found, settings
        self._kept: list[DataFrame] = []

    def run(self, progress: Progress) -> None:
        """Writes every gold table of the days."""
        judged = self._judge()
        frames = {name: self._keep(frame.where(F.col("day").isin(self.days))) for name, frame in judged.items()}
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(lambda name: self._write(name, frames[name], progress), frames))
        self._write("gold.replay_gap", self._gaps(frames), progress)
        self._write("gold.finding", self._findings(frames), progress)
        for frame in self._kept:
            frame.unpersist()

    def _judge(self) -> dict[str, DataFrame]:
        bounds, told = self.settings.replay, self.settings.strategies
        pull, commits = self._keep(self._near("pull", "request_ts")), self._near("offset_commit", "ts")
        changes = self._near("offset_change", "to_ts")
        ends = self._keep(queue_ends(pull, self._near("topic_stats", "ts")))
        resets = offset_resets(self._near("server_request", "ts"), pull)
        return {
            "gold.allocation": allocation(self._near("rebalance", "ts"), told.groups, told.virtual_node_cnt),
            "gold.pull_route": pull_route(
                pull, self._near("route", "ts"), gapless_starts(self.found), bounds.route_slack_ms
            ),
            "gold.slave_suggestion": slave_suggestion(
                pull,
                self._ever("broker"),
                self._near("broker_runtime", "ts"),
                self._ever("subscription_group"),
                self._near("consume", "ts"),
                self._near("produce", "ts"),
                bounds.poll_slack_ms,
            ),
            "gold.offset_continuity": offset_continuity(
                changes, ends, resets, skipping_pulls(pull), commits, bounds.reset_reach_s
            ),
            "gold.queue_progress": queue_progress(changes, ends),
        }

    def _findings(self, frames: dict[str, DataFrame]) -> DataFrame:
        limits = self.settings.findings
        quarantine = self.warehouse.read("bronze.quarantine").where(F.col("cluster") == self.cluster)
        families = [
            offset_findings(frames["gold.offset_continuity"], limits.same_cause_gap_s),
            pull_findings(frames["gold.pull_route"], limits.same_cause_gap_s, limits.slave_pull_warn_s),
            snapshot_findings(quarantine),
        ]
        return reduce(DataFrame.unionByName, families).where(F.col("day").isin(self.days))

    def _gaps(self, frames: dict[str, DataFrame]) -> DataFrame:
        kinds = {*RECORD_TABLES, "brokers", "consumer_offset", "subscription_groups"}
        there = {day: {s.kind for s in self.found if day in days_of([s]) or s.first_ts is None} for day in self.days}
        missing = [Missing(str(day), kind) for day in self.days for kind in sorted(kinds - there[day])]
        judged = {
            "gold.allocation": (frames["gold.allocation"], "rebalance_ts"),
            "gold.pull_route": (frames["gold.pull_route"], "request_ts"),
            "gold.slave_suggestion": (frames["gold.slave_suggestion"], "request_ts"),
        }
        return undetermined(judged).unionByName(missing_kinds(self.warehouse.spark, self.cluster, missing))

    def _near(self, name: str, ts: str) -> DataFrame:
        """The days' rows of a silver table, and those of the lookback before each."""
        rows = self._ever(name)
        if not self.warehouse.exists(f"silver.{name}"):
            return rows
        lookback = dt.timedelta(minutes=self.settings.replay.lookback_minutes)
        before = [day - DAY for day in self.days if day - DAY not in self.days]
        late = [F.col(ts) >= F.lit(dt.datetime.combine(day + DAY, dt.time(), dt.UTC) - lookback) for day in before]
        eves = [(F.col("day") == day) & is_late for day, is_late in zip(before, late, strict=True)]
        return rows.where(reduce(lambda a, b: a | b, eves, F.col("day").isin(self.days)))

    def _ever(self, name: str) -> DataFrame:
        return self.warehouse.read(f"silver.{name}").where(F.col("cluster") == self.cluster)

    def _keep(self, frame: DataFrame) -> DataFrame:
        kept = frame.persist()
        self._kept.append(kept)
        return kept

    def _write(self, name: str, frame: DataFrame, progress: Progress) -> None:
        where = f"cluster = {quoted(self.cluster)} AND {among('day', [str(day) for day in self.days])}"
        self.warehouse.replace(name, frame, where, nothing_there=self.afresh)
        progress(f"{name} written")
