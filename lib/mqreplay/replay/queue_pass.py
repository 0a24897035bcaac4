"""The pass over queues: pulls, commits and snapshots of offsets, judged for each queue alone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from mqreplay.decisions import status_windows
from mqreplay.decisions.failover_exposure import lacked_by_minute, lacked_of_shard
from mqreplay.decisions.group_status import merged_status, status_of_shard
from mqreplay.decisions.offset_continuity import offset_continuity, skips, suspects
from mqreplay.decisions.pull_answer import stored_rows
from mqreplay.decisions.pull_batch import pull_batches
from mqreplay.decisions.pull_refusals import Inputs, pull_answers
from mqreplay.decisions.pull_route import pull_route
from mqreplay.decisions.queue_owner import pull_intervals_of_shard
from mqreplay.decisions.queue_progress import queue_progress
from mqreplay.decisions.queue_start import queue_start
from mqreplay.decisions.slave_suggestion import slave_suggestion
from mqreplay.engines.passes import GoldRows, Pass
from mqreplay.engines.rows import RowSource
from mqreplay.engines.shards import Shard
from mqreplay.evidence.brokers.broker_outages import (
    answers_of_shard,
    errors_of_shard,
    failovers_of_shard,
    merged_answers,
)
from mqreplay.evidence.brokers.failovers import returns_of_shard
from mqreplay.evidence.brokers.slave_reads import slave_reads
from mqreplay.evidence.client_clocks import SuspectSamples, client_clocks, clock_samples
from mqreplay.evidence.lags.falling_behind import falling_behind_of_shard
from mqreplay.evidence.lags.growing_lag import advances_of_shard
from mqreplay.evidence.lags.revive_lags import revive_lags_of_shard
from mqreplay.evidence.lags.unfinished_pulls import unfinished_pulls_of_shard
from mqreplay.evidence.members.client_languages import without_other_languages
from mqreplay.evidence.members.membership import commit_signs_of_shard, pull_signs_of_shard, pulling_groups_of_shard
from mqreplay.evidence.members.ownership import pulled_queues_of_shard
from mqreplay.evidence.messages.pulled_messages import PulledMessages, pulled_messages_of_shard
from mqreplay.evidence.night_facts import NightFacts
from mqreplay.evidence.offsets import slave_copies, standstills
from mqreplay.evidence.offsets.held_resets import ResetEvidence
from mqreplay.evidence.offsets.lowered_commits import lowered_commits, with_senders
from mqreplay.evidence.offsets.odd_offsets import odd_offsets_of_shard
from mqreplay.evidence.offsets.offset_causes import moved_resets_of_shard, offset_resets
from mqreplay.evidence.offsets.offset_leaps import offset_leaps_of_shard
from mqreplay.evidence.offsets.queue_ends import queue_ends
from mqreplay.evidence.offsets.queue_events import QueueEvents, last_copies, queue_events, stored_commits
from mqreplay.evidence.offsets.reset_effects import applied_resets_of_shard
from mqreplay.evidence.offsets.standstills import refused_pulls_of_shard
from mqreplay.findings.brokers import refusals_of_shard
from mqreplay.findings.clocks import activity_of_shard
from mqreplay.findings.messages import returned_ends_of_shard
from mqreplay.findings.pulls import exceptional_pulls_of_shard
from mqreplay.findings.refused import refused_runs_of_shard
from mqreplay.findings.starts import first_uses_of_shard, new_starts_of_shard
from mqreplay.findings.topics import orphans_of_shard
from mqreplay.replay.context import Frames, ReplayContext
from mqreplay.replay.day import BY_QUEUE, LOWERED, NO_TIME, DayRows
from mqreplay.replay.judged_rows import JudgedRows, add_judged, counted_rows
from mqreplay.replay.merged import MergedEarly, merged
from mqreplay.replay.queue_tables import LOWERED_OFFSETS, OFFSETS_BEFORE, PULL_ROUTES, SILVER, SNAPSHOTS, TOPIC_STATS


@dataclass(frozen=True)
class QueueInput:
    """What all queues share.

    ``clocks_reach``: how much earlier and later than the day rows count for clients' clocks (None: the clocks are
    known).
    """

    context: ReplayContext
    facts: NightFacts
    clocks_reach: dt.timedelta | None
    route_changes: pl.DataFrame
    unregistrations: pl.DataFrame
    consumers: pl.DataFrame  # queue_start.consumers
    client_versions: pl.DataFrame
    refusal_inputs: Inputs
    reset_evidence: ResetEvidence
    sent_topics: frozenset[str]  # topics whose sends were recorded
    other_clients: pl.DataFrame  # client_languages.other_clients


@dataclass(frozen=True)
class PullResult:
    """Frames of judged pulls; the functions that make them describe them."""

    routes: JudgedRows
    suggestions: JudgedRows
    answers: JudgedRows
    batches: JudgedRows
    disk_runs: pl.DataFrame
    refused_runs: pl.DataFrame
    starts: JudgedRows
    new_starts: pl.DataFrame
    first_uses: pl.DataFrame
    exceptional_pulls: pl.DataFrame
    failovers: pl.DataFrame
    returns: pl.DataFrame


@dataclass(frozen=True)
class OffsetResult:
    """Frames of the offsets of queues."""

    status: pl.DataFrame
    standstills: pl.DataFrame
    unfinished_pulls: pl.DataFrame
    revive_lags: pl.DataFrame
    lacked: pl.DataFrame
    stale_spans: pl.DataFrame
    odd_offsets: pl.DataFrame
    breaks: pl.DataFrame
    leaps: pl.DataFrame
    falling_behind: pl.DataFrame


@dataclass(frozen=True)
class QueueResult:
    """Frames of queues, of one shard or merged of all."""

    pulls: PullResult
    offsets: OffsetResult
    clock_samples: pl.DataFrame
    pull_signs: pl.DataFrame
    commit_signs: pl.DataFrame
    pulling_groups: pl.DataFrame
    pull_intervals: pl.DataFrame
    pulled_queues: pl.DataFrame
    answers: pl.DataFrame
    errors: pl.DataFrame
    refused_pulls: pl.DataFrame
    advances: pl.DataFrame
    refusals: pl.DataFrame
    returned_ends: pl.DataFrame
    moved_resets: pl.DataFrame
    applied_resets: pl.DataFrame
    orphan_offsets: pl.DataFrame
    activity: pl.DataFrame
    pull_counts: pl.DataFrame  # answers, requests
    logged_counts: pl.DataFrame  # rows of the logs of messages
    pulled: PulledMessages


def judge_queues(source: RowSource, shard: Shard, shared: QueueInput, gold: GoldRows) -> QueueResult:
    """Judge everything that concerns single queues."""
    context, facts, gone = shared.context, shared.facts, shared.unregistrations
    day, limits, small = DayRows(context.day, source), context.settings.findings, context.small
    raw = {name: day.silver(name, shard) for name in BY_QUEUE}
    rows = raw
    if context.skew is not None:
        rows = {name: day.silver(name, shard, context.skew) for name in BY_QUEUE}
    pulls = _judge_pulls(day, shard, shared, raw, gold)
    rows = day.with_stated_ends(rows, context.raw["broker"])
    changes, commits, pull = rows["offset_change"], rows["offset_commit"], rows["pull"]
    events = queue_events(changes, commits, pull, small["topic_stats"], facts.groups_with_accepted_commits)
    samples = _clock_samples(day, shard, shared, events)
    offsets = _judge_offsets(shared, rows, events, day.silver(LOWERED, shard), gold)
    skewed = client_clocks([], limits.clock_skew_s) if context.skew is None else context.skew.rows
    reach_s = context.settings.replay.reset_reach_s
    return QueueResult(
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
        advances=advances_of_shard(changes, commits),
        refusals=refusals_of_shard(pull, limits.same_cause_gap_s),
        returned_ends=returned_ends_of_shard(pull),
        moved_resets=moved_resets_of_shard(pull),
        applied_resets=applied_resets_of_shard(small["server_request"], commits, pull, reach_s),
        orphan_offsets=orphans_of_shard(changes, small["topic_config"]),
        activity=activity_of_shard(skewed, pull, commits),
        # Clients' logs have only a few answers to pulls, without requests.
        pull_counts=pl.DataFrame({"answers": [len(pull)], "requests": [pull["opaque"].count()]}),
        logged_counts=pl.DataFrame({"rows": [len(rows["consume"]) + len(rows["produce"])]}),
        pulled=pulled_messages_of_shard(pull, stored_commits(commits), changes, shared.sent_topics),
    )


def _judge_pulls(day: DayRows, shard: Shard, shared: QueueInput, raw: Frames, gold: GoldRows) -> PullResult:
    context, pull = shared.context, raw["pull"]
    of_day, replay, tables = context.day.judged, context.settings.replay, context.raw
    changes, new = shared.route_changes, shared.facts.new_clients
    routes = pull_route(pull, changes, new, context.starts, replay.route_slack_ms).filter(of_day)
    routes = without_other_languages(routes, shared.other_clients)
    judged_routes = add_judged(gold, "gold.pull_route", routes)
    known = day.with_before("gold.pull_route", "request_ts", routes, shard)
    suggestions = slave_suggestion(
        pull,
        raw["consume"],
        raw["produce"],
        tables["broker"],
        tables["subscription_group"],
        tables["broker_runtime"],
        replay.poll_slack_ms,
        context.skew.clients if context.skew else [],
    )
    judged_suggestions = add_judged(gold, "gold.slave_suggestion", suggestions.filter(of_day))
    starts = queue_start(
        pull,
        raw["offset_commit"],
        raw["offset_lookup"],
        raw["offset_change"],
        shared.consumers,
        new,
        shared.client_versions,
    ).filter(of_day)
    starts = without_other_languages(starts, shared.other_clients)
    answered = pull_answers(
        pull, tables["broker"], shared.refusal_inputs, raw["offset_change"], shared.reset_evidence
    ).filter(of_day)
    stored = stored_rows(answered)
    gold.add("gold.pull_answer", stored)
    batches = pull_batches(pull, suggestions, tables["broker"], of_day, context.settings.findings.same_cause_gap_s)
    differing = batches.differing
    gold.add("gold.pull_batch", differing)
    reads = slave_reads(known, suggestions, pull, tables["broker"])
    return PullResult(
        judged_routes,
        judged_suggestions,
        counted_rows("gold.pull_answer", answered),
        JudgedRows(batches.counts, counted_rows("gold.pull_batch", differing).gaps),
        batches.disk_runs,
        refused_runs_of_shard(stored, context.settings.findings.same_cause_gap_s),
        add_judged(gold, "gold.queue_start", starts),
        new_starts_of_shard(starts),
        first_uses_of_shard(pull),
        exceptional_pulls=exceptional_pulls_of_shard(reads, context.settings.findings.same_cause_gap_s),
        failovers=failovers_of_shard(known),
        returns=returns_of_shard(known),
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


def _clock_samples(day: DayRows, shard: Shard, shared: QueueInput, events: QueueEvents) -> pl.DataFrame:
    """Return the samples of clients' clocks in all recordings of the day: a clock may be off by days."""
    reach = shared.clocks_reach
    if reach is None:
        return pl.DataFrame()
    if reach > NO_TIME:
        names = ("offset_change", "offset_commit", "pull")
        changes, commits, pull = (day.around(name, reach, shard) for name in names)
        stats = day.around("topic_stats", reach)
        events = queue_events(changes, commits, pull, stats, shared.facts.groups_with_accepted_commits)
    return pl.DataFrame(pl.from_arrow(clock_samples(events)))


QUEUE_PASS: Final = Pass(
    judge_queues,
    (*SILVER.values(), LOWERED_OFFSETS, OFFSETS_BEFORE, PULL_ROUTES, SNAPSHOTS, TOPIC_STATS),
    (
        *("gold.pull_route", "gold.slave_suggestion", "gold.pull_answer", "gold.pull_batch"),
        *("gold.queue_start", "gold.queue_progress"),
    ),
)


def merged_queues(parts: Iterable[QueueResult], skew_s: int) -> QueueResult:
    """Return the results of all shards as one.

    A shard has rows for most groups, brokers and minutes: they are merged early. Samples of clocks are of those clients
    whose clock may be wrong by more than ``skew_s`` seconds.
    """
    kept: list[QueueResult] = []
    status, lacked, answers = MergedEarly(merged_status), MergedEarly(lacked_by_minute), MergedEarly(merged_answers)
    samples = SuspectSamples(skew_s)
    for part in parts:
        status.add(part.offsets.status)
        lacked.add(part.offsets.lacked)
        answers.add(part.answers)
        samples.add(part.clock_samples)
        offsets = replace(part.offsets, status=part.offsets.status.clear(), lacked=part.offsets.lacked.clear())
        kept.append(
            replace(part, offsets=offsets, answers=part.answers.clear(), clock_samples=part.clock_samples.clear())
        )
    whole = merged(kept)
    offsets = replace(whole.offsets, status=status.rows(), lacked=lacked.rows())
    return replace(whole, offsets=offsets, answers=answers.rows(), clock_samples=samples.rows())
