"""Brokers that revive messages of POP late."""

from __future__ import annotations

import polars as pl

from mqreplay.core.pop_revive import REVIVE_GROUP
from mqreplay.evidence.arrays.keys import QUEUE
from mqreplay.evidence.time_spans import with_session
from mqreplay.evidence_advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import counted, evidence, finding, one_or_none, whole_seconds


def find(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the brokers that revive messages of POP late."""
    return revive_findings(evidence.revive_lags, evidence.cluster, limits.same_cause_gap_s)


REVIVE_LAG = FindingKind(
    name="revive_lag",
    find=find,
    meaning="A broker does not work off its revive topic, in which it keeps what POP handed out and what was"
    " acknowledged. Messages that no consumer acknowledged come back late, or not at all.",
    rule="The end of a revive queue grew again and again for revive_lag_s seconds, and each time, revive_lag_s seconds"
    " later, the offset of CID_RMQ_SYS_REVIVE_GROUP was still below what had been there before. Without recorded ends"
    " nothing is reported, nor for brokers that keep records of POP in RocksDB.",
    follows="PopReviveService#consumeReviveMessage",
    advice="Read pop.log of the broker for errors of `PopReviveService`, and broker.log for a timer that is behind"
    " (`timerDelay`). Check that it can read and write messages: disk, `mqadmin brokerStatus -b BROKER_ADDR`. Progress:"
    " `mqadmin consumerProgress -g CID_RMQ_SYS_REVIVE_GROUP -n NAMESRV`.",
    confidence=0.9,
    thresholds=("findings.revive_lag_s", "findings.same_cause_gap_s"),
    needs=(Need("topic_stats"), Need("consumer_offset")),
    example="Broker broker-a did not work off 8 revive queues for 240 s: 1132 checkpoints and acknowledgements waited."
    " Messages that were not acknowledged come back late.",
    causes=(
        Cause("broker_down", same=("broker_name",), after_s=120),
        Cause("master_changed", same=("broker_name",), after_s=120),
    ),
)


def revive_findings(lags: pl.DataFrame, cluster: str, gap_s: int) -> pl.DataFrame:
    """Return REVIVE_LAG, of the frame of revive_lags.py.

    Spans of one broker that are ``gap_s`` seconds apart or less are one finding.
    """
    by = ["topic", "broker_name"]
    sessions = with_session(lags, by, "from_ts", "to_ts", gap_s)
    of_queue = sessions.group_by(*by, "session", "queue_id").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.col("behind").max(),
        pl.lit(REVIVE_GROUP).first().alias("consumer_group"),
    )
    found = of_queue.group_by(*by, "session").agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.len().alias("queues"),
        # The sum may not fit 64 bits: a file may hold any offset.
        pl.col("behind").cast(pl.Int128).sum().alias("behind"),
        pl.col("consumer_group").first(),
        one_or_none("queue_id"),
        evidence("silver.offset_change", "consumer_group", *QUEUE),
    )
    summary = pl.concat_str(
        pl.format("Broker {} did not work off {} for ", "broker_name", counted("queues", "revive queue")),
        whole_seconds("from_ts", "to_ts"),
        pl.format(": {} and acknowledgements waited.", counted("behind", "checkpoint")),
        pl.lit(" Messages that were not acknowledged come back late."),
    )
    return finding(found, REVIVE_LAG, cluster, severity="warning", summary=summary)
