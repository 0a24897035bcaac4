"""Outages of brokers, and lists of them by name servers, from all tables of a day."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import polars as pl

from mqreplay.evidence.brokers.broker_outages import broker_outages, restarts
from mqreplay.evidence.brokers.failovers import Failover, failovers
from mqreplay.evidence.brokers.listed_brokers import (
    listed_brokers,
    master_changes,
    name_server_outages,
    unlisted_brokers,
    until_listed,
)
from mqreplay.findings.broker_lists import long_unlisted
from mqreplay.replay.context import ReplayContext
from mqreplay.replay.member_evidence import recorder_ran
from mqreplay.replay.queue_pass import QueueResult


@dataclass(frozen=True)
class BrokerEvidence:
    """Frames of brokers."""

    outages: pl.DataFrame
    restarts: pl.DataFrame
    unlisted: pl.DataFrame
    master_changes: pl.DataFrame
    name_server_outages: pl.DataFrame
    lists: pl.DataFrame
    failovers: list[Failover]


def broker_evidence(
    context: ReplayContext,
    queues: QueueResult,
    polled_runtime: pl.DataFrame,
    cluster_info: pl.DataFrame,
    holes: pl.DataFrame,
    recorded_until: dt.datetime | None,
) -> BrokerEvidence:
    """Return the outages of brokers. ``polled_runtime`` are the polls of brokers without what ``holes`` hide."""
    limits, runtime = context.settings.findings, context.raw["broker_runtime"]
    outages = broker_outages(
        polled_runtime,
        context.small["heartbeat"],
        queues.answers,
        queues.errors,
        queues.pulls.failovers,
        limits.down_s,
        limits.unseen_down_s,
        from_error=recorder_ran(context),
    )
    lists = listed_brokers(cluster_info, recorded_until)
    unlisted = long_unlisted(unlisted_brokers(runtime, lists), limits.dispute_s)
    changes = master_changes(lists, runtime)
    end = context.day.end if recorded_until is None else min(recorded_until, context.day.end)
    return BrokerEvidence(
        until_listed(outages, unlisted),
        restarts(runtime),
        unlisted,
        changes,
        name_server_outages(cluster_info, holes),
        lists,
        failovers(outages, changes, lists, runtime, context.raw["broker"], end),
    )
