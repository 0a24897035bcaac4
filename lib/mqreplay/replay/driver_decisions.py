"""Decisions that the driver judges from the small tables of a day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from mqreplay.decisions import flow_control, queue_lock
from mqreplay.decisions.failover_step import Seen, failover_steps, judged_steps
from mqreplay.replay.broker_evidence import BrokerEvidence
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.judged_rows import JudgedRows, counted_rows
from mqreplay.replay.member_evidence import MemberEvidence
from mqreplay.replay.message_pass import DeliveryResult
from mqreplay.replay.queue_pass import PullResult


@dataclass(frozen=True)
class DriverDecisions:
    """Verdicts of the day and its lookback, by the gold table that keeps them.

    ``stored``: the rows that tables keep, by their names. ``counted`` counts the verdicts of the day.
    """

    failover_step: pl.DataFrame
    flow_control: pl.DataFrame
    queue_lock: pl.DataFrame
    stored: Mapping[str, pl.DataFrame]
    counted: Sequence[JudgedRows]


def driver_decisions(
    context: ReplayContext,
    clients: MemberEvidence,
    brokers: BrokerEvidence,
    pulls: PullResult,
    deliveries: DeliveryResult,
    exposure: pl.DataFrame,
) -> DriverDecisions:
    """Judge steps of failovers, flow control and locks. ``exposure`` has the rows of gold.failover_exposure."""
    small, limits, judged = context.small, context.settings.findings, context.day.judged
    seen = Seen(
        *(brokers.lists, brokers.master_changes, small["route"], pulls.failovers, pulls.returns),
        deliveries.repeated_deliveries,
        exposure,
        context.skew.clients if context.skew else (),
        context.starts,
    )
    steps = failover_steps(brokers.failovers, seen, limits.failed_over_s, limits.same_cause_gap_s)
    flow = flow_control.observed_flow(small["assignment"], small["topic_stats"], limits.stuck_s)
    runtime = context.raw["broker_runtime"]
    locks = queue_lock.queue_lock(small["lock"], runtime, clients.members, context.starts, context.day.since)
    return DriverDecisions(
        failover_step=steps,
        flow_control=flow,
        queue_lock=locks,
        stored={
            "gold.failover_step": steps,
            "gold.flow_control": flow_control.stored_rows(flow),
            "gold.queue_lock": queue_lock.stored_rows(locks),
        },
        counted=[
            counted_rows("gold.failover_step", judged_steps(steps.filter(judged))),
            counted_rows("gold.flow_control", flow.filter(judged)),
            counted_rows("gold.queue_lock", locks.filter(judged)),
        ],
    )
