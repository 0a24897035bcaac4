"""Who was a member of which consumer group, from when to when: told by every sign of life that clients left.

ConsumerManager keeps a client in a group from its first heartbeat until it unregisters, its channel closes, or 120 s
pass without a word. A session here ends with UNREGISTER_CLIENT, or with the last sign before a silence.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from mqreplay.core.pull_check import FLAG_COMMIT_OFFSET

BROADCASTING = "BROADCASTING"
MEMBER = ["cluster", "consumer_group", "client_id"]
_LATE_MS = 5_000  # an answer on its way, a last commit: no new session after UNREGISTER_CLIENT


def subscriptions(heartbeat: DataFrame) -> DataFrame:
    """MEMBER, ts, message_model, topics (array of subscribed topics), told (the subscriptions as text), record_id.

    One row a heartbeat and group. ``told`` leaves out the retry topic, which each client adds for itself.
    """
    group = F.explode("consumer_data_set")
    beats = heartbeat.where(F.col("kind") == "HEART_BEAT").select("cluster", "client_id", "ts", "record_id", group)
    own = F.filter("col.subscriptions", lambda s: ~s.topic.startswith("%RETRY%"))
    written = F.transform(own, lambda s: F.concat_ws(" ", s.topic, s.expression_type, s.sub_string))
    return beats.select(
        "cluster",
        F.col("col.group_name").alias("consumer_group"),
        "client_id",
        "ts",
        F.col("col.message_model").alias("message_model"),
        F.transform("col.subscriptions", lambda s: s.topic).alias("topics"),
        F.array_join(F.array_sort(written), "; ").alias("told"),
        "record_id",
    )


def signs(
    heartbeat: DataFrame, rebalance: DataFrame, assignment: DataFrame, pull: DataFrame, commits: DataFrame
) -> DataFrame:
    """MEMBER, ts, sign: every recorded moment in which a client acted as a member; pulls once a second at most."""
    left = heartbeat.where(F.col("unregistered_consumer_group").isNotNull()).select(
        "cluster",
        F.col("unregistered_consumer_group").alias("consumer_group"),
        "client_id",
        "ts",
        F.lit("unregister").alias("sign"),
    )
    beats = subscriptions(heartbeat).select(*MEMBER, "ts", F.lit("heartbeat").alias("sign"))
    acts = [
        frame.select(*MEMBER, F.date_trunc("second", ts).alias("ts"), F.lit(sign).alias("sign")).distinct()
        for frame, ts, sign in (
            (rebalance, "ts", "rebalance"),
            (assignment.where(F.size("queues") > 0), "ts", "assignment"),
            (pull, "request_ts", "pull"),
            (commits, "ts", "commit"),
        )
    ]
    return reduce(DataFrame.unionByName, [left, beats, *acts])


def membership(told: DataFrame, silent_s: int) -> DataFrame:
    """MEMBER, session, from_ts, to_ts, left (it unregistered), watched (by more than heartbeats), beat (by heartbeats).

    ``told`` is the frame of `signs`; a silence of more than ``silent_s`` seconds ends a session.
    """
    # The hash first: sorts then seldom compare names, of which the first is one for all.
    order = Window.partitionBy(F.xxhash64(*MEMBER), *MEMBER).orderBy("ts", F.col("sign") == "unregister", "sign")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    since = F.unix_millis("ts") - F.unix_millis(F.lag("ts").over(order))
    gone = F.unix_millis("ts") - F.unix_millis(F.max(F.when(F.col("sign") == "unregister", F.col("ts"))).over(before))
    # A client unregisters at each broker: those requests, and what was on its way, belong to the session they end.
    back = (F.col("sign") != "unregister") & (gone > _LATE_MS) & (gone - since <= _LATE_MS)
    begins = since.isNull() | (since > silent_s * 1000) | F.coalesce(back, F.lit(False))
    numbered = (
        told.repartition(*MEMBER)
        .withColumn("_begins", F.when(begins, 1).otherwise(0))
        .withColumn("session", F.sum("_begins").over(order.rowsBetween(Window.unboundedPreceding, 0)))
    )
    left_ts = F.max(F.when(F.col("sign") == "unregister", F.col("ts")))
    return numbered.groupBy(*MEMBER, "session").agg(
        F.min("ts").alias("from_ts"),
        F.coalesce(left_ts, F.max("ts")).alias("to_ts"),
        left_ts.isNotNull().alias("left"),
        F.max(~F.col("sign").isin("heartbeat", "unregister")).alias("watched"),
        F.max(F.col("sign") == "heartbeat").alias("beat"),
    )


def unshared_groups(
    heartbeat: DataFrame, rebalance: DataFrame, assignment: DataFrame, pull: DataFrame, commits: DataFrame
) -> DataFrame:
    """cluster, consumer_group: the broadcasting ones, and those of which nothing says that members share queues.

    A heartbeat says it. Without one: only members that share rebalance (RebalanceImpl#rebalanceByTopic) and commit to
    brokers, by UPDATE_CONSUMER_OFFSET (RemoteBrokerOffsetStore) or with a pull (DefaultMQPushConsumerImpl#pullMessage).
    """
    group = ["cluster", "consumer_group"]
    by_pull = pull.groupBy(*group).agg(F.max(F.col("sys_flag").bitwiseAND(FLAG_COMMIT_OFFSET)).alias("commits"))
    said = subscriptions(heartbeat).groupBy(*group).agg(F.max(F.col("message_model") == BROADCASTING).alias("alone"))
    shown = [rebalance, commits.where("kind = 'UPDATE'"), by_pull.where("commits = 1")]
    shared = reduce(DataFrame.unionByName, [frame.select(*group) for frame in shown]).distinct()
    seen = by_pull.select(*group).unionByName(assignment.select(*group)).distinct()
    unsaid = seen.join(said, group, "left_anti").join(shared, group, "left_anti")
    return said.where("alone").select(*group).unionByName(unsaid)


def subscribed_tags(heartbeat: DataFrame) -> DataFrame:
    """cluster, consumer_group, topic, expressions (tags, or *), has_sql92: all that a group subscribed to."""
    group = F.explode("consumer_data_set").alias("g")
    each = heartbeat.where(F.col("kind") == "HEART_BEAT").select("cluster", group)
    told = each.select(
        "cluster", F.col("g.group_name").alias("consumer_group"), F.explode("g.subscriptions").alias("s")
    )
    # F.trim itself would be given each tag's place too, as the characters to trim.
    tags = F.transform(F.split("s.sub_string", r"\|\|"), lambda tag: F.trim(tag))
    return (
        told.select(
            "cluster",
            "consumer_group",
            "s.topic",
            tags.alias("tags"),
            (F.col("s.expression_type") == "SQL92").alias("sql"),
        )
        .groupBy("cluster", "consumer_group", "topic")
        .agg(F.array_distinct(F.flatten(F.collect_set("tags"))).alias("expressions"), F.max("sql").alias("has_sql92"))
    )
