"""Queues whose offset stood still while messages waited and a member of the group held them.

After consumption an offset is the smallest not yet processed (ProcessQueue#removeMessage), so one message that does not
end holds its queue back; so does a broker that refuses the reads.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

KEY = ["cluster", "consumer_group", "topic", "broker_name", "queue_id"]
REFUSED = 2  # ResponseCode.SYSTEM_BUSY: a 5.x slave that may not be read


def standstills(still: DataFrame, cluster: str, pull: DataFrame, owners: DataFrame, stuck_s: int) -> DataFrame:
    """KEY, from_ts, to_ts, offset (it stood at), waiting (messages behind it), refused, refusing_broker_id.

    ``still`` is by_queue/standing.py's frame, ``owners`` gold.queue_owner: of the stretches those stay in which members
    held the queue for ``stuck_s`` seconds.
    """
    waited = still.select(F.lit(cluster).alias("cluster"), "*")
    held = waited.join(owners.select(*KEY, F.col("from_ts").alias("_from"), F.col("to_ts").alias("_to")), KEY)
    overlap = _seconds(F.greatest("from_ts", "_from"), F.least("to_ts", "_to"))
    kept = held.groupBy(*waited.columns).agg(F.sum(F.greatest(overlap, F.lit(0.0))).alias("held_s"))
    return _with_refusals(kept.where(F.col("held_s") >= stuck_s), pull)


def last_copies(snapshot: DataFrame) -> DataFrame:
    """broker_name, copied_us: when (microseconds) its master's consumerOffset.json was last copied."""
    copied = (F.col("broker_id") == 0) & F.col("file_name").startswith("consumerOffset.json")
    return snapshot.where(copied).groupBy("broker_name").agg(F.unix_micros(F.max("ts")).alias("copied_us"))


def _with_refusals(still: DataFrame, pull: DataFrame) -> DataFrame:
    """Adds ``refused`` (answers SYSTEM_BUSY meanwhile) and the broker that gave them."""
    busy = pull.where(F.col("response_code") == REFUSED).select(
        *KEY, F.col("request_ts").alias("_ts"), F.col("broker_id").alias("_broker_id")
    )
    near = (F.col("_ts") >= F.col("since_ts")) & (F.col("_ts") <= F.col("to_ts"))
    keys = [F.col(f"s.{k}") == F.col(f"b.{k}") for k in KEY]
    met = still.alias("s").join(busy.alias("b"), [*keys, near], "left")
    return met.groupBy(*[F.col(f"s.{c}") for c in (*KEY, "from_ts", "to_ts", "offset", "waiting")]).agg(
        F.count("b._ts").alias("refused"), F.max("b._broker_id").alias("refusing_broker_id")
    )


def _seconds(since, until):  # type: ignore[no-untyped-def]
    return (F.unix_millis(until) - F.unix_millis(since)) / 1000
