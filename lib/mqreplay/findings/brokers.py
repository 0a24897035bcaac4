"""Brokers that did not answer, and what that cost; slaves that refuse to be read."""

from __future__ import annotations

import datetime as dt

import polars as pl

from mqreplay.findings.kind import FindingKind
from mqreplay.findings.pull_runs import joined_runs, pull_runs
from mqreplay.findings.pulls import SLAVE_PULL
from mqreplay.findings.shape import counted, evidence_row, finding, record_key
from mqreplay.judge.broker_outages import BROKER
from mqreplay.judge.held_standstills import REFUSED

BROKER_DOWN = FindingKind(
    name="broker_down",
    rule="Between two answers of a broker lay a silence in which somebody asked and got an error.",
    advice="See why it died or hung (its log, the kernel's, pauses of its JVM); expect messages delivered twice.",
    confidence=1.0,
    needs=("broker_runtime",),
)
OUTAGE = (*BROKER, "from_ts")
NARROW = ("consumer_group", "topic")  # a finding names them if all its pulls share them


def outage_findings(
    outages: pl.DataFrame, failovers: pl.DataFrame, repeated: pl.DataFrame, cluster: str, after_s: int
) -> pl.DataFrame:
    """Return BROKER_DOWN with what it cost: pulls that went to a slave, and messages delivered again.

    ``outages`` and ``failovers`` are judge/broker_outages.py's, ``repeated`` judge/deliveries.py's frame, each of all
    shards. Both costs count until ``after_s`` seconds after the broker's return, when clients have come back to it.
    """
    spans = outages.with_columns((pl.col("to_ts") + dt.timedelta(seconds=after_s)).alias("until_ts"))
    pulls = (
        _within(spans, failovers)
        .group_by(OUTAGE)
        .agg(pl.len().alias("pulls"), pl.col("consumer_group").drop_nulls().n_unique().alias("groups"))
    )
    again = _within(spans, repeated).group_by(OUTAGE).agg(pl.len().alias("again"))
    row = evidence_row(pl.element().struct.field("table_name"), record_key(pl.element().struct.field("record_id")))
    rows = (
        spans.join(pulls, on=OUTAGE, how="left")
        .join(again, on=OUTAGE, how="left")
        .with_columns(pl.col("keys").list.eval(row).alias("evidence"), pl.col("errors").alias("evidence_count"))
    )
    is_master = pl.col("broker_id") == 0
    role = pl.when(is_master).then(pl.lit("The master of ")).otherwise(pl.format("Slave {} of ", "broker_id"))
    went = pl.format("; {} of {} went to a slave instead", counted("pulls", "pull"), counted("groups", "group"))
    redelivered = pl.format("; {} delivered again", counted("again", "message"))
    summary = pl.concat_str(
        role,
        pl.format("{} did not answer for {} s", "broker_name", _whole_seconds()),
        pl.when(is_master & (pl.col("pulls") > 0)).then(went),  # pulls leave only a master that is gone
        pl.when(pl.col("again") > 0).then(redelivered),
        pl.lit("."),
        ignore_nulls=True,
    )
    severity = pl.when(is_master).then(pl.lit("critical")).otherwise(pl.lit("warning"))
    return finding(rows, BROKER_DOWN, cluster, severity=severity, summary=summary)


def refusals_of_shard(pull: pl.DataFrame, gap_s: int) -> pl.DataFrame:
    """Return runs of a shard's pulls that a slave refused, each at most ``gap_s`` seconds after the one before.

    Columns: BROKER and those of `pull_runs`, of NARROW.
    """
    refused = pull.filter((pl.col("response_code") == REFUSED) & (pl.col("broker_id") > 0))
    return pull_runs(refused, BROKER, dict(zip(NARROW, NARROW, strict=True)), gap_s)


def refusing_slaves(refusals: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return SLAVE_PULL, the harmful kind: clients were sent to a slave that may not be read and refused them (5.x).

    ``refusals`` has the rows of `refusals_of_shard` of all shards.
    """
    found = joined_runs(refusals, BROKER, NARROW, gap_s, "silver.pull")
    summary = pl.format(
        "Slave {} of {} refused {} that its master had sent to it: it may not be read.",
        "broker_id",
        "broker_name",
        counted("pulls", "pull"),
    )
    advice = "Set slaveReadEnable=true on the slave, or false on its master too, so that nobody is sent to it."
    return finding(found, SLAVE_PULL, cluster, severity="critical", summary=summary, advice=advice, confidence=1.0)


def _within(spans: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the same broker name within each outage's span, with OUTAGE."""
    near = spans.select(*OUTAGE, "until_ts").join(rows.select("broker_name", "ts", "consumer_group"), on="broker_name")
    return near.filter(pl.col("ts").is_between("from_ts", "until_ts"))


def _whole_seconds() -> pl.Expr:
    """Return how long an outage lasted, in seconds, rounded."""
    ms = pl.col("to_ts").dt.epoch("ms") - pl.col("from_ts").dt.epoch("ms")
    return (ms + 500) // 1000
