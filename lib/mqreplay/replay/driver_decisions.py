"""Decisions that the driver judges from the small tables of a day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from mqreplay.decisions.committed_offset import offsets_in_memory
from mqreplay.decisions.committed_offset import stored_rows as stored_offsets
from mqreplay.decisions.delay_progress import delay_progress
from mqreplay.decisions.delay_progress import stored_rows as stored_delays
from mqreplay.decisions.failover_step import Seen, failover_steps, judged_steps
from mqreplay.decisions.flow_control import client_flow, pulled_flow
from mqreplay.decisions.flow_control import stored_rows as stored_flow
from mqreplay.decisions.listed_route import listed_route
from mqreplay.decisions.listed_route import stored_rows as stored_routes
from mqreplay.decisions.queue_lock import queue_lock
from mqreplay.decisions.queue_lock import stored_rows as stored_locks
from mqreplay.decisions.rebalance_round import COLUMNS, rebalance_round
from mqreplay.decisions.replication import Replication, replication
from mqreplay.decisions.retried_message import retried_message
from mqreplay.decisions.slave_copy import slave_copy
from mqreplay.decisions.slave_copy import stored_rows as stored_copies
from mqreplay.decisions.slave_sync import slave_sync
from mqreplay.decisions.suspended_message import suspended_messages
from mqreplay.evidence.brokers.failovers import name_server_scans, poll_intervals
from mqreplay.evidence.lags.unfinished_pulls import long_unfinished
from mqreplay.evidence.members.observed_clients import answers
from mqreplay.evidence.offsets.queue_ends import polled_ends
from mqreplay.replay.broker_evidence import BrokerEvidence
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.judged_rows import JudgedRows, counted_rows
from mqreplay.replay.member_evidence import MemberEvidence
from mqreplay.replay.message_pass import DeliveryResult
from mqreplay.replay.queue_pass import QueueResult
from mqreplay.replay.recorded import Recorded
from mqreplay.replay.send_pass import SendResult

NO_TOPIC = pl.lit(None, pl.String).alias("topic")  # a round is of all topics of its group


@dataclass(frozen=True)
class DriverDecisions:
    """Verdicts of the day and its lookback; ``counted`` counts those of the day.

    A field with a table's name has the rows that the table keeps.
    """

    failover_step: pl.DataFrame
    flow: pl.DataFrame
    flow_control: pl.DataFrame
    committed_offset: pl.DataFrame
    locks: pl.DataFrame
    queue_lock: pl.DataFrame
    retried_message: pl.DataFrame
    replicated: Replication
    replication: pl.DataFrame
    rounds: pl.DataFrame
    rebalance_round: pl.DataFrame
    slave_copy: pl.DataFrame
    slave_sync: pl.DataFrame
    delays: pl.DataFrame
    delay_progress: pl.DataFrame
    listed_route: pl.DataFrame
    counted: Sequence[JudgedRows]


def driver_decisions(
    context: ReplayContext,
    recorded: Recorded,
    clients: MemberEvidence,
    brokers: BrokerEvidence,
    queues: QueueResult,
    deliveries: DeliveryResult,
    sends: SendResult,
    exposure: pl.DataFrame,
    known: pl.DataFrame,
) -> DriverDecisions:
    """Judge steps of failovers, flow control, locks, retries, rebalances, flushes, slaves' copies and routes.

    ``exposure`` has the rows of gold.failover_exposure, ``known`` is the frame of queue_start.consumers.
    """
    small, limits, judged = context.small, context.settings.findings, context.day.judged
    pulls = queues.pulls
    seen = Seen(
        *(brokers.lists, brokers.master_changes, small["route"], pulls.failovers, pulls.returns),
        deliveries.repeated_deliveries,
        exposure,
        context.skew.clients if context.skew else (),
        context.starts,
        poll_intervals(small["assignment"]),
        name_server_scans(small["recorder_event"]),
    )
    steps = failover_steps(brokers.failovers, seen, limits.failed_over_s, limits.same_cause_gap_s)
    unfinished = long_unfinished(queues.offsets.unfinished_pulls, brokers.outages, limits.stuck_s)
    observed = client_flow(small["assignment"], small["topic_stats"], small["flow_control"], limits.stuck_s)
    flow = pl.concat([observed, pulled_flow(unfinished)])
    in_memory = offsets_in_memory(observed, known)
    committed = pl.concat([deliveries.passed_commits, stored_offsets(in_memory)])
    runtime = context.raw["broker_runtime"]
    locks = queue_lock(
        small["lock"], runtime, context.raw["broker"], clients.members, context.starts, context.day.since
    )
    raw, sent, back = context.raw, small["send_back"], deliveries.retry_deliveries
    configs = (raw["subscription_group"], raw["topic_config"], raw["broker"], raw["snapshot"], small["lock"])
    ends = pl.concat([queues.returned_ends, polled_ends(raw["topic_stats"])])
    by_pop = answers(small["assignment"]).filter("by_pop").select("consumer_group")
    silent = pl.concat([clients.unshared_groups.select("consumer_group"), by_pop])
    until = recorded.recorded_until
    retried = pl.concat(
        [
            retried_message(sent, back, sends.first_places, sends.second_tries, *configs, ends, silent, until),
            suspended_messages(deliveries.suspended_deliveries, small["assignment"], until),
        ]
    )
    rounds = rebalance_round(
        *(clients.owners, clients.members, small["rebalance"]),
        None if "consume_log" in recorded.missing else deliveries.repeated_deliveries,
        *(clients.unshared_groups, small["lock"].select("consumer_group").unique(), clients.polled.holes),
        *(context.starts, context.day.since),
        *(limits.rebalance_interval_s, limits.silent_s),
    )
    replicated = replication(runtime, raw["broker"], raw["ha_status"], limits.replication_lag_s)
    synced = slave_sync(raw["ha_status"], raw["broker"], runtime)
    polls = replicated.judged_polls
    copies = slave_copy(
        *(raw["topic_config"], raw["subscription_group"], raw["delay_offset"]),
        *(raw["snapshot"], runtime, raw["broker"]),
    )
    delays = delay_progress(
        *(raw["topic_stats"], raw["delay_offset"], raw["snapshot"], raw["broker"], runtime, raw["recorder_event"]),
        limits.stuck_s,
    )
    routes = listed_route(small["route"], raw["topic_config"], brokers.lists, raw["broker"])
    return DriverDecisions(
        failover_step=steps,
        flow=flow,
        flow_control=stored_flow(flow),
        committed_offset=committed,
        locks=locks,
        queue_lock=stored_locks(locks),
        retried_message=retried,
        replicated=replicated,
        replication=polls,
        rounds=rounds,
        rebalance_round=rounds.select(COLUMNS),
        slave_copy=stored_copies(copies),
        slave_sync=synced,
        delays=delays,
        delay_progress=stored_delays(delays),
        listed_route=stored_routes(routes),
        counted=[
            counted_rows("gold.failover_step", judged_steps(steps.filter(judged))),
            counted_rows("gold.flow_control", flow.filter(judged)),
            deliveries.commits,
            counted_rows("gold.committed_offset", in_memory.filter(judged)),
            counted_rows("gold.queue_lock", locks.filter(judged)),
            counted_rows("gold.retried_message", retried.filter(judged)),
            counted_rows("gold.replication", polls.filter(judged)),
            counted_rows("gold.rebalance_round", rounds.filter(judged).with_columns(NO_TOPIC)),
            counted_rows("gold.slave_copy", copies.filter(judged)),
            counted_rows("gold.slave_sync", synced.filter(judged)),
            counted_rows("gold.delay_progress", delays.filter(judged)),
            counted_rows("gold.listed_route", routes.filter(judged)),
        ],
    )
