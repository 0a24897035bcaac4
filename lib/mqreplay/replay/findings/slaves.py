"""Slaves whose copies of the offsets stayed behind: SlaveSynchronize no longer copies them."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.replay.far import total
from mqreplay.replay.findings.offsets import KEY
from mqreplay.replay.findings.shape import EVIDENCE_ROWS, counted, evidence, finding, text_of

SLAVE = ["cluster", "broker_name", "broker_id"]


def stale_slave_offsets(continuity: DataFrame, stale_slave_s: int) -> DataFrame:
    """One finding a slave that kept an offset below all that its master held in the last ``stale_slave_s`` seconds.

    ``continuity`` is gold.offset_continuity.
    """
    stale = continuity.where("kind = 'stale'")
    of_copy = stale.groupBy(*SLAVE, "consumer_group", "topic", "queue_id").agg(
        F.min("from_ts").alias("from_ts"),
        F.max("to_ts").alias("to_ts"),
        F.max("size").alias("lacks"),
        evidence("gold.offset_continuity", *KEY),
    )
    found = of_copy.groupBy(*SLAVE).agg(
        F.min("from_ts").alias("from_ts"),
        F.max("to_ts").alias("to_ts"),
        F.count(F.lit(1)).alias("queues"),
        F.count_distinct("consumer_group").alias("groups"),
        total("lacks").alias("messages"),
        F.slice(F.array_sort(F.flatten(F.collect_list("evidence"))), 1, EVIDENCE_ROWS).alias("evidence"),
    )
    return finding(
        found,
        kind="stale_slave_offsets",
        severity=F.lit("warning"),
        summary=text_of(
            "Slave ",
            "{broker_id}",
            " of ",
            "{broker_name}",
            " kept offsets of ",
            counted("queues", "queue"),
            " of ",
            counted("groups", "group"),
            f" below all that its master held for {stale_slave_s} s; were it read instead, up to ",
            counted("messages", "message"),
            " would be delivered again.",
        ),
        advice="See in the slave's broker.log why SlaveSynchronize fails, and whether it still reaches its master.",
        confidence=0.9,
    )
