"""Slaves whose copies of the offsets stayed behind: SlaveSynchronize no longer copies them."""

from __future__ import annotations

import polars as pl

from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.shape import counted, evidence_rows, finding, row_key
from mqreplay.judge.saturating import total

STALE_SLAVE_OFFSETS = FindingKind(
    name="stale_slave_offsets",
    meaning="A slave no longer copied the consumer offsets of its master. If the master were lost now, consumers that"
    " read their offsets from the slave would receive old messages again.",
    rule="A slave's copy of an offset stayed below every value that its master held in the last stale_slave_s seconds.",
    follows="SlaveSynchronize#syncConsumerOffset",
    advice="Read broker.log of the slave for `SyncConsumerOffset Exception`: it says why the copy fails. Check that the"
    " slave reaches its master: `mqadmin clusterList -n NAMESRV` and `mqadmin getBrokerConfig -b SLAVE_ADDR`.",
    confidence=0.9,
    needs=("consumer_offset",),
    thresholds=("findings.stale_slave_s",),
    example="Slave 1 of broker-a kept offsets of 8 queues of 2 groups below all that its master held for 150 s. If"
    " consumers read them now, they would receive up to 398 messages again.",
    causes=(Cause("broker_down", same=("broker_name",), after_s=120),),
    ends_after="findings.stale_slave_s",
)
SLAVE = ("broker_name", "broker_id")
COPY = (*SLAVE, "topic", "consumer_group", "queue_id")


def stale_slave_offsets(continuity: pl.DataFrame, cluster: str, stale_slave_s: int) -> pl.DataFrame:
    """Return one finding a slave that kept an offset below all that its master held in the last ``stale_slave_s`` s.

    ``continuity`` is gold.offset_continuity.
    """
    stale = continuity.filter(pl.col("kind") == "stale")
    of_copy = stale.group_by(*COPY).agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.col("size").max().alias("lacks"),
        row_key(*COPY, "kind", "to_ts").unique().alias("keys"),
    )
    found = of_copy.group_by(*SLAVE).agg(
        pl.col("from_ts").min(),
        pl.col("to_ts").max(),
        pl.len().alias("queues"),
        pl.col("consumer_group").drop_nulls().n_unique().alias("groups"),
        total("lacks").alias("messages"),
        evidence_rows("gold.offset_continuity", pl.col("keys").explode().sort().implode()),
    )
    summary = pl.format(
        "Slave {} of {} kept offsets of {} of {} below all that its master held for {} s. If consumers read them now,"
        " they would receive up to {} again.",
        "broker_id",
        "broker_name",
        counted("queues", "queue"),
        counted("groups", "group"),
        pl.lit(stale_slave_s),
        counted("messages", "message"),
    )
    return finding(found, STALE_SLAVE_OFFSETS, cluster, severity="warning", summary=summary)
