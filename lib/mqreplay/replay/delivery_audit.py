"""gold.delivery_audit: what became of each group's messages, by the logs of producers and consumers.

The sums are those of Jepsen's total-queue (core/delivery_audit has the law over multisets); here each message is a row,
named by its unique id. Nothing is called lost for want of evidence: only what the group passed without being given it.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from mqreplay.replay.deliveries import DONE, once

PLACE = ["topic", "broker_name", "queue_id"]
GROUP_TOPIC = ["cluster", "consumer_group", "topic"]
GROUP_QUEUE = ["cluster", "consumer_group", *PLACE]


def delivery_audit(
    produce: DataFrame,
    consume: DataFrame,
    subscriptions: DataFrame,
    commits: DataFrame,
    offset_change: DataFrame,
    continuity: DataFrame,
    broadcasting: DataFrame,
) -> DataFrame:
    """One row a group, topic and day. ``subscriptions`` is membership.subscribed_tags' frame, ``continuity`` gold's.

    A message counts from the first offset of its queue that the group was given, to the last that it committed.
    """
    given = once(consume).join(F.broadcast(broadcasting), ["cluster", "consumer_group"], "left_anti")
    done = given.where(F.col("status").isin(*DONE))
    first = (
        done.where(F.col("queue_topic") == F.col("topic"))
        .groupBy(*GROUP_QUEUE)
        .agg(F.min("queue_offset").alias("first_offset"))
    )
    sent = (
        produce.where("send_status = 'SEND_OK' AND queue_offset IS NOT NULL")
        .select("cluster", *PLACE, "queue_offset", "tags", "msg_id", F.to_date("ts").alias("day"))
        .distinct()
    )
    due = sent.join(first.join(_committed(commits, offset_change), GROUP_QUEUE, "left"), ["cluster", *PLACE])
    due = due.where(F.col("queue_offset") >= F.col("first_offset"))
    by_message = given.groupBy(*GROUP_TOPIC, "msg_id").agg(
        F.count_if(F.col("status").isin(*DONE)).alias("deliveries"),
        F.count_if(~F.col("status").isin(*DONE)).alias("tries"),
    )
    judged = _with_skips(due.join(by_message, [*GROUP_TOPIC, "msg_id"], "left"), continuity)
    tagged = judged.join(F.broadcast(subscriptions), GROUP_TOPIC, "left")
    counted = tagged.groupBy(*GROUP_TOPIC, "day").agg(*_counts())
    strange = _unexpected(done, sent, produce)
    order = _out_of_order(done)
    whole = counted.join(strange, [*GROUP_TOPIC, "day"], "left").join(order, [*GROUP_TOPIC, "day"], "left")
    by_sql = F.col("sql92")
    return whole.select(
        *GROUP_TOPIC,
        "day",
        "acknowledged",
        "delivered",
        "pending",
        "failed",
        "skipped",
        F.when(~by_sql, F.col("filtered")).alias("filtered"),
        F.when(~by_sql & (F.col("unknown_end") == 0), F.col("lost")).alias("lost"),
        "duplicated",
        F.coalesce("unexpected", F.lit(0)).alias("unexpected"),
        F.col("out_of_order"),
        F.when(by_sql, "a SQL92 filter decides what the group takes: what it was not given may not be lost")
        .when(F.col("unknown_end") > 0, "no commit tells how far the group came: what it was not given may be pending")
        .when(F.col("out_of_order").isNull(), "by the logs; order is promised to orderly listeners only")
        .otherwise("by the logs of producers and consumers")
        .alias("reason"),
    ).select("cluster", "day", *GROUP_TOPIC[1:], *COUNTS, "reason")


COUNTS = (
    "acknowledged",
    "delivered",
    "pending",
    "failed",
    "skipped",
    "filtered",
    "lost",
    "duplicated",
    "unexpected",
    "out_of_order",
)


def _committed(commits: DataFrame, offset_change: DataFrame) -> DataFrame:
    """GROUP_QUEUE, committed: the greatest offset that the group committed, by its commits or the master's file."""
    sent = commits.where("kind = 'UPDATE'").select(*GROUP_QUEUE, F.col("commit_offset").alias("offset"))
    saved = offset_change.where("broker_id = 0").select(*GROUP_QUEUE, F.col("new_offset").alias("offset"))
    return sent.unionByName(saved).groupBy(*GROUP_QUEUE).agg(F.max("offset").alias("committed"))


def _with_skips(due: DataFrame, continuity: DataFrame) -> DataFrame:
    """Adds ``skipped``: the offset was moved past the message."""
    jumps = continuity.where("kind IN ('jump', 'beyond_max') AND broker_id = 0").select(
        *GROUP_QUEUE, F.col("previous_offset").alias("_from"), F.col("new_offset").alias("_to")
    )
    keys = [F.col(f"d.{k}") == F.col(f"j.{k}") for k in GROUP_QUEUE]
    inside = (F.col("d.queue_offset") >= F.col("j._from")) & (F.col("d.queue_offset") < F.col("j._to"))
    met = due.alias("d").join(F.broadcast(jumps).alias("j"), [*keys, inside], "left")
    return met.groupBy(*[F.col(f"d.{c}") for c in due.columns]).agg(F.max(F.col("j._to").isNotNull()).alias("skipped"))


def _counts() -> list[F.Column]:
    delivered = F.coalesce(F.col("deliveries") > 0, F.lit(False))
    tried = F.coalesce(F.col("tries") > 0, F.lit(False))
    takes_all = F.col("expressions").isNull() | F.array_contains("expressions", "*")
    sql = F.coalesce(F.col("has_sql92"), F.lit(False))
    taken = takes_all | F.coalesce(F.array_contains("expressions", F.col("tags")), F.lit(False))
    behind = F.col("queue_offset") < F.col("committed")
    missing = ~delivered & ~tried
    return [
        F.count(F.lit(1)).alias("acknowledged"),
        F.count_if(delivered).alias("delivered"),
        F.count_if(missing & (taken | sql) & ~F.coalesce(behind, F.lit(True))).alias("pending"),
        F.count_if(~delivered & tried).alias("failed"),
        F.count_if(missing & taken & behind & F.col("skipped")).alias("skipped"),
        F.count_if(missing & ~taken & ~sql).alias("filtered"),
        F.count_if(missing & taken & behind & ~F.col("skipped")).alias("lost"),
        F.count_if(missing & F.col("committed").isNull()).alias("unknown_end"),
        F.sum(F.greatest(F.coalesce("deliveries", F.lit(0)) - 1, F.lit(0))).alias("duplicated"),
        F.max(sql).alias("sql92"),
    ]


def _unexpected(done: DataFrame, sent: DataFrame, produce: DataFrame) -> DataFrame:
    """GROUP_TOPIC, day, unexpected: messages given that nobody sent, among those that the producers' log covers."""
    covered = sent.groupBy("cluster", *PLACE).agg(
        F.min("queue_offset").alias("_low"), F.max("queue_offset").alias("_high")
    )
    own = done.where(F.col("queue_topic") == F.col("topic")).withColumn("day", F.to_date("ts"))
    known = own.join(covered, ["cluster", *PLACE]).where(F.col("queue_offset").between(F.col("_low"), F.col("_high")))
    strange = known.join(sent.select("cluster", "msg_id").distinct(), ["cluster", "msg_id"], "left_anti")
    # A send that ended in an error may have been stored all the same: only its key tells of it.
    tried = produce.where("coalesce(send_status, '') <> 'SEND_OK' AND key IS NOT NULL")
    tried = tried.select("cluster", "topic", F.col("key").alias("keys")).distinct()
    strange = strange.join(tried, ["cluster", "topic", "keys"], "left_anti")
    return strange.groupBy(*GROUP_TOPIC, "day").agg(F.count_distinct("msg_id").alias("unexpected"))


def _out_of_order(done: DataFrame) -> DataFrame:
    """GROUP_TOPIC, day, out_of_order: first deliveries after a later one of the same queue, of orderly listeners."""
    orderly = done.where(F.col("orderly") & (F.col("queue_topic") == F.col("topic")))
    place = Window.partitionBy(*GROUP_QUEUE, "queue_offset").orderBy("ts", "client_id")
    so_far = (
        Window.partitionBy(*GROUP_QUEUE, "client_id")
        .orderBy("ts", "queue_offset")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    told = orderly.withColumns(
        {"_nth": F.row_number().over(place), "_highest": F.max("queue_offset").over(so_far), "day": F.to_date("ts")}
    )
    late = (F.col("_nth") == 1) & (F.col("_highest") > F.col("queue_offset")) & (F.col("reconsume_times") == 0)
    return told.groupBy(*GROUP_TOPIC, "day").agg(F.count_if(late).alias("out_of_order"))
