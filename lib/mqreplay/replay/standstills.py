"""Queues whose offset stood still while messages waited and a member of the group held them.

After consumption an offset is the smallest not yet processed (ProcessQueue#removeMessage), so one message that does not
end holds its queue back; so does a broker that refuses the reads.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

KEY = ["cluster", "consumer_group", "topic", "broker_name", "queue_id"]
REFUSED = 2  # ResponseCode.SYSTEM_BUSY: a 5.x slave that may not be read


def standstills(still: DataFrame, cluster: str, pull: DataFrame, owners: DataFrame, stuck_s: int) -> DataFrame:
    """KEY, from_ts, to_ts, offset (it stood at), waiting (messages behind it), refused, refusing_broker_id.

    ``still`` is by_queue/standing.py's frame, ``owners`` gold.queue_owner: of the stretches those stay in which members
    held the queue for ``stuck_s`` seconds.
    """
    span = F.collect_list(F.struct("from_ts", "to_ts"))
    held = owners.groupBy(*KEY).agg(span.alias("held"))
    refusals = pull.where(F.col("response_code") == REFUSED).groupBy(*KEY)
    busy = refusals.agg(F.collect_list(F.struct("request_ts", "broker_id")).alias("busy"))
    of_queue = still.withColumn("cluster", F.lit(cluster)).join(held, KEY).join(busy, KEY, "left")
    each = of_queue.select("*", F.explode("stretches").alias("s")).select("*", "s.*")
    meanwhile = F.filter("busy", lambda b: (b.request_ts >= F.col("since_ts")) & (b.request_ts <= F.col("to_ts")))
    return (
        each.where(_held_ms() >= stuck_s * 1000)
        .withColumn("met", F.coalesce(meanwhile, F.array()))
        .select(
            *KEY,
            "from_ts",
            "to_ts",
            "offset",
            "waiting",
            F.size("met").cast("bigint").alias("refused"),
            F.array_max(F.transform("met", lambda b: b.broker_id)).alias("refusing_broker_id"),
        )
    )


def _held_ms() -> Column:
    """How long of the stretch members held the queue; two that hold it at once count twice."""

    def overlap(h: Column) -> Column:
        began, ended = F.greatest("from_ts", h.from_ts), F.least("to_ts", h.to_ts)
        return F.greatest(F.unix_millis(ended) - F.unix_millis(began), F.lit(0))

    return F.aggregate("held", F.lit(0).cast("bigint"), lambda total, h: total + overlap(h))


def last_copies(snapshot: DataFrame) -> DataFrame:
    """broker_name, broker_id, copied_us: when (microseconds) each broker's consumerOffset.json was last copied."""
    copied = F.col("broker_id").isNotNull() & F.col("file_name").startswith("consumerOffset.json")
    return snapshot.where(copied).groupBy("broker_name", "broker_id").agg(F.unix_micros(F.max("ts")).alias("copied_us"))
