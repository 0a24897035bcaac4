"""gold.delivery_audit: what became of each group's messages, by the logs of producers and consumers.

The sums are those of Jepsen's total-queue (core/delivery_audit has the law over multisets); here each message is a row,
named by its unique id. Nothing is called lost for want of evidence: only what the group passed without being given it.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mqreplay.replay.deliveries import DONE, once
from mqreplay.replay.digits import as_one, read_signed, signed

PLACE = ["topic", "broker_name", "queue_id"]
GROUP_TOPIC = ["cluster", "consumer_group", "topic"]
GROUP_QUEUE = ["cluster", "consumer_group", *PLACE]
STEPS = (1000, 100, 10)  # a log of a busy topic may hold each n-th place of its queues only


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

    A message counts from the first offset of its queue that the group was given, to the one that it committed last;
    where a log holds each n-th place only, by these.
    """
    given = once(consume).join(F.broadcast(broadcasting), ["cluster", "consumer_group"], "left_anti")
    done = given.where(F.col("status").isin(*DONE))
    own = given.where(F.col("queue_topic") == F.col("topic"))
    first = own.groupBy(*GROUP_QUEUE).agg(F.min("queue_offset").alias("first_offset"))
    sent = (
        produce.where("send_status = 'SEND_OK' AND queue_offset IS NOT NULL")
        .select("cluster", *PLACE, "queue_offset", "tags", "msg_id", F.to_date("ts").alias("day"))
        .distinct()
    )
    reached = first.join(_committed(commits, offset_change), GROUP_QUEUE, "left")
    reached = reached.join(_logged(commits, given), GROUP_QUEUE, "left").join(_step(own, GROUP_TOPIC), GROUP_TOPIC)
    due = sent.join(reached, ["cluster", *PLACE])
    due = due.where((F.col("queue_offset") >= F.col("first_offset")) & (F.col("queue_offset") % F.col("step") == 0))
    by_message = given.groupBy(*GROUP_TOPIC, "msg_id").agg(
        F.count_if(F.col("status").isin(*DONE)).alias("deliveries"),
        F.count_if(~F.col("status").isin(*DONE)).alias("tries"),
    )
    judged = _with_skips(due.join(by_message, [*GROUP_TOPIC, "msg_id"], "left"), continuity)
    tagged = judged.join(F.broadcast(subscriptions), GROUP_TOPIC, "left")
    counted = tagged.groupBy(*GROUP_TOPIC, "day").agg(*_counts())
    by_day = [*GROUP_TOPIC, "day"]
    whole = counted.join(_unexpected(done, sent, produce), by_day, "left").join(_out_of_order(done), by_day, "left")
    doubt = _doubt()
    told = whole.withColumns(
        {
            "filtered": F.when(F.col("maybe_filtered") == 0, F.col("filtered")),
            "lost": F.when(doubt.isNull(), F.col("lost")),
            "unexpected": F.coalesce("unexpected", F.lit(0)),
            "reason": F.coalesce(doubt, _basis()),
        }
    )
    return told.select("cluster", "day", *GROUP_TOPIC[1:], *COUNTS, "reason")


def _doubt() -> Column:
    """Why it cannot be told whether a message was lost; null where it can."""
    given = "what it was not given may "
    return (
        F.when(F.col("by_sql") > 0, f"a SQL92 filter decides what the group takes: {given}not be lost")
        .when(F.col("untold") > 0, f"no heartbeat tells what the group subscribed to: {given}not have been for it")
        .when(F.col("unknown_end") > 0, f"no commit tells how far the group came: {given}be pending")
        .when(F.col("unlogged") > 0, f"who committed past them left no log of deliveries: {given}be in it")
    )


def _basis() -> Column:
    """What the figures rest on, where nothing is in doubt."""
    sampled = F.concat(F.lit(", of each "), F.col("step").cast("string"), F.lit("th place of a queue, as logged"))
    order = F.when(F.col("out_of_order").isNull(), "; order is promised to orderly listeners only").otherwise("")
    return F.concat(
        F.lit("by the logs of producers and consumers"), F.when(F.col("step") > 1, sampled).otherwise(""), order
    )


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
    """GROUP_QUEUE, committed: the offset that the group committed last, by its commits or the master's file."""
    sent = commits.where("kind = 'UPDATE' AND error IS NULL").select(
        *GROUP_QUEUE, "ts", F.col("commit_offset").alias("offset")
    )
    saved = offset_change.where("broker_id = 0").select(
        *GROUP_QUEUE, F.col("to_ts").alias("ts"), F.col("new_offset").alias("offset")
    )
    told = sent.unionByName(saved).where(F.col("offset").isNotNull())
    last = F.max(as_one(signed(F.unix_micros("ts"), 2**60), signed(F.col("offset"))))
    return told.groupBy(*GROUP_QUEUE).agg(read_signed(last).cast("bigint").alias("committed"))


def _logged(commits: DataFrame, given: DataFrame) -> DataFrame:
    """GROUP_QUEUE, logged: whether all who committed there left a log of what they were given."""
    loggers = given.select("cluster", "consumer_group", "client_id").distinct().withColumn("_logs", F.lit(True))
    who = commits.where("kind = 'UPDATE' AND error IS NULL").select(*GROUP_QUEUE, "client_id").distinct()
    known = who.join(loggers, ["cluster", "consumer_group", "client_id"], "left")
    return known.groupBy(*GROUP_QUEUE).agg(F.min(F.col("_logs").isNotNull()).alias("logged"))


def _step(rows: DataFrame, by: list[str]) -> DataFrame:
    """by, step: each how many places of its queues a log holds; 1: all."""
    divides = [F.min(F.col("queue_offset") % step == 0).alias(f"by_{step}") for step in STEPS]
    looked = rows.groupBy(*by).agg(F.max("queue_offset").alias("_top"), *divides)
    # Places 0 alone tell nothing.
    fits = [F.when(F.col(f"by_{step}") & (F.col("_top") >= step), F.lit(step)) for step in STEPS]
    return looked.select(*by, F.coalesce(*fits, F.lit(1)).alias("step"))


def _with_skips(due: DataFrame, continuity: DataFrame) -> DataFrame:
    """Adds ``skipped``: the offset was moved past the message, which was there then."""
    jumps = continuity.where("kind IN ('jump', 'beyond_max') AND broker_id = 0").select(
        *GROUP_QUEUE, F.col("previous_offset").alias("_from"), F.least("new_offset", "queue_max_offset").alias("_to")
    )
    keys = [F.col(f"d.{k}") == F.col(f"j.{k}") for k in GROUP_QUEUE]
    inside = (F.col("d.queue_offset") >= F.col("j._from")) & (F.col("d.queue_offset") < F.col("j._to"))
    met = due.alias("d").join(F.broadcast(jumps).alias("j"), [*keys, inside], "left")
    return met.groupBy(*[F.col(f"d.{c}") for c in due.columns]).agg(F.max(F.col("j._to").isNotNull()).alias("skipped"))


def _counts() -> list[Column]:
    delivered = F.coalesce(F.col("deliveries") > 0, F.lit(False))
    missing = ~delivered & ~F.coalesce(F.col("tries") > 0, F.lit(False))
    untold = F.col("expressions").isNull()
    # FilterAPI.buildSubscriptionData takes nothing at all for *.
    takes_all = F.array_contains("expressions", "*") | F.forall("expressions", lambda tag: tag == "")
    sql = F.coalesce(F.col("has_sql92"), F.lit(False))
    taken = takes_all | F.coalesce(F.array_contains("expressions", F.col("tags")), F.lit(False))
    filtered = missing & ~untold & ~sql & ~taken
    wanted = missing & ~F.coalesce(filtered, F.lit(False))
    behind = F.col("queue_offset") < F.col("committed")
    passed = wanted & F.coalesce(behind, F.lit(False)) & ~F.col("skipped")
    return [
        F.count(F.lit(1)).alias("acknowledged"),
        F.count_if(delivered).alias("delivered"),
        F.count_if(wanted & ~F.coalesce(behind, F.lit(True))).alias("pending"),
        F.count_if(~delivered & ~missing).alias("failed"),
        F.count_if(wanted & behind & F.col("skipped")).alias("skipped"),
        F.count_if(filtered).alias("filtered"),
        F.count_if(missing & (untold | sql)).alias("maybe_filtered"),
        F.count_if(passed).alias("lost"),
        F.count_if(passed & sql).alias("by_sql"),
        F.count_if(passed & untold).alias("untold"),
        F.count_if(wanted & behind.isNull()).alias("unknown_end"),
        F.count_if(passed & ~F.coalesce(F.col("logged"), F.lit(False))).alias("unlogged"),
        F.sum(F.greatest(F.coalesce("deliveries", F.lit(0)) - 1, F.lit(0))).alias("duplicated"),
        F.max("step").alias("step"),
    ]


def _unexpected(done: DataFrame, sent: DataFrame, produce: DataFrame) -> DataFrame:
    """GROUP_TOPIC, day, unexpected: messages given that nobody sent, among those that the producers' log covers."""
    covered = sent.groupBy("cluster", *PLACE).agg(
        F.min("queue_offset").alias("_low"), F.max("queue_offset").alias("_high")
    )
    own = done.where(F.col("queue_topic") == F.col("topic")).withColumn("day", F.to_date("ts"))
    known = own.join(covered, ["cluster", *PLACE]).where(F.col("queue_offset").between(F.col("_low"), F.col("_high")))
    known = known.join(_step(sent, ["cluster", "topic"]), ["cluster", "topic"])
    known = known.where(F.col("queue_offset") % F.col("step") == 0)
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
