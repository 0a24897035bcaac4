"""Breaks of offsets with their causes, from all tables of a day."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from mqreplay.evidence.brokers.broker_outages import BROKER
from mqreplay.evidence.members.listed_members import absences
from mqreplay.evidence.members.observed_clients import answers
from mqreplay.evidence.offsets.asked_resets import asked_resets, with_asked_resets
from mqreplay.evidence.offsets.concluded_resets import with_concluded_resets
from mqreplay.evidence.offsets.explained_rewinds import with_explained_rewinds
from mqreplay.evidence.offsets.lowered_commits import with_sent_causes
from mqreplay.evidence.offsets.offset_causes import pushed_resets, with_causes_of_masters
from mqreplay.evidence.offsets.offset_leaps import offset_leaps
from mqreplay.evidence.offsets.reset_effects import with_applied
from mqreplay.evidence.offsets.slave_copies import stale_copies
from mqreplay.replay.broker_evidence import BrokerEvidence
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.member_evidence import MemberEvidence
from mqreplay.replay.queue_pass import QueueResult


@dataclass(frozen=True)
class BreakEvidence:
    """Frames of breaks and resets. ``breaks`` are the day's rows of gold.offset_continuity."""

    breaks: pl.DataFrame
    asked_resets: pl.DataFrame
    resets: pl.DataFrame  # offset_resets, with what they changed


def break_evidence(
    context: ReplayContext, queues: QueueResult, brokers: BrokerEvidence, clients: MemberEvidence, has_pushes: bool
) -> BreakEvidence:
    """Return the breaks of offsets. ``has_pushes``: requests of brokers to clients were recorded."""
    owners, polled = clients.possible_owners, clients.polled
    small, reach_s = context.small, context.settings.replay.reset_reach_s
    stale_s = context.settings.findings.stale_slave_s
    stale = stale_copies(queues.offsets.stale_spans, small["snapshot"], brokers.outages, stale_s)
    breaks = pl.concat([queues.offsets.breaks, stale]).filter(context.day.judged)
    by_pop = answers(small["assignment"]).filter("by_pop")
    breaks = with_concluded_resets(breaks, context.raw["broker_runtime"], owners, has_pushes, by_pop)
    absent = absences(clients.consumer_lists, small["broker_runtime"], polled.holes, polled.until)
    breaks = pl.concat([breaks, offset_leaps(queues.offsets.leaps, absent, clients.members, breaks)])
    requested = asked_resets(small["server_request"])
    resets = pl.concat([pushed_resets(small["server_request"]), queues.moved_resets])
    breaks = with_sent_causes(with_asked_resets(breaks, requested, resets, reach_s))
    down = pl.concat([brokers.outages.select(*BROKER, "from_ts"), brokers.restarts])
    breaks = with_explained_rewinds(breaks, owners, down, context.settings.findings.dispute_s)
    breaks = with_causes_of_masters(breaks, reach_s)
    return BreakEvidence(breaks, requested, with_applied(resets, queues.applied_resets))
