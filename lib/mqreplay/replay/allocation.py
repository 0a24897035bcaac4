"""gold.allocation: each rebalance against RebalanceImpl's rule: given the lists it saw, the client takes what its
AllocateMessageQueueStrategy gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.bind import functions as rocketmq

# Queues and clients that a row names: 10,000 rows of 1,000 took a worker a gigabyte more than batches of 64 MB did.
WIDE = 300
# Errors of ours: RocketMQ's rule was not asked, for want of what it works with.
UNASKED = ("SettingsLacking", "UnknownStrategy", "NullArgument")


def widest(rebalance: DataFrame) -> DataFrame:
    """One row, ``names``: the most queues and clients that a row of silver.rebalance has; null without rows."""
    return rebalance.select(F.max(F.size("mq_all") + F.size("cid_all")).alias("names"))


def allocation(
    rebalance: DataFrame, groups: Mapping[str, Mapping[str, Any]] | None = None, virtual_node_cnt: int = 10
) -> DataFrame:
    """One row a row of silver.rebalance: the queues its strategy gives, those the client took, whether they agree.

    ``groups``: what strategies of a group were made with (see bind.strategies); ``virtual_node_cnt``: places of a
    client on the ring of CONSISTENT_HASH, where its group says nothing else.
    """
    queues = F.transform("mq_all", lambda q: F.struct(F.col("topic").alias("topic"), q.broker_name, q.queue_id))
    law = rocketmq.allocate_with(groups or {}, virtual_node_cnt).arrow_udf(
        "strategy", "consumer_group", "client_id", queues, "cid_all"
    )
    lacking = (
        F.when(F.col("cid_all").isNull() | F.col("mq_all").isNull(), "the lists that the client saw")
        .when(F.col("strategy").isNull(), "the client's strategy")
        .when(F.col("mq_divided").isNull() & F.col("error").isNull(), "what the client took")
    )
    given = F.transform(
        "law.value", lambda q: F.struct(q.broker_name.alias("broker_name"), q.queue_id.alias("queue_id"))
    )
    unasked = F.coalesce(F.col("law.error.code").isin(*UNASKED), F.lit(False))
    refused = F.col("law.error").isNotNull()
    same = F.array_sort("expected") == F.array_sort("actual")
    both_failed = refused & F.col("error").isNotNull()
    judgement = (
        F.when(F.col("lacking").isNotNull() | unasked, "undetermined")
        .when(both_failed | F.coalesce(same, F.lit(False)), "agree")
        .otherwise("differ")
    )
    refuses = F.concat(F.lit("the strategy refuses these lists: "), F.coalesce("law.error.detail", "law.error.code"))
    reason = (
        F.when(F.col("lacking").isNotNull(), F.concat(F.lit("the recording lacks "), "lacking"))
        .when(unasked, F.concat(F.lit("not judged: "), "law.error.detail"))
        .when(both_failed, refuses)
        .when(F.col("judgement") == "agree", F.lit("the client took what the strategy gives"))
        .when(refused, refuses)
        .when(F.col("error").isNotNull(), F.concat(F.lit("the client failed: "), "error"))
        .otherwise("the client took other queues than the strategy gives for the lists it saw")
    )
    return (
        rebalance.withColumn("lacking", lacking)
        .withColumn("law", F.when(F.col("lacking").isNull(), law))
        .withColumn("expected", F.when(F.col("lacking").isNull() & ~refused, given))
        .withColumnRenamed("mq_divided", "actual")
        .withColumn("judgement", judgement)
        .select(
            "cluster",
            "day",
            "consumer_group",
            "topic",
            "client_id",
            F.col("ts").alias("rebalance_ts"),
            "strategy",
            "cid_all",
            "mq_all",
            "expected",
            "actual",
            "judgement",
            reason.alias("reason"),
            "record_id",
        )
    )
