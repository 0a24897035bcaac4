"""Brokers that did not answer, and what that cost; slaves that refuse to be read."""

from __future__ import annotations

import polars as pl

from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.brokers.broker_outages import ROUTE, with_outage
from mqreplay.evidence.intervals import with_session
from mqreplay.evidence.offsets.standstills import SYSTEM_BUSY
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.pull_runs import joined_runs, pull_runs
from mqreplay.findings.pulls import SLAVE_PULL
from mqreplay.findings.shape import evidence, evidence_row, finding, one_or_none, record_key
from mqreplay.words.keys import BROKER


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return outages of brokers, reads from slaves without an outage, and slaves that refuse reads (slave_pull)."""
    cluster, gap_s = evidence.cluster, limits.same_cause_gap_s
    failovers = with_outage(evidence.failovers, evidence.outages, limits.failed_over_s, gap_s)
    return pl.concat(
        [
            outage_findings(evidence.outages, failovers, cluster),
            failover_findings(failovers, cluster, gap_s),
            refusing_slaves(evidence.refusals, cluster, gap_s),
        ]
    )


BROKER_DOWN = FindingKind(
    name="broker_down",
    find=find,
    confidence=1.0,
    needs=(Need("broker_runtime"),),
    thresholds=("findings.down_s", "findings.unseen_down_s", "findings.failed_over_s"),
    ends_after="findings.unseen_down_s",  # somebody asks more often: the broker answers again
)
FAILOVER_PULL = FindingKind(
    name="failover_pull",
    find=find,
    confidence=0.9,
    needs=(Need("pull_log"),),
    thresholds=("findings.failed_over_s", "findings.same_cause_gap_s"),
    causes=(Cause("broker_down", same=("broker_name",), after_s=120, of_master=True),),
)
OUTAGE = ("broker_name", "outage_ts")
NARROW = ("consumer_group", "topic")  # a finding names them if all its pulls share them
_COUNTS = (pl.len().alias("pulls"), pl.col("consumer_group").drop_nulls().n_unique().alias("groups"))
REFUSED_FORM = "refused"  # of slave_pull.toml
PULLS_KEPT = 20  # pulls that an outage sent to a slave and that are kept as evidence, the first


def outage_findings(outages: pl.DataFrame, failovers: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Return BROKER_DOWN, with the pulls that it sent to a slave.

    ``outages`` is the frame of broker_outages.py, ``failovers`` that of its with_outage. How many messages an
    outage delivered again is the sum of its effects: causes.py adds it.
    """
    key = pl.struct(pl.lit(ROUTE).alias("table_name"), "record_id")
    cost = (
        failovers.filter(pl.col("outage_ts").is_not_null())
        .group_by(OUTAGE)
        .agg(*_COUNTS, key.sort_by("ts", "record_id").head(PULLS_KEPT).alias("pull_keys"))
    )
    of_masters = cost.with_columns(pl.lit(0, pl.Int64).alias("broker_id"))
    rows = outages.join(
        of_masters, left_on=(*BROKER, "from_ts"), right_on=("broker_name", "broker_id", "outage_ts"), how="left"
    )
    went = pl.col("pulls") > 0
    keys = pl.when(went).then(pl.concat_list("keys", "pull_keys")).otherwise("keys")
    row = evidence_row(pl.element().struct.field("table_name"), record_key(pl.element().struct.field("record_id")))
    rows = rows.with_columns(
        keys.list.eval(row).alias("evidence"), (pl.col("errors") + pl.col("pulls").fill_null(0)).alias("evidence_count")
    )
    is_master = pl.col("broker_id") == 0
    severity = pl.when(is_master).then(pl.lit("critical")).otherwise(pl.lit("warning"))
    return finding(rows, BROKER_DOWN, cluster, severity=severity)


def failover_findings(failovers: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return FAILOVER_PULL: pulls to a slave without a known outage; pulls ``gap_s`` seconds apart are one finding.

    ``failovers`` is as in `outage_findings`.
    """
    alone = failovers.filter(pl.col("outage_ts").is_null()).rename({"slave_id": "broker_id"})
    place = ("consumer_group", "topic", "queue_id", "client_id", "broker_id")
    found = (
        with_session(alone, ("broker_name",), "ts", "ts", gap_s)
        .group_by("broker_name", "session")
        .agg(
            pl.col("ts").min().alias("from_ts"),
            pl.col("ts").max().alias("to_ts"),
            *_COUNTS,
            *[one_or_none(name) for name in place],
            evidence(ROUTE, "record_id"),
        )
    )
    return finding(found, FAILOVER_PULL, cluster, severity="critical")


def refusals_of_shard(pull: pl.DataFrame, gap_s: int) -> pl.DataFrame:
    """Return runs of a shard's pulls that a slave refused, each at most ``gap_s`` seconds after the one before.

    Columns: BROKER and those of `pull_runs`, of NARROW.
    """
    refused = pull.filter((pl.col("response_code") == SYSTEM_BUSY) & (pl.col("broker_id") > 0))
    return pull_runs(refused, BROKER, dict(zip(NARROW, NARROW, strict=True)), gap_s)


def refusing_slaves(refusals: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return SLAVE_PULL, the harmful kind: clients were sent to a slave that may not be read and refused them (5.x).

    ``refusals`` has the rows of `refusals_of_shard` of all shards.
    """
    found = joined_runs(refusals, BROKER, NARROW, gap_s, "silver.pull")
    return finding(found, SLAVE_PULL, cluster, severity="critical", form=REFUSED_FORM, advice_form=REFUSED_FORM)
