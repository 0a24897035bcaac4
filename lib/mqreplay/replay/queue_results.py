"""What the pass over queues needs and finds, and how the results of shards become one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, replace

import polars as pl

from mqreplay.decisions.failover_exposure import lacked_by_minute
from mqreplay.decisions.group_status import merged_status
from mqreplay.decisions.pull_refusals import Inputs
from mqreplay.evidence.brokers.broker_outages import merged_answers
from mqreplay.evidence.client_clocks import SuspectSamples
from mqreplay.evidence.messages.pulled_messages import PulledMessages
from mqreplay.evidence.night_facts import NightFacts
from mqreplay.evidence.offsets.held_resets import ResetEvidence
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.task_results import JudgedRows, MergedEarly, merged


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

    judged: JudgedRows
    refused_runs: pl.DataFrame
    new_starts: pl.DataFrame
    first_uses: pl.DataFrame


@dataclass(frozen=True)
class RouteResult:
    """Frames of pulls with their routes, suggestions and batches."""

    judged: JudgedRows
    disk_runs: pl.DataFrame
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
class AskedQueues:
    """Frames of queues before the rules of pulls have answered."""

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
    expired_reads: pl.DataFrame
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


@dataclass(frozen=True)
class QueueResult(AskedQueues):
    """Frames of queues, of one shard or merged of all."""

    routes: RouteResult


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
