"""The replay of one day: its passes over shards, and the merges between them.

survey      facts of the whole night: groups with commits, new clients, last instant
queues      pull routes, suggestions, progress, breaks; input of all later passes
clocks      if a client's clock was wrong, both passes again by the recorder's clock
groups      allocations; members, owners, outages
messages    deliveries and the audit
findings    from all of these
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields

import polars as pl

from mqreplay.decisions.delivery_audit import delivery_audit
from mqreplay.decisions.failover_exposure import failover_exposure, lacked_by_minute
from mqreplay.decisions.group_status import group_status
from mqreplay.decisions.judgement import judgement
from mqreplay.decisions.queue_owner import owned_from, queue_owner
from mqreplay.decisions.replay_gap import lacking, missing_kinds, replay_gap
from mqreplay.decisions.source_disputes import source_gaps
from mqreplay.engines.engine import Engine
from mqreplay.evidence.asked_resets import asked_resets, with_asked_resets
from mqreplay.evidence.audit_scope import audit_scope
from mqreplay.evidence.broker_outages import broker_outages, restarts
from mqreplay.evidence.client_clocks import client_clocks
from mqreplay.evidence.concluded_resets import with_concluded_resets
from mqreplay.evidence.dropped_clients import dropped_clients, dropped_gaps, dropped_signs
from mqreplay.evidence.growing_lag import lag_gaps, with_stopped
from mqreplay.evidence.listed_brokers import listed_brokers, master_changes, unlisted_brokers, until_listed
from mqreplay.evidence.listed_members import outside
from mqreplay.evidence.lowered_commits import with_sent_causes
from mqreplay.evidence.membership import membership, signs, subscribed_tags, unregistrations, unshared_groups
from mqreplay.evidence.night_facts import NightFacts, night_facts
from mqreplay.evidence.observed_clients import answers
from mqreplay.evidence.odd_offsets import odd_offsets_of_answers
from mqreplay.evidence.offset_causes import pushed_resets, with_causes_of_masters
from mqreplay.evidence.polled_night import PolledNight, ends_of_groups, hook_tables, polled_night
from mqreplay.evidence.pop_orders import blocked_orders
from mqreplay.evidence.recorder_holes import hole_gaps
from mqreplay.evidence.reset_effects import with_applied
from mqreplay.evidence.route_changes import route_changes
from mqreplay.evidence.slave_configs import slave_config_drift
from mqreplay.evidence.slave_copies import stale_copies
from mqreplay.evidence.unlisted_members import unlisted_member_gaps
from mqreplay.evidence.unread_logs import unwatched_gaps
from mqreplay.findings.broker_lists import long_unlisted
from mqreplay.findings.every import KINDS, all_findings, finish
from mqreplay.findings.finding_evidence import FindingEvidence, Polled
from mqreplay.findings.limits import Limits
from mqreplay.findings.snapshots import refused_snapshots
from mqreplay.lake.table_writer import TableWriter
from mqreplay.replay.day import BY_GROUP, BY_QUEUE, DESCRIPTIONS, INSTANTS, LOWERED, Day, Skew
from mqreplay.replay.merged import Merged, with_status_merged
from mqreplay.replay.shards import Shard, count_buckets, deal, deal_evenly, name_bucket, total
from mqreplay.replay.tasks import (
    Files,
    Night,
    audit_messages,
    judge_deliveries,
    judge_groups,
    judge_pops,
    judge_queues,
    survey_files,
)
from mqreplay.settings import Settings

FILE_ROWS = 2_000_000  # rows of the files that a task surveys
REBALANCES = 50_000  # rows that a task judges
# Clients ask for these often: only the recorder's own requests are read.
OF_RECORDER = ("consumer_list", "cluster_info")
SMALL = [name for name in INSTANTS if name not in (*BY_QUEUE, LOWERED, *BY_GROUP, *OF_RECORDER)]
HANDED_OUT = 200_000  # requests of POP that a task judges
SURVEYED = ("silver.pull", "silver.offset_commit", "silver.offset_change")
# The small tables that judge_queues needs.
OF_QUEUES = (*DESCRIPTIONS, "broker_runtime", "server_request", "snapshot", "topic_config", "topic_stats")
NOT_OFF = dt.timedelta()


@dataclass(frozen=True)
class Recorded:
    """The coverage of the day's recordings: missing kinds of files, and the recorder's last instant.

    ``starts`` maps the instants after a gap to those from which the recording is certainly complete, given the slowest
    clock. ``clocks_reach``: how much earlier and later than the day the recordings go.
    """

    missing: Sequence[str]
    recorded_until: dt.datetime | None
    starts: Callable[[dt.timedelta], Mapping[dt.datetime, dt.datetime]]
    clocks_reach: dt.timedelta


@dataclass
class Replay:
    """The replay of one day, or of a window. ``landings`` are by gold table; those of a window are empty.

    ``stopped``: groups and topics that advanced before the window, and have stood still since.
    """

    day: Day
    settings: Settings
    recorded: Recorded
    landings: Mapping[str, TableWriter]
    engine: Engine
    progress: Callable[[str], None] = field(default=lambda what: None)
    stopped: Collection[tuple[str, str]] = ()

    def run(self) -> Files:
        """Judge the day; return the files with its rows by gold table, for the caller to commit."""
        judged = self._judge()
        before = None if self.day.is_first else self.day.gold_day_before("gold.finding")
        return judged.files | self._land(dict(judged.tables) | {"gold.finding": self._found(judged, before)})

    def findings(self) -> pl.DataFrame:
        """Return the findings, with gold.finding's columns except cluster. Nothing is written without landings."""
        return self._found(self._judge(), None)

    def _found(self, judged: _Judged, before: pl.DataFrame | None) -> pl.DataFrame:
        limits = _limits(self.settings)
        return finish(all_findings(judged.evidence, limits), self.day.begin, self.day.end, before, limits.lost_s)

    def _judge(self) -> _Judged:
        raw = {name: self.day.silver(name) for name in SMALL} | {
            name: self.day.described(name) for name in DESCRIPTIONS
        }
        raw["topic_stats"] = pl.concat([raw["topic_stats"], ends_of_groups(raw["consume_stats"], raw["topic_stats"])])
        night = Night(self.day, self.settings, self.landings, self.recorded.starts(NOT_OFF), raw, raw, None)
        facts, shards, queues = self._judge_queues(night, self.recorded.clocks_reach)
        clocks = client_clocks(queues.each("client_words"), self.settings.findings.clock_skew_s)
        if len(clocks):
            self.progress("some clients had a wrong clock; judging again by the recorder's clock")
            night = self._by_recorders_clock(night, Skew(clocks))
            facts, shards, queues = self._judge_queues(night, None)
        self.progress("queues judged")
        of_groups = night.with_tables("topic_config")
        groups = Merged(list(self.engine.map(judge_groups, self._group_shards(night), of_groups)))
        pops = list(self.engine.map(judge_pops, self._pop_shards(), of_groups))
        groups = Merged([*groups.parts, *pops])
        judged = self._merge(night, facts, shards, queues, groups)
        self.progress("groups and messages judged")
        return judged

    def _by_recorders_clock(self, night: Night, skew: Skew) -> Night:
        right = {name: self.day.silver(name, None, skew) for name in SMALL if name != "topic_stats"}
        starts = self.recorded.starts(skew.behind)
        return dataclasses.replace(night, skew=skew, small={**night.raw, **right}, starts=starts)

    def _judge_queues(self, night: Night, clocks_reach: dt.timedelta | None) -> tuple[NightFacts, list[Shard], Merged]:
        surveyed = list(self.engine.map(survey_files, self._pieces(), night.with_tables()))
        facts: NightFacts = night_facts([part for part, _ in surveyed], night.small["topic_stats"], night.starts)
        shards = deal(total([counts for _, counts in surveyed]))
        made = {
            "route_changes": route_changes(night.raw["route"].filter(pl.col("client_id").is_not_null()), night.starts),
            "unregistrations": unregistrations(night.small["heartbeat"]),
        }
        given = (night.with_tables(*OF_QUEUES), facts, clocks_reach, made)
        return facts, shards, Merged(with_status_merged(self.engine.map(judge_queues, shards, given)))

    def _pieces(self) -> list[Day]:
        """Return the day split by files, about FILE_ROWS rows for each task."""
        files = self.day.files
        if sum(files[name].rows for name in SURVEYED) <= FILE_ROWS:
            return [self.day]
        none = {name: dataclasses.replace(files[name], files=()) for name in SURVEYED}
        pieces = [none | {name: piece} for name in SURVEYED for piece in files[name].pieces(FILE_ROWS)]
        return [dataclasses.replace(self.day, files=dict(files) | piece) for piece in pieces]

    def _group_shards(self, night: Night) -> list[Shard]:
        tables = [night.raw[name].select(name_bucket("consumer_group")) for name in ("rebalance", "assignment")]
        rebalances, assignments = (table.to_series() for table in tables)
        return deal(count_buckets(rebalances if len(rebalances) else assignments), REBALANCES)

    def _pop_shards(self) -> list[Shard]:
        groups = [self.day.silver(name, None, None, ["consumer_group"]) for name in ("pop", "pop_assignment")]
        return deal(count_buckets(pl.concat(groups).select(name_bucket("consumer_group")).to_series()), HANDED_OUT)

    def _merge(
        self, night: Night, facts: NightFacts, shards: Sequence[Shard], queues: Merged, groups: Merged
    ) -> _Judged:
        """Merge the results of the tasks, and judge the messages with them."""
        small, limits = night.small, self.settings.findings
        dropped = dropped_clients(small["heartbeat"], small["broker_runtime"], limits.lost_s)
        by_hooks = [signs(*hook_tables(small)), queues.frame("pull_signs"), queues.frame("commit_signs")]
        by_hooks.append(dropped_signs(dropped))
        asked = self.day.silver("consumer_list", pl.col("client_id").is_null())
        name_servers = self.day.silver("cluster_info")
        polled = self._polled(night, asked, name_servers, pl.concat(by_hooks))
        members = membership(pl.concat([*by_hooks, polled.signs]), limits.silent_s)
        told = (polled.heartbeat, small["rebalance"], small["assignment"])
        unshared = unshared_groups(*told, queues.frame("pulling_groups"), facts.groups_with_commits)
        intervals = queues.frame("pull_intervals")
        owners = queue_owner(small["assignment"], small["rebalance"], small["lock"], intervals, members, unshared)
        ran = len(small["recorder_event"]) > 0
        outages = broker_outages(
            polled.broker_runtime,
            small["heartbeat"],
            queues.frame("answers"),
            queues.frame("errors"),
            queues.frame("failovers"),
            limits.down_s,
            limits.unseen_down_s,
            from_error=ran,
        )
        lists = listed_brokers(name_servers, self.recorded.recorded_until)
        unlisted = long_unlisted(unlisted_brokers(night.raw["broker_runtime"], lists), limits.dispute_s)
        outages = until_listed(outages, unlisted)
        stale = stale_copies(queues.frame("stale_spans"), small["snapshot"], outages, limits.stale_slave_s)
        breaks = self._of_day(pl.concat([queues.frame("breaks"), stale]))
        has_pushes = "server_requests" not in self.recorded.missing
        by_pop = answers(small["assignment"]).filter("by_pop")
        breaks = with_concluded_resets(breaks, night.raw["broker_runtime"], owners, has_pushes, by_pop)
        requested = asked_resets(small["server_request"])
        resets = pl.concat([pushed_resets(small["server_request"]), queues.frame("moved_resets")])
        breaks = with_asked_resets(breaks, requested, resets, self.settings.replay.reset_reach_s)
        breaks = with_sent_causes(breaks)
        breaks = with_causes_of_masters(breaks, self.settings.replay.reset_reach_s)
        continuity = self.day.with_before("gold.offset_continuity", "to_ts", breaks)
        deliveries, audit = self._messages(night, shards, queues, continuity, unshared)
        parts = Merged([*queues.parts, *groups.parts, *deliveries.parts])
        unwatched = polled.unwatched(members, small["assignment"], small["rebalance"], owners, unshared)
        told_gaps = [
            hole_gaps(polled.holes, small["recorder_event"], outages),
            source_gaps(small["assignment"], small["rebalance"], members),
            unwatched_gaps(outside(unwatched, "from_ts", polled.holes), limits.dispute_s),
        ]
        status = outside(
            group_status(queues.each("status"), self.settings.replay.status_window_s), "to_ts", polled.holes
        )
        told_gaps += [
            lag_gaps(members, polled.heartbeat, set(status["consumer_group"]), self.day.day, limits.stuck_s),
            dropped_gaps(dropped, members),
            unlisted_member_gaps(status, asked, small["proxy_connection"], [members, small["assignment"]]),
        ]
        needs = {kind.name: kind.needs for kind in KINDS.values()}
        gaps = missing_kinds(self.day.day, lacking(self.recorded.missing, queues.frame("pulls")), needs, ran)
        tables = {
            "gold.group_status": status,
            "gold.failover_exposure": failover_exposure(
                night.raw["broker_runtime"], lacked_by_minute(queues.each("lacked"))
            ),
            "gold.queue_owner": owned_from(owners, self.day.begin),
            "gold.offset_continuity": breaks,
            "gold.delivery_audit": audit,
            "gold.judgement": judgement(parts.frame("judgements")),
            "gold.replay_gap": replay_gap(pl.concat([parts.frame("gaps"), gaps, *told_gaps]), self.day.cluster),
        }
        refused = refused_snapshots(self.day.quarantine())
        merged = {f.name: parts.frame(f.name) for f in fields(FindingEvidence) if parts.each(f.name)}
        of_answers = odd_offsets_of_answers(small["consume_stats"], small["topic_stats"])
        merged["odd_offsets"] = pl.concat([merged["odd_offsets"], self._begun_today(of_answers)])
        merged["advances"] = with_stopped(merged["advances"], self.stopped)
        evidence = FindingEvidence(
            cluster=self.day.cluster,
            recorded_until=self.recorded.recorded_until,
            heartbeat=polled.heartbeat,
            rebalance=small["rebalance"],
            topic_config=small["topic_config"],
            topic_stats=small["topic_stats"],
            offset_continuity=continuity,
            queue_owner=owners,
            members=members,
            unshared_groups=unshared,
            resets=with_applied(resets, parts.frame("applied_resets")),
            asked_resets=requested,
            outages=outages,
            restarts=restarts(night.raw["broker_runtime"]),
            unlisted=unlisted,
            master_changes=master_changes(lists, night.raw["broker_runtime"]),
            config_drift=slave_config_drift(
                night.raw["topic_config"],
                night.raw["subscription_group"],
                night.raw["snapshot"],
                night.raw["broker_runtime"],
                limits.config_drift_s,
            ),
            blocked_orders=blocked_orders(night.raw["pop_order"], night.raw["snapshot"], limits.stuck_s),
            clocks=client_clocks([], limits.clock_skew_s) if night.skew is None else night.skew.rows,
            refused_snapshots=refused.filter((pl.col("ts") >= self.day.since) & (pl.col("ts") < self.day.end)),
            groups=frozenset[str]().union(
                night.raw["subscription_group"]["consumer_group"],
                members["consumer_group"],
                parts.frame("advances")["consumer_group"],
                facts.groups_with_commits,
            ),
            polled=Polled(
                polled.strategies, unwatched, polled.vanished, polled.queues, polled.shown, polled.duplicates
            ),
            **merged,
        )
        return _Judged(evidence, tables, parts.files())

    def _polled(
        self, night: Night, lists: pl.DataFrame, name_servers: pl.DataFrame, by_hooks: pl.DataFrame
    ) -> PolledNight:
        """Combine the recorder's polls of clients without hooks; name servers count where it ran."""
        ran = len(night.small["recorder_event"]) > 0
        limits = self.settings.findings
        servers = name_servers if ran else name_servers.clear()
        return polled_night(night.small, lists, servers, by_hooks, limits.lost_s, limits.silent_s)

    def _messages(
        self, night: Night, shards: Sequence[Shard], queues: Merged, continuity: pl.DataFrame, unshared: pl.DataFrame
    ) -> tuple[Merged, pl.DataFrame]:
        logged = int(queues.frame("logged")["rows"].sum())
        given = (night.with_tables(), unshared)
        made = list(self.engine.map(judge_deliveries, shards if logged else shards[:1], given))
        scope = audit_scope([scope for _, scope in made])
        subscriptions = subscribed_tags(night.small["heartbeat"])
        dealt = deal_evenly(logged)
        counts = list(self.engine.map(audit_messages, dealt, (night.with_tables(), scope, subscriptions, continuity)))
        return Merged([part for part, _ in made]), delivery_audit(pl.concat(counts), scope)

    def _land(self, tables: Mapping[str, pl.DataFrame]) -> Files:
        return {name: self.landings[name].write_rows(self._of_day(rows)) for name, rows in tables.items()}

    def _begun_today(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows.filter((pl.col("from_ts") >= self.day.begin) & (pl.col("from_ts") < self.day.end))

    def _of_day(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows.filter(self.day.judged)


@dataclass(frozen=True)
class _Judged:
    """The evidence for findings, merged rows of gold tables, and files of tables that tasks wrote."""

    evidence: FindingEvidence
    tables: Mapping[str, pl.DataFrame]
    files: Files


def _limits(settings: Settings) -> Limits:
    named = {f.name: getattr(settings.findings, f.name) for f in fields(Limits) if f.name != "reset_reach_s"}
    return Limits(reset_reach_s=settings.replay.reset_reach_s, **named)
