"""The pass over queues: pulls, commits and snapshots of offsets, judged for each queue alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import polars as pl

from mqreplay.decisions import status_windows
from mqreplay.decisions.decision import by_name
from mqreplay.decisions.failover_exposure import lacked_of_shard
from mqreplay.decisions.group_status import status_of_shard
from mqreplay.decisions.offset_continuity import offset_continuity, skips, suspects
from mqreplay.decisions.pull_answer import PULL_ANSWER, stored_rows
from mqreplay.decisions.pull_batch import PULL_BATCH
from mqreplay.decisions.pull_refusals import pull_answers, refusal_inputs
from mqreplay.decisions.pull_route import PULL_ROUTE
from mqreplay.decisions.queue_owner import pull_intervals_of_shard
from mqreplay.decisions.queue_progress import queue_progress
from mqreplay.decisions.queue_start import QUEUE_START, consumers, queue_start
from mqreplay.decisions.slave_suggestion import SLAVE_SUGGESTION
from mqreplay.engines.passes import Asked, GoldRows, Pass, PassRunner
from mqreplay.engines.rows import RowSource, Wanted
from mqreplay.engines.shards import ALL, Shard, divided
from mqreplay.evidence.brokers.broker_outages import answers_of_shard, errors_of_shard
from mqreplay.evidence.brokers.routes import route_changes
from mqreplay.evidence.client_clocks import client_clocks, clock_samples
from mqreplay.evidence.lags.growing_lag import advances_of_shard, falling_behind_of_shard
from mqreplay.evidence.lags.queue_caches import unfinished_pulls_of_shard
from mqreplay.evidence.lags.revive_lags import revive_lags_of_shard
from mqreplay.evidence.members.client_languages import without_other_languages
from mqreplay.evidence.members.group_states import group_states
from mqreplay.evidence.members.membership import (
    commit_signs_of_shard,
    pull_signs_of_shard,
    pulling_groups_of_shard,
    unregistrations,
)
from mqreplay.evidence.members.ownership import pulled_queues_of_shard
from mqreplay.evidence.members.polled_night import changes_of_groups
from mqreplay.evidence.messages.pulled_messages import pulled_messages_of_shard
from mqreplay.evidence.night_facts import NightFacts
from mqreplay.evidence.offsets import slave_copies, standstills
from mqreplay.evidence.offsets.held_resets import reset_evidence
from mqreplay.evidence.offsets.lowered_commits import lowered_commits, with_senders
from mqreplay.evidence.offsets.odd_offsets import odd_offsets_of_shard
from mqreplay.evidence.offsets.offset_causes import moved_resets_of_shard, offset_resets
from mqreplay.evidence.offsets.offset_leaps import offset_leaps_of_shard
from mqreplay.evidence.offsets.queue_ends import queue_ends
from mqreplay.evidence.offsets.queue_events import QueueEvents, last_copies, queue_events, stored_commits
from mqreplay.evidence.offsets.reset_effects import applied_resets_of_shard
from mqreplay.evidence.offsets.standstills import refused_pulls_of_shard
from mqreplay.evidence.recorded_versions import client_versions
from mqreplay.findings.brokers import refusals_of_shard
from mqreplay.findings.clocks import activity_of_shard
from mqreplay.findings.expired_unread import expired_reads_of_shard
from mqreplay.findings.messages import returned_ends_of_shard
from mqreplay.findings.refused import refused_runs_of_shard
from mqreplay.findings.starts import first_uses_of_shard, new_starts_of_shard
from mqreplay.findings.topics import orphans_of_shard
from mqreplay.lake.row_filter import Days
from mqreplay.replay.context import Frames, ReplayContext
from mqreplay.replay.day import BY_QUEUE, DESCRIPTIONS, LOWERED, NO_TIME, DayRows
from mqreplay.replay.frames import joined, outputs
from mqreplay.replay.queue_pulls import PULL_RULES, AskedPulls, ask_pulls, judged_pulls
from mqreplay.replay.queue_results import (
    AskedQueues,
    OffsetResult,
    PullResult,
    QueueInput,
    QueueResult,
    RouteResult,
    merged_queues,
)
from mqreplay.replay.queue_tables import (
    LOWERED_OFFSETS,
    OFFSETS_BEFORE,
    PULL_PART,
    PULL_ROUTES,
    QUEUE_PART,
    SILVER,
    SNAPSHOT_ROWS,
    TABLES_OF_PART,
    TOPIC_STATS,
)
from mqreplay.replay.task_results import add_judged, counted_rows, merged

OFFSET_CHANGE: Final = "silver.offset_change"
EMPTY_SHARD: Final = pl.lit(value=False)
# The small tables that the pass over queues needs.
SMALL_TABLES: Final = (*DESCRIPTIONS, "broker_runtime", "server_request", "snapshot", "topic_config", "topic_stats")


def judge_queues(source: RowSource, shard: Shard, shared: QueueInput, gold: GoldRows) -> Asked:
    """Judge everything that concerns single queues, but the routes and suggestions of pulls."""
    context, facts, gone = shared.context, shared.facts, shared.unregistrations
    day, limits, small = DayRows(context.day, source), context.settings.findings, context.small
    of_queues = shard if shard.does(QUEUE_PART) else EMPTY_SHARD
    raw = {name: day.silver(name, shard) for name in BY_QUEUE}
    none = {name: rows.clear() for name, rows in raw.items()}
    logged = len(raw["consume"]) + len(raw["produce"])
    asked, cases = ask_pulls(day, shard, shared, raw if shard.does(PULL_PART) else none, gold)
    raw = rows = raw if shard.does(QUEUE_PART) else none
    if context.skew is not None:
        rows = {name: day.silver(name, of_queues, context.skew) for name in BY_QUEUE}
    pulls = _judge_pulls(shared, raw, gold)
    rows = day.with_stated_ends(rows, context.raw["broker"])
    changes, commits, pull = rows["offset_change"], rows["offset_commit"], rows["pull"]
    events = queue_events(changes, commits, pull, small["topic_stats"], facts.groups_with_accepted_commits)
    samples = _clock_samples(day, of_queues, shared, events)
    offsets = _judge_offsets(shared, rows, events, day.silver(LOWERED, shard), gold)
    skewed = client_clocks([], limits.clock_skew_s) if context.skew is None else context.skew.rows
    reach_s = context.settings.replay.reset_reach_s
    result = AskedQueues(
        pulls=pulls,
        offsets=offsets,
        clock_samples=samples,
        pull_signs=pull_signs_of_shard(pull, gone, limits.silent_s),
        commit_signs=commit_signs_of_shard(commits, gone, limits.silent_s),
        pulling_groups=pulling_groups_of_shard(pull),
        pull_intervals=pull_intervals_of_shard(pull, limits.pull_gap_s),
        pulled_queues=pulled_queues_of_shard(pull),
        answers=answers_of_shard(pull),
        errors=errors_of_shard(pull),
        refused_pulls=refused_pulls_of_shard(pull),
        expired_reads=expired_reads_of_shard(pull.filter(context.day.judged)),
        advances=advances_of_shard(changes, commits),
        refusals=refusals_of_shard(pull, limits.same_cause_gap_s),
        returned_ends=returned_ends_of_shard(pull),
        moved_resets=moved_resets_of_shard(pull),
        applied_resets=applied_resets_of_shard(small["server_request"], commits, pull, reach_s),
        orphan_offsets=orphans_of_shard(changes, small["topic_config"]),
        activity=activity_of_shard(skewed, pull, commits),
        # Clients' logs have only a few answers to pulls, without requests.
        pull_counts=pl.DataFrame({"answers": [len(pull)], "requests": [pull["opaque"].count()]}),
        logged_counts=pl.DataFrame({"rows": [logged]}),
        pulled=pulled_messages_of_shard(pull, stored_commits(commits), changes, shared.sent_topics),
    )
    return Asked(cases, (result, asked))


def judge_pulls(
    rest: tuple[AskedQueues, AskedPulls], answers: Sequence[pl.DataFrame], shared: QueueInput, gold: GoldRows
) -> QueueResult:
    """Judge the routes and suggestions of pulls by the answers of the rules, and return the whole result."""
    asked_queues, asked_pulls = rest
    return QueueResult(**vars(asked_queues), routes=judged_pulls(asked_pulls, answers, shared, gold))


def _judge_pulls(shared: QueueInput, raw: Frames, gold: GoldRows) -> PullResult:
    context, pull = shared.context, raw["pull"]
    of_day, tables = context.day.judged, context.raw
    starts = queue_start(
        pull,
        raw["offset_commit"],
        raw["offset_lookup"],
        raw["offset_change"],
        shared.consumers,
        shared.facts.new_clients,
        shared.client_versions,
    ).filter(of_day)
    starts = without_other_languages(starts, shared.other_clients)
    judged = [add_judged(gold, QUEUE_START, starts)]
    answered = pull_answers(pull, tables["broker"], shared.refusal_inputs, raw["offset_change"], shared.reset_evidence)
    stored = stored_rows(answered)
    gold.add(PULL_ANSWER.table, stored.filter(of_day))
    judged.append(counted_rows(PULL_ANSWER, answered.filter(of_day)))
    return PullResult(
        judged=merged(judged),
        refused_runs=refused_runs_of_shard(stored, context.settings.findings.same_cause_gap_s),
        new_starts=new_starts_of_shard(starts),
        first_uses=first_uses_of_shard(pull),
    )


def _judge_offsets(
    shared: QueueInput, rows: Frames, events: QueueEvents, lowered_offset: pl.DataFrame, gold: GoldRows
) -> OffsetResult:
    context, facts = shared.context, shared.facts
    replay, limits, small = context.settings.replay, context.settings.findings, context.small
    changes, commits, pull, of_day = rows["offset_change"], rows["offset_commit"], rows["pull"], context.day.judged
    gold.add("gold.queue_progress", queue_progress(events).filter(of_day))
    # An answer may have a time years later; the windows end with the day.
    until_ms = min(facts.last_ms or 0, int(context.day.end.timestamp() * 1000))
    copied = last_copies(small["snapshot"])
    copies = slave_copies.both_files(events, copied.of_slaves)
    ends = queue_ends(pull, small["topic_stats"])
    breaks = offset_continuity(
        changes,
        ends,
        pl.DataFrame(pl.from_arrow(suspects(events))),
        offset_resets(small["server_request"], pull),
        pl.DataFrame(pl.from_arrow(skips(events))),
        commits,
        pull,
        facts.groups_with_commits,
        replay.reset_reach_s,
        lowered_commits(commits, lowered_offset, changes, pull, small["snapshot"]),
    )
    still = pl.DataFrame(pl.from_arrow(standstills.standstill_spans(events, limits.stuck_s, copied.of_masters)))
    return OffsetResult(
        status=status_of_shard(status_windows.windows(events, replay.status_window_s, until_ms)),
        standstills=still,
        unfinished_pulls=unfinished_pulls_of_shard(pull, still, shared.consumers),
        revive_lags=revive_lags_of_shard(changes, small["topic_stats"], copied.of_masters, limits.revive_lag_s),
        lacked=lacked_of_shard(copies),
        stale_spans=slave_copies.stale_spans_of_shard(copies, limits.stale_slave_s * 1000),
        odd_offsets=odd_offsets_of_shard(changes.filter(of_day), ends),
        breaks=with_senders(breaks, lowered_offset).filter(of_day),
        falling_behind=falling_behind_of_shard(changes, ends, limits.behind_s),
        leaps=offset_leaps_of_shard(changes, ends).filter(of_day),
    )


def _clock_samples(day: DayRows, wanted: Wanted, shared: QueueInput, events: QueueEvents) -> pl.DataFrame:
    """Return the samples of clients' clocks in all recordings of the day: a clock may be off by days."""
    reach = shared.clocks_reach
    if reach is None:
        return pl.DataFrame()
    if reach > NO_TIME:
        names = ("offset_change", "offset_commit", "pull")
        changes, commits, pull = (day.around(name, reach, wanted) for name in names)
        stats = day.around("topic_stats", reach)
        events = queue_events(changes, commits, pull, stats, shared.facts.groups_with_accepted_commits)
    return pl.DataFrame(pl.from_arrow(clock_samples(events)))


QUEUE_PASS: Final = Pass(
    judge_queues,
    (*SILVER.values(), LOWERED_OFFSETS, OFFSETS_BEFORE, PULL_ROUTES, SNAPSHOT_ROWS, TOPIC_STATS),
    (
        *(each.table for each in (PULL_ROUTE, SLAVE_SUGGESTION, PULL_ANSWER, PULL_BATCH, QUEUE_START)),
        "gold.queue_progress",
    ),
    PULL_RULES,
    judge_pulls,
    TABLES_OF_PART,
)


@dataclass(frozen=True)
class _StatedOffsets:
    """The rows of a shard whose offsets only answers to GET_CONSUME_STATS show; all other tables are empty."""

    source: RowSource
    changes: pl.DataFrame

    def read(
        self, table: str, days: Days, wanted: pl.Expr, of: Wanted = None, columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """As RowSource.read."""
        if table == OFFSET_CHANGE:
            return self.changes.filter(wanted).select(columns or self.changes.columns)
        return self.source.read(table, days, EMPTY_SHARD, None, columns)


class _Dropped:
    """Takes gold rows, and drops them: no task has these queues."""

    def add(self, table: str, rows: pl.DataFrame) -> None:
        """As GoldRows.add."""


def run_queues(
    runner: PassRunner, shards: Sequence[Shard], queue_input: QueueInput, stated_changes: pl.DataFrame
) -> QueueResult:
    """Judge all queues. Those of ``stated_changes`` are few, and in no shard: an operator asked for them."""
    context = queue_input.context
    parts = runner.run(QUEUE_PASS, divided(shards, TABLES_OF_PART), queue_input)
    if len(stated_changes):
        # Answers are of single groups: they copy no file.
        small = {**context.small, "snapshot": context.small["snapshot"].clear()}
        stated = replace(queue_input, context=replace(context, small=small))
        source = _StatedOffsets(runner.source, stated_changes)
        parts = chain(parts, [QUEUE_PASS.run(source, ALL, stated, _Dropped())])
    return merged_queues(parts, context.settings.findings.clock_skew_s)


def stated_changes(runner: PassRunner, consume_stats: pl.DataFrame, facts: NightFacts) -> pl.DataFrame:
    """Return the offsets of groups that only answers to GET_CONSUME_STATS show, as changes."""
    like = runner.source.read(OFFSET_CHANGE, Days(), EMPTY_SHARD)
    return changes_of_groups(consume_stats, facts.groups_with_commits | facts.groups_with_copies, like)


def stated_groups(stated_changes: pl.DataFrame) -> frozenset[str]:
    """Return the groups of `stated_changes`."""
    return frozenset(stated_changes["consumer_group"])


def queue_context(context: ReplayContext) -> ReplayContext:
    """Return the context with the small tables of the pass."""
    return context.with_tables(*SMALL_TABLES)


def sent_topics(sent: pl.DataFrame) -> frozenset[str]:
    """Return the topics whose sends were recorded."""
    return frozenset(sent["topic"])


STEPS: Final = joined(
    outputs("queues.pulls", PullResult),
    outputs("queues.offsets", OffsetResult),
    outputs("queues.routes", RouteResult),
    outputs("queues", QueueResult),
    {
        "queue_context": by_name(queue_context),
        "route_changes": by_name(route_changes, route="raw_routes.changed"),
        "unregistrations": by_name(unregistrations),
        "hook_consumers": by_name(consumers, heartbeat="raw_heartbeat"),
        "client_versions": by_name(client_versions, consumer_connection="raw_consumer_connection"),
        "group_states": by_name(group_states, heartbeat="raw_heartbeat"),
        "refusal_inputs": by_name(refusal_inputs, states="group_states"),
        "reset_evidence": by_name(reset_evidence, server_request="raw_server_request", skewed_clients="skewed"),
        "sent_topics": by_name(sent_topics),
        "queue_input": by_name(QueueInput, context="queue_context", consumers="hook_consumers"),
        "stated_changes": by_name(stated_changes),
        "stated_groups": by_name(stated_groups),
        "queues": by_name(run_queues),
    },
)
