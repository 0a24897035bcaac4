"""The replay of one day: its passes, and the steps between them.

survey      facts of the whole day: groups with commits, new clients, last instant
queues      pull routes, suggestions, progress, breaks; input of all later passes
clocks      if a client's clock was wrong, both passes again by the recorder's clock
groups      allocations, POP; then members, owners, outages
messages    deliveries and the audit
findings    from all of these
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import polars as pl

from mqreplay.decisions.delivery_audit import delivery_audit
from mqreplay.decisions.failover_exposure import failover_exposure, lacked_by_minute
from mqreplay.decisions.group_status import group_status
from mqreplay.decisions.judgement import judgement
from mqreplay.decisions.member import member
from mqreplay.decisions.pull_refusals import inputs
from mqreplay.decisions.queue_owner import owned_from
from mqreplay.decisions.queue_start import consumers
from mqreplay.decisions.replay_gap import replay_gap
from mqreplay.decisions.send_attempt import send_tries
from mqreplay.engines.passes import PassRunner
from mqreplay.engines.shards import Shard, count_buckets, deal, deal_evenly, total
from mqreplay.evidence.brokers.publish_routes import publish_routes
from mqreplay.evidence.brokers.route_changes import route_changes
from mqreplay.evidence.client_clocks import client_clocks
from mqreplay.evidence.members.client_languages import other_clients
from mqreplay.evidence.members.client_versions import client_versions
from mqreplay.evidence.members.group_states import group_states
from mqreplay.evidence.members.listed_members import outside
from mqreplay.evidence.members.membership import subscribed_expressions, unregistrations
from mqreplay.evidence.members.polled_night import ends_of_groups
from mqreplay.evidence.messages.audit_gaps import audit_gaps
from mqreplay.evidence.messages.audit_scope import audit_scope
from mqreplay.evidence.messages.subscribed_messages import known_versions
from mqreplay.evidence.night_facts import NightFacts, night_facts
from mqreplay.evidence.offsets.held_resets import reset_evidence
from mqreplay.evidence.recorded_versions import recorded_versions
from mqreplay.lake.buckets import buckets
from mqreplay.replay.break_evidence import break_evidence
from mqreplay.replay.broker_evidence import broker_evidence
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.day import BY_GROUP, BY_QUEUE, BY_TOPIC, DESCRIPTIONS, INSTANTS, LOWERED, Day, DayRows, Skew
from mqreplay.replay.day_findings import DayFindings, day_findings
from mqreplay.replay.day_result import DayResult, DayTables, finding_evidence
from mqreplay.replay.driver_decisions import DriverDecisions, driver_decisions
from mqreplay.replay.group_pass import GROUP, GROUP_PASS, POP_PASS, GroupResult, PopResult
from mqreplay.replay.judged_rows import JudgedRows
from mqreplay.replay.member_evidence import member_evidence
from mqreplay.replay.merged import merged
from mqreplay.replay.message_pass import AUDIT_PASS, DELIVERY_PASS, AuditInput, DeliveryInput, DeliveryResult
from mqreplay.replay.packet_pass import PACKET_PASS, audit_by_packets
from mqreplay.replay.queue_pass import QUEUE_PASS, QueueInput, QueueResult, merged_queues
from mqreplay.replay.recorded import Recorded
from mqreplay.replay.recording_gaps import recording_gaps
from mqreplay.replay.send_pass import SEND_PASS, TOPIC, SendInput, SendResult, send_result
from mqreplay.replay.survey_pass import SURVEY_PASS, SurveyInput
from mqreplay.settings import Settings

REBALANCES = 50_000  # rows that a task judges
# Clients ask for these often: only the recorder's own requests are read.
OF_RECORDER = ("consumer_list", "cluster_info")
SMALL = [name for name in INSTANTS if name not in (*BY_QUEUE, LOWERED, *BY_GROUP, *BY_TOPIC, *OF_RECORDER)]
HANDED_OUT = 200_000  # requests of POP that a task judges
# The small tables that the pass over queues needs.
OF_QUEUES = (*DESCRIPTIONS, "broker_runtime", "server_request", "snapshot", "topic_config", "topic_stats")
NOT_OFF = dt.timedelta()
PASSES: Final = (SURVEY_PASS, QUEUE_PASS, GROUP_PASS, POP_PASS, SEND_PASS, DELIVERY_PASS, AUDIT_PASS, PACKET_PASS)


@dataclass(frozen=True)
class JudgedQueues:
    """The context by the clocks that count, facts of the day, and the results of all queues and their shards."""

    context: ReplayContext
    facts: NightFacts
    shards: Sequence[Shard]
    result: QueueResult


@dataclass(frozen=True)
class JudgedMessages:
    """The deliveries of all queues, and the rows of gold.delivery_audit."""

    deliveries: DeliveryResult
    audit: pl.DataFrame


@dataclass
class Replay:
    """The replay of one day, or of a window.

    ``stopped``: groups and topics that advanced before the window, and have not advanced since.
    """

    day: Day
    settings: Settings
    recorded: Recorded
    runner: PassRunner
    progress: Callable[[str], None] = field(default=lambda what: None)
    stopped: Collection[tuple[str, str]] = ()

    def run(self) -> dict[str, pl.DataFrame]:
        """Judge the day; return the day's rows of the gold tables that no pass writes, without the cluster."""
        result = self.judge()
        before = None if self.day.is_first else self._rows.gold_day_before("gold.finding")
        of_day = day_findings(result, self.day, self.settings, before)
        found = {"gold.finding": of_day.findings, "gold.known_issue": of_day.known_issues}
        tables = result.tables.by_name() | found
        return {name: rows.filter(self.day.judged) for name, rows in tables.items()}

    def findings(self) -> DayFindings:
        """Return the findings of the day or window alone."""
        return day_findings(self.judge(), self.day, self.settings, None)

    def judge(self) -> DayResult:
        """Run the passes and the steps between them."""
        queues = self.judge_queues(self._small_tables())
        self.progress("queues judged")
        groups, pops = self.judge_groups(queues.context)
        result = self._result(queues, groups, pops, self.judge_sends(queues.context))
        self.progress("groups and messages judged")
        return result

    @property
    def _rows(self) -> DayRows:
        return DayRows(self.day, self.runner.source)

    @cached_property
    def _sent(self) -> pl.DataFrame:
        """The topic of each send."""
        return self._rows.silver("send", None, None, ["topic"])

    @cached_property
    def _popped(self) -> pl.DataFrame:
        """The group of each request of POP."""
        return self._rows.silver("pop", None, None, ["consumer_group"])

    @cached_property
    def _assigned(self) -> pl.DataFrame:
        """The group and the mode of each request for an assignment."""
        return self._rows.silver("pop_assignment", None, None, ["consumer_group", "mode"])

    def _small_tables(self) -> ReplayContext:
        rows = self._rows
        raw = {name: rows.silver(name) for name in SMALL} | {name: rows.described(name) for name in DESCRIPTIONS}
        raw["topic_stats"] = pl.concat([raw["topic_stats"], ends_of_groups(raw["consume_stats"], raw["topic_stats"])])
        return ReplayContext(self.day, self.settings, self.recorded.starts(NOT_OFF), raw, raw, None)

    def judge_queues(self, context: ReplayContext) -> JudgedQueues:
        """Judge the queues; again by the recorder's clock if a client's clock was wrong."""
        judged = self._judge_queues(context, self.recorded.clocks_reach)
        clocks = client_clocks([judged.result.clock_samples], self.settings.findings.clock_skew_s)
        if clocks.is_empty():
            return judged
        self.progress("some clients had a wrong clock; judging again by the recorder's clock")
        return self._judge_queues(self._by_recorders_clock(context, Skew(clocks)), None)

    def _by_recorders_clock(self, context: ReplayContext, skew: Skew) -> ReplayContext:
        right = {name: self._rows.silver(name, None, skew) for name in SMALL if name != "topic_stats"}
        starts = self.recorded.starts(skew.behind)
        return dataclasses.replace(context, skew=skew, small={**context.raw, **right}, starts=starts)

    def _judge_queues(self, context: ReplayContext, clocks_reach: dt.timedelta | None) -> JudgedQueues:
        surveyed = list(self.runner.run(SURVEY_PASS, [], SurveyInput(self.day, context.skew, context.starts)))
        facts = night_facts([each.facts for each in surveyed], context.small["topic_stats"], context.starts)
        shards = deal(total([each.counts for each in surveyed]))
        shared = QueueInput(
            context.with_tables(*OF_QUEUES),
            facts,
            clocks_reach,
            route_changes(context.raw["route"].filter(pl.col("client_id").is_not_null()), context.starts),
            unregistrations(context.small["heartbeat"]),
            consumers(context.raw["heartbeat"]),
            client_versions(context.raw["consumer_connection"]),
            inputs(
                context.raw["topic_config"],
                context.raw["subscription_group"],
                context.raw["broker"],
                group_states(context.raw["heartbeat"], context.raw["broker_runtime"]),
            ),
            reset_evidence(
                context.raw["server_request"],
                context.raw["broker_runtime"],
                self.settings.findings.clock_skew_s,
                context.skew.clients if context.skew else (),
            ),
            frozenset(self._sent["topic"]),
            other_clients(context.raw["consumer_connection"], context.raw["heartbeat"]),
        )
        results = self.runner.run(QUEUE_PASS, shards, shared)
        return JudgedQueues(context, facts, shards, merged_queues(results, self.settings.findings.clock_skew_s))

    def judge_groups(self, context: ReplayContext) -> tuple[GroupResult, PopResult]:
        """Judge the groups: their rebalances, and what brokers gave those of POP."""
        shared = context.with_tables("topic_config", "broker")
        rebalances = context.raw["rebalance"]
        rows = rebalances if len(rebalances) else context.raw["assignment"]
        groups = list(self.runner.run(GROUP_PASS, deal(count_buckets(buckets(rows, GROUP)), REBALANCES), shared))
        asked = pl.concat([self._popped, self._assigned.select("consumer_group")])
        pop_shards = deal(count_buckets(buckets(asked, GROUP)), HANDED_OUT)
        return merged(groups), merged(list(self.runner.run(POP_PASS, pop_shards, shared)))

    def judge_sends(self, context: ReplayContext) -> SendResult:
        """Judge the sends of producers; most nights have none, and no task."""
        asked = self._sent
        routes = publish_routes(context.small["route"], asked["topic"])
        shared = SendInput(context.with_tables(), *routes, context.small["send_back"].select("msg_id").unique())
        if asked.is_empty():
            none = self._rows.silver("send", pl.lit(False))
            return send_result(send_tries(none, shared.publish_changes, shared.publish_queues), shared)
        shards = deal(count_buckets(buckets(asked, TOPIC)))
        return merged(list(self.runner.run(SEND_PASS, shards, shared)))

    def _judge_messages(
        self, queues: JudgedQueues, continuity: pl.DataFrame, unshared: pl.DataFrame, known: pl.DataFrame
    ) -> JudgedMessages:
        context = queues.context
        logged = int(queues.result.logged_counts["rows"].sum())
        shards = queues.shards if logged else queues.shards[:1]
        others = other_clients(context.raw["consumer_connection"], context.raw["heartbeat"])
        shared_deliveries = DeliveryInput(context.with_tables(), unshared, known, logged > 0, others)
        made = list(self.runner.run(DELIVERY_PASS, shards, shared_deliveries))
        scope = audit_scope([each.scope for each in made])
        subscriptions = subscribed_expressions(context.small["heartbeat"])
        versions = known_versions(context.raw["broker"])
        shared = AuditInput(context.with_tables(), scope, subscriptions, versions, continuity)
        audit = merged(list(self.runner.run(AUDIT_PASS, deal_evenly(logged), shared)))
        return JudgedMessages(merged([each.deliveries for each in made]), delivery_audit(audit.counts, scope))

    def _result(self, judged: JudgedQueues, groups: GroupResult, pops: PopResult, sends: SendResult) -> DayResult:
        """Combine the results of the passes over queues and groups, and judge the messages with them."""
        context, facts, queues, rows = judged.context, judged.facts, judged.result, self._rows
        small, runtime, recorded = context.small, context.raw["broker_runtime"], self.recorded
        cluster_info = rows.silver("cluster_info")
        clients = member_evidence(rows, context, facts, queues, cluster_info)
        polled, owners, unshared = clients.polled, clients.owners, clients.unshared_groups
        brokers = broker_evidence(
            context, queues, polled.broker_runtime, cluster_info, polled.holes, recorded.recorded_until
        )
        has_pushes = "server_requests" not in recorded.missing
        breaks = break_evidence(context, queues, brokers, clients, has_pushes)
        continuity = rows.with_before("gold.offset_continuity", "to_ts", breaks.breaks)
        known = consumers(polled.heartbeat)
        messages = self._judge_messages(judged, continuity, unshared, known)
        status = group_status([queues.offsets.status], self.settings.replay.status_window_s)
        status = outside(status, "to_ts", polled.holes)
        unwatched = polled.unwatched(clients.members, small["assignment"], small["rebalance"], owners, unshared)
        gaps = recording_gaps(context, recorded, clients, unwatched, brokers.outages, status, queues.pull_counts)
        exposure = failover_exposure(runtime, lacked_by_minute([queues.offsets.lacked]))
        by_driver = driver_decisions(
            context, recorded, clients, brokers, queues, messages.deliveries, sends, exposure, known
        )
        sent, retried = self._sent, by_driver.retried_message
        popped = rows.silver("pop", None if len(sent) else pl.lit(value=False), None, ["consumer_group", "topic"])
        audited = audit_by_packets(
            self.runner, context, sent, queues.pulled, continuity, unshared, retried, popped, messages.audit
        )
        unaudited = audit_gaps(self.day.day, sent, popped, audited.audit, recorded.missing)
        decided = _decided(queues, groups, pops, sends, by_driver)
        tables = DayTables(
            group_status=status,
            failover_exposure=exposure,
            replication=by_driver.replication,
            queue_owner=owned_from(owners, self.day.begin),
            member=member(clients.members, unshared, self.day.begin),
            offset_continuity=breaks.breaks,
            delivery_audit=audited.audit,
            failover_step=by_driver.failover_step,
            flow_control=by_driver.flow_control,
            committed_offset=by_driver.committed_offset,
            queue_lock=by_driver.queue_lock,
            retried_message=by_driver.retried_message,
            rebalance_round=by_driver.rebalance_round,
            slave_copy=by_driver.slave_copy,
            slave_sync=by_driver.slave_sync,
            delay_progress=by_driver.delay_progress,
            listed_route=by_driver.listed_route,
            judgement=judgement(decided.judgements),
            replay_gap=replay_gap(pl.concat([decided.gaps, gaps, unaudited]), self.day.cluster),
        )
        evidence = finding_evidence(
            *(rows, context, recorded, facts, queues, groups, clients, brokers, breaks, messages.deliveries),
            sends=sends,
            by_driver=by_driver,
            offset_continuity=continuity,
            unwatched=unwatched,
            stopped=self.stopped,
        )
        return DayResult(evidence, tables, recorded_versions(context.raw, self._popped, self._assigned))


def _decided(
    queues: QueueResult, groups: GroupResult, pops: PopResult, sends: SendResult, by_driver: DriverDecisions
) -> JudgedRows:
    pulls = queues.pulls
    of_pulls = (pulls.routes, pulls.suggestions, pulls.answers, pulls.batches, pulls.starts)
    return merged(
        [
            *of_pulls,
            groups.allocations,
            groups.steps,
            pops.receipts,
            pops.assignments,
            sends.attempts,
            *by_driver.counted,
        ]
    )
