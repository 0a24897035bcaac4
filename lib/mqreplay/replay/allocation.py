"""gold.allocation: each rebalance against RebalanceImpl's rule: given the lists it saw, the client takes what its
AllocateMessageQueueStrategy gives."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.bind import functions as rocketmq

JUDGED = ("AVG", "AVG_BY_CIRCLE")


def allocation(rebalance: DataFrame) -> DataFrame:
    """One row a row of silver.rebalance: the queues its strategy gives, those the client took, whether they agree."""
    queues = F.transform("mq_all", lambda q: F.struct(F.col("topic").alias("topic"), q.broker_name, q.queue_id))
    law = rocketmq.allocate.arrow_udf("strategy", "consumer_group", "client_id", queues, "cid_all")
    judged = F.col("strategy").isin(*JUDGED) & F.col("cid_all").isNotNull() & F.col("mq_all").isNotNull()
    given = F.transform(
        "law.value", lambda q: F.struct(q.broker_name.alias("broker_name"), q.queue_id.alias("queue_id"))
    )
    same = F.array_sort("expected") == F.array_sort("actual")
    both_failed = F.col("law.error").isNotNull() & F.col("error").isNotNull()
    judgement = (
        F.when(~F.col("judged"), "undetermined")
        .when(both_failed | F.coalesce(same, F.lit(False)), "agree")
        .otherwise("differ")
    )
    reason = (
        F.when(
            F.col("cid_all").isNull() | F.col("mq_all").isNull(),
            "the recording lacks the lists that the client saw",
        )
        .when(~F.col("judged"), F.concat(F.lit("strategy "), "strategy", F.lit(" is not yet judged")))
        .when(both_failed, F.concat(F.lit("the strategy refuses these lists: "), "law.error.detail"))
        .when(F.col("judgement") == "agree", F.lit("the client took what the strategy gives"))
        .when(
            F.col("law.error").isNotNull(),
            F.concat(F.lit("the strategy refuses these lists: "), "law.error.detail"),
        )
        .when(F.col("error").isNotNull(), F.concat(F.lit("the client failed: "), "error"))
        .otherwise("the client took other queues than the strategy gives for the lists it saw")
    )
    return (
        rebalance.withColumn("judged", judged)
        .withColumn("law", F.when(F.col("judged"), law))
        .withColumn("expected", F.when(F.col("judged") & F.col("law.error").isNull(), given))
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
