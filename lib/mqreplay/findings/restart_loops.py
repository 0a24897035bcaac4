"""Brokers that start again and again, and are never ready."""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.decode.broker_events import READY, START_FAILED, STARTED
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import evidence, finding, none
from mqreplay.words.keys import BROKER

LEAST: Final = 3  # starts in a row; an operator may start a broker twice


def find(evidence: FindingEvidence, _limits: Limits) -> pl.DataFrame:
    """Return the brokers in a loop of starts."""
    return none() if evidence.broker_event is None else loop_findings(evidence.broker_event, evidence.cluster)


RESTART_LOOP = FindingKind(name="restart_loop", find=find, confidence=0.9)


def loop_findings(broker_event: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return RESTART_LOOP: one finding for each run of at least LEAST starts of which none became ready.

    A broker writes all its settings when it starts (BrokerStartup#createBrokerController) and "boot success" when it
    serves (BrokerStartup#start). ``broker_event`` is the silver table.
    """
    of_process = broker_event.filter(pl.col("event").is_in([STARTED, START_FAILED, READY])).sort("ts", "record_id")
    # A start that is the first of a row begins a run; null ids of brokers are equal.
    begins = (pl.col("event") == STARTED) & (pl.col("starts") == 1)
    runs = of_process.with_columns(begins.fill_null(value=False).cum_sum().over(BROKER).alias("run"))
    is_start = pl.col("event") == STARTED
    last_start = pl.col("ts").filter(is_start).max()
    loops = (
        runs.group_by(*BROKER, "run")
        .agg(
            pl.col("ts").filter(is_start).min().alias("from_ts"),
            last_start.alias("to_ts"),
            pl.col("starts").max(),
            pl.col("detail").drop_nulls().last().alias("exception"),
            (pl.col("ts").filter(pl.col("event") == READY).min() - last_start).dt.total_seconds().alias("ready_s"),
            evidence("silver.broker_event", "record_id"),
        )
        .filter(pl.col("starts") - pl.col("ready_s").is_not_null() >= LEAST)
    )
    return finding(loops, RESTART_LOOP, cluster, severity="critical")
