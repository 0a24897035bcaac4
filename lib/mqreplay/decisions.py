"""Silver -> gold for one day of one cluster: reads, asks replay/, writes. The rules are all in replay/."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.day_rows import INSTANTS, JUDGED, LARGE, NO_TIME, READ_AGAIN, DayRows
from mqreplay.ingest.recording import RECORD_TABLES
from mqreplay.lake.running_tasks import running_tasks
from mqreplay.lake.session import bounded_batches, few_rows, is_small
from mqreplay.lake.sql import quoted
from mqreplay.lake.warehouse import Warehouse
from mqreplay.replay.allocation import WIDE, allocation, widest
from mqreplay.replay.broker_outages import broker_outages
from mqreplay.replay.by_queue.events import queue_events
from mqreplay.replay.by_queue.looks import CLOCK, looked_for, looks_of_a_night, of_look
from mqreplay.replay.client_clocks import by_recorders_clock, client_clocks
from mqreplay.replay.delivery_audit import delivery_audit
from mqreplay.replay.failover_exposure import failover_exposure, lacked_by_minute
from mqreplay.replay.findings.causes import with_causes
from mqreplay.replay.findings.every import Family, Known, every_family
from mqreplay.replay.findings.going_on import going_on
from mqreplay.replay.findings.shape import that_reach
from mqreplay.replay.findings.snapshots import refused_snapshots
from mqreplay.replay.gaps import Missing, missing_kinds, undetermined
from mqreplay.replay.group_status import group_status, last_told
from mqreplay.replay.judgements import judgements
from mqreplay.replay.membership import membership, signs, subscribed_tags, unshared_groups
from mqreplay.replay.offset_continuity import offset_continuity
from mqreplay.replay.offset_resets import offset_resets
from mqreplay.replay.pull_route import pull_route
from mqreplay.replay.queue_ends import queue_ends
from mqreplay.replay.queue_owner import owned_from, queue_owner
from mqreplay.replay.queue_progress import queue_progress
from mqreplay.replay.slave_suggestion import slave_suggestion
from mqreplay.replay.stale_copies import stale_copies
from mqreplay.replay.standstills import last_copies
from mqreplay.replay_pace import MEMBERS, QUEUES, ReplayPace
from mqreplay.settings import Settings
from mqreplay.standing import Standing
from mqreplay.steps import DAY, Span, kinds_of, reach_of, recorded_until, sure_starts

Progress = Callable[[str], None]
WRITERS = 3


class Replay:
    """The replay of one day of one cluster. Frames are made once and kept until it is over."""

    def __init__(
        self,
        warehouse: Warehouse,
        cluster: str,
        day: dt.date,
        found: list[Span],
        settings: Settings,
        standing: Standing | None,
        *,
        afresh: bool = False,
    ) -> None:
        """Nothing is read yet. ``standing``: None on the cluster's first day; ``afresh``: gold holds no row of it."""
        self.afresh = afresh
        self.warehouse, self.cluster, self.day, self.found, self.settings = warehouse, cluster, day, found, settings
        self.rows = DayRows(warehouse, cluster, day, settings.replay.lookback_minutes, standing)
        self._kept: list[DataFrame] = []

    def run(self, progress: Progress) -> None:
        """Writes every gold table of the day."""
        spark, what = self.warehouse.spark, f"{self.cluster}: replaying {self.day}"
        self.pace = ReplayPace(progress, what, lambda: running_tasks(spark))
        with self.pace:
            self._run(progress)

    def _run(self, progress: Progress) -> None:
        try:
            with ThreadPoolExecutor(WRITERS) as pool:
                near = list(pool.map(self._silver, INSTANTS))
                judged = self._judge(dict(zip(INSTANTS, near, strict=True)))
                with self._batches():
                    self._write_all(pool, judged, progress)
                # What is written is read again: findings of findings of plans would be planned for minutes.
                of_day = {name: self.rows.gold(name) for name in JUDGED}
                written = {name: self._read_again(name) for name in READ_AGAIN if name in judged}
                told = {
                    "gold.offset_continuity": lambda: self._breaks(written["gold.pull_route"]),
                    "gold.judgement": lambda: judgements(of_day),
                    "gold.replay_gap": lambda: self._gaps(of_day),
                }
                self._write_all(pool, told, progress)
            written["gold.offset_continuity"] = self._read_again("gold.offset_continuity")
            with few_rows(self.warehouse.spark):
                self._write("gold.delivery_audit", self._audit(written), progress)
                self._write("gold.finding", self._findings(written, progress), progress)
        finally:
            for frame in self._kept:
                frame.unpersist()

    def _judge(self, raw: dict[str, DataFrame]) -> dict[str, Callable[[], DataFrame]]:
        """Of each gold table how its frame is made: Spark takes seconds to make one, so each writer makes its own."""
        bounds, told, limits = self.settings.replay, self.settings.strategies, self.settings.findings
        looked = self._look_at_queues(raw)
        self.pace.reached(QUEUES)
        self.skewed = client_clocks(self._look_at_clocks(looked), limits.clock_skew_s).collect()
        # A client's own words are in its own order; what is held against others' is by the recorder's clock.
        self.silver = {name: self._put_right(name, frame) for name, frame in raw.items()} if self.skewed else raw
        s = self.silver
        self.looked = self._look_at_queues(s) if self.skewed else looked
        ends = queue_ends(s["pull"], s["topic_stats"])
        self.ends = self._keep(ends) if is_small(self.warehouse.spark) else ends
        self.resets = offset_resets(s["server_request"], s["pull"])
        signs_of_life = signs(s["heartbeat"], s["rebalance"], s["assignment"], s["pull"], s["offset_commit"])
        with ThreadPoolExecutor(WRITERS) as pool:
            shown = (s[name] for name in ("heartbeat", "rebalance", "assignment", "pull", "offset_commit"))
            broadcasting = pool.submit(lambda: unshared_groups(*shown).localCheckpoint())
            self.members = membership(signs_of_life, limits.silent_s).localCheckpoint()
            self.broadcasting = broadcasting.result()
        self.pace.reached(MEMBERS)
        return {
            "gold.allocation": lambda: allocation(raw["rebalance"], told.groups, told.virtual_node_cnt),
            "gold.pull_route": lambda: pull_route(
                raw["pull"], raw["route"], self._sure_starts(), bounds.route_slack_ms
            ),
            "gold.slave_suggestion": lambda: slave_suggestion(
                raw["pull"],
                self.rows.described("broker"),
                raw["broker_runtime"],
                self.rows.described("subscription_group"),
                raw["consume"],
                raw["produce"],
                bounds.poll_slack_ms,
                sorted({row.client_id for row in self.skewed}),
            ),
            "gold.queue_progress": lambda: queue_progress(of_look(self.looked, "progress"), self.cluster),
            "gold.group_status": lambda: group_status(
                of_look(self.looked, "status"), self.cluster, bounds.status_window_s
            ),
            "gold.failover_exposure": lambda: failover_exposure(
                raw["broker_runtime"],
                lacked_by_minute(of_look(self.looked, "slave"), self.cluster).localCheckpoint(),
            ),
            "gold.queue_owner": self._owned,
        }

    def _sure_starts(self) -> dict[dt.datetime, dt.datetime]:
        behind = max([0, *[-row.skew_ms for row in self.skewed]])
        return sure_starts(self.found, dt.timedelta(milliseconds=behind))

    def _batches(self) -> AbstractContextManager[None]:
        """How rows go to Python: by so many, and where rebalances are wide, within so many bytes."""
        (most,) = widest(self.silver["rebalance"]).collect()
        return bounded_batches(self.warehouse.spark) if (most.names or 0) > WIDE else nullcontext()

    def _look_at_clocks(self, looked: DataFrame) -> DataFrame:
        """By all that the day's recordings tell: a client whose clock is off may call the whole night another day's."""
        first, last = reach_of(self.found, self.day)
        reach = min(max(self.rows.since - first, last - self.rows.end), DAY)
        if reach <= NO_TIME:
            return of_look(looked, "clock")
        told = ("offset_change", "offset_commit", "pull", "topic_stats")
        around = [self.rows.silver_around(name, INSTANTS[name], reach) for name in told]
        return of_look(looked_for(queue_events(*around), [CLOCK]), "clock")

    def _put_right(self, name: str, frame: DataFrame) -> DataFrame:
        """The rows by the recorder's clock: some that a client calls another day's are of this one, or the reverse."""
        if "client_id" not in frame.columns:
            return frame
        ts = INSTANTS[name]
        theirs = F.coalesce(F.col("client_id").isin(*{row.client_id for row in self.skewed}), F.lit(False))
        reach = dt.timedelta(milliseconds=max(abs(row.skew_ms) for row in self.skewed))
        said = self.rows.silver_around(name, ts, reach).where(theirs)
        right = by_recorders_clock(said, self.skewed, *[t for t in (ts, "response_ts") if t in frame.columns])
        return frame.where(~theirs).unionByName(self.rows.within(right, ts))

    def _owned(self) -> DataFrame:
        """Findings ask since when a queue was held: they are given the intervals as they are, uncut by midnight."""
        s = self.silver
        self.owners = queue_owner(
            s["assignment"],
            s["rebalance"],
            s["lock"],
            s["pull"],
            self.members,
            self.broadcasting,
            self.settings.findings.pull_gap_s,
        ).localCheckpoint()
        return owned_from(self.owners, self.rows.begin)

    def _breaks(self, pull_route: DataFrame) -> DataFrame:
        """That a slave's copy is stale is told only while its master is there: so when pulls have been judged."""
        s, limits = self.silver, self.settings.findings
        failovers = pull_route.where(F.col("cause") == "master_gone")
        self.outages = broker_outages(
            s["broker_runtime"], s["heartbeat"], s["pull"], failovers, limits.down_s, limits.unseen_down_s
        ).localCheckpoint()
        moved = offset_continuity(
            s["offset_change"],
            self.ends,
            of_look(self.looked, "suspect"),
            self.resets,
            of_look(self.looked, "skip"),
            s["offset_commit"],
            s["pull"],
            self.settings.replay.reset_reach_s,
        )
        copies = of_look(self.looked, "slave")
        return moved.unionByName(stale_copies(copies, s["snapshot"], self.outages, self.cluster, limits.stale_slave_s))

    def _look_at_queues(self, s: dict[str, DataFrame]) -> DataFrame:
        """What is judged of one queue at a time; for clients' clocks, several tables, and findings."""
        events = queue_events(s["offset_change"], s["offset_commit"], s["pull"], s["topic_stats"])
        (until,) = last_told(events).collect()
        # An answer may be said to have come years later; the windows end with the day.
        until_ms = min(until.until_ms or 0, int(self.rows.end.timestamp() * 1000))
        copied = last_copies(s["snapshot"]).collect()
        limits, window_s = self.settings.findings, self.settings.replay.status_window_s
        looks = looks_of_a_night(limits.stuck_s, limits.stale_slave_s, window_s, until_ms, copied)
        return looked_for(events, looks).localCheckpoint()

    def _audit(self, frames: dict[str, DataFrame]) -> DataFrame:
        s = self.silver
        return delivery_audit(
            s["produce"],
            s["consume"],
            subscribed_tags(s["heartbeat"]),
            s["offset_commit"],
            s["offset_change"],
            frames["gold.offset_continuity"],
            self.broadcasting,
        )

    def _findings(self, frames: dict[str, DataFrame], progress: Progress) -> DataFrame:
        quarantine = self.warehouse.read("bronze.quarantine").where(F.col("cluster") == self.cluster)
        refused = self.rows.within(refused_snapshots(quarantine), "ts")
        known = Known(
            cluster=self.cluster,
            silver=self.silver,
            gold=frames | {"gold.queue_owner": self.owners},
            members=self.members,
            broadcasting=self.broadcasting,
            ends=self.ends,
            resets=self.resets,
            still=of_look(self.looked, "still"),
            outages=self.outages,
            skewed=self.skewed,
            refused=refused,
            recorded_until=recorded_until(self.found),
            reset_reach_s=self.settings.replay.reset_reach_s,
        )
        families = every_family(known, self.settings.findings)
        with ThreadPoolExecutor(WRITERS) as pool:
            made = list(pool.map(lambda family: self._made(family, progress), families))
        begun = reduce(DataFrame.unionByName, made).where(F.col("from_ts") < F.lit(self.rows.end))
        if self.rows.standing is not None:
            begun = going_on(begun, self.rows.day_before("gold.finding")).localCheckpoint()
        told = that_reach(with_causes(begun), self.rows.begin, self.settings.findings.lost_s)
        return told.withColumn("day", F.lit(self.day))

    def _made(self, family: Family, progress: Progress) -> DataFrame:
        # Findings are few; each family is computed by itself, for its plan is large enough.
        found = family.make().localCheckpoint()
        progress(f"{family.name} looked for")
        return found

    def _gaps(self, frames: dict[str, DataFrame]) -> DataFrame:
        kinds = {*RECORD_TABLES, "brokers", "consumer_offset", "subscription_groups", "topics"}
        missing = [Missing(str(self.day), kind) for kind in sorted(kinds - kinds_of(self.found, self.day))]
        judged = {name: (frames[name], instant) for name, instant in JUDGED.items()}
        return undetermined(judged).unionByName(missing_kinds(self.warehouse.spark, self.cluster, missing))

    def _read_again(self, name: str) -> DataFrame:
        rows = self.rows.gold(name, READ_AGAIN[name])
        return self._keep(rows) if self._fits(name) else rows

    def _silver(self, name: str) -> DataFrame:
        rows = self.rows.silver(name, INSTANTS[name])
        return self._keep(rows) if self._fits(name) else rows

    def _fits(self, name: str) -> bool:
        return is_small(self.warehouse.spark) or name not in LARGE

    def _keep(self, frame: DataFrame) -> DataFrame:
        kept = frame.persist()
        self._kept.append(kept)
        return kept

    def _write_all(
        self, pool: ThreadPoolExecutor, made: Mapping[str, Callable[[], DataFrame]], progress: Progress
    ) -> None:
        list(pool.map(lambda name: self._write(name, made[name](), progress), made))

    def _write(self, name: str, frame: DataFrame, progress: Progress) -> None:
        where = f"cluster = {quoted(self.cluster)} AND day = {quoted(str(self.day))}"
        self.warehouse.replace(name, frame.where(F.col("day") == F.lit(self.day)), where, nothing_there=self.afresh)
        self.pace.reached(name)
        progress(f"{name} written")
