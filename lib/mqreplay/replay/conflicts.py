"""Members of one group that do not agree on what they do: different strategies, or different subscriptions."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.replay.membership import MEMBER, subscriptions
from mqreplay.replay.sessions import with_session

GROUP = ["cluster", "consumer_group"]


def strategy_conflicts(rebalance: DataFrame, members: DataFrame, interval_s: int) -> DataFrame:
    """GROUP, from_ts, to_ts, sides (strategies), topics, record_ids: while members allocated by different strategies.

    ``members`` is membership's frame, ``interval_s`` the rebalance interval.
    """
    named = rebalance.where("strategy IS NOT NULL")
    told = named.select(*MEMBER, "topic", "ts", F.col("strategy").alias("side"), "record_id")
    return _overlaps(told, ["topic"], members, interval_s)


def subscription_conflicts(heartbeat: DataFrame, members: DataFrame, interval_s: int) -> DataFrame:
    """GROUP, from_ts, to_ts, sides (subscriptions as text), record_ids: while members subscribed to different things.

    A broker keeps one subscription for a group, that of the last heartbeat (ConsumerGroupInfo#updateSubscription), but
    members share queues as if all subscribed alike. ``interval_s`` is the heartbeat interval.
    """
    told = subscriptions(heartbeat).select(*MEMBER, "ts", F.col("told").alias("side"), "record_id")
    return _overlaps(told.withColumn("topic", F.lit("")), ["topic"], members, interval_s)


def _overlaps(told: DataFrame, within: list[str], members: DataFrame, interval_s: int) -> DataFrame:
    """Stretches in which different clients stood on different sides.

    A side holds from one word to the next, and after the last until the client left, or the next word was due.
    """
    by = [*GROUP, *within]
    several = told.groupBy(*by).agg(F.count_distinct("side").alias("_n")).where("_n > 1").drop("_n")
    held = with_session(told.join(several, by), [*by, "client_id", "side"], "ts", "ts", 3 * interval_s)
    last = F.max("ts") + F.make_dt_interval(secs=F.lit(interval_s))
    spans = held.groupBy(*by, "client_id", "side", "session").agg(
        F.min("ts").alias("from_ts"), last.alias("to_ts"), F.min("record_id").alias("record_id")
    )
    left = members.where("left").select(*MEMBER, F.col("to_ts").alias("_left"))
    inside = (F.col("_left") >= F.col("from_ts")) & (F.col("_left") < F.col("to_ts"))
    ended = (
        spans.join(left, MEMBER, "left").groupBy(*spans.columns).agg(F.min(F.when(inside, F.col("_left"))).alias("_l"))
    )
    spans = ended.withColumn("to_ts", F.coalesce("_l", "to_ts")).drop("_l")
    names = ("client_id", "side", "from_ts", "to_ts", "record_id")
    pairs = spans.join(spans.select(*by, *[F.col(c).alias(f"o_{c}") for c in names]), by).where(
        (F.col("client_id") != F.col("o_client_id"))
        & (F.col("side") < F.col("o_side"))
        & (F.col("from_ts") <= F.col("o_to_ts"))
        & (F.col("o_from_ts") <= F.col("to_ts"))
    )
    both = pairs.select(
        *by,
        F.greatest("from_ts", "o_from_ts").alias("from_ts"),
        F.least("to_ts", "o_to_ts").alias("to_ts"),
        F.array("side", "o_side").alias("sides"),
        F.array("record_id", "o_record_id").alias("record_ids"),
    )
    together = with_session(both, GROUP, "from_ts", "to_ts", interval_s)
    return (
        together.groupBy(*GROUP, "session")
        .agg(
            F.min("from_ts").alias("from_ts"),
            F.max("to_ts").alias("to_ts"),
            F.array_sort(F.array_distinct(F.flatten(F.collect_list("sides")))).alias("sides"),
            F.array_sort(F.collect_set("topic")).alias("topics"),
            F.array_sort(F.array_distinct(F.flatten(F.collect_list("record_ids")))).alias("record_ids"),
        )
        .drop("session")
    )
