"""Where ownership of queues was not one to one: queues that nobody held, or several clients at once; idle members.

Each member of a group allocates for itself (RebalanceImpl#rebalanceByTopic), so they agree only while they see the same
lists and use the same strategy on the same subscriptions. Seconds of disagreement after a change are normal; how long
is too long is for the findings to say.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mqreplay.replay.membership import MEMBER, subscriptions
from mqreplay.replay.queue_owner import QUEUE
from mqreplay.replay.sessions import with_session

GROUP_TOPIC = ["cluster", "consumer_group", "topic"]
GROUP_QUEUE = ["cluster", "consumer_group", *QUEUE]
Span = tuple[DataFrame, str]


def disputes(owners: DataFrame, due: DataFrame) -> DataFrame:
    """GROUP_QUEUE, from_ts, to_ts, owners (0, or the most at once): while the queue was due to be owned, and was not
    owned by just one client.

    ``owners`` is gold.queue_owner, ``due`` the frame of `due_queues`.
    """
    swept = _sweep([(owners, "owners"), (due, "due")], GROUP_QUEUE)
    wrong = swept.where((F.col("due") > 0) & (F.col("owners") != 1)).withColumn("orphan", F.col("owners") == 0)
    together = with_session(wrong, [*GROUP_QUEUE, "orphan"], "from_ts", "to_ts", 0)
    return (
        together.groupBy(*GROUP_QUEUE, "orphan", "session")
        .agg(
            F.min("from_ts").alias("from_ts"),
            F.max("to_ts").alias("to_ts"),
            F.max("owners").alias("owners"),
        )
        .drop("orphan", "session")
    )


def due_queues(
    rebalance: DataFrame, pull: DataFrame, subscribed: DataFrame, broadcasting: DataFrame, interval_s: int
) -> DataFrame:
    """GROUP_QUEUE, from_ts, to_ts: while the queue was there and a member subscribed to its topic.

    A queue is there while members see it in mq_all; where no rebalance of the group was recorded, while it is pulled.
    ``interval_s`` is the rebalance interval: what the last one saw holds until the next would have come.
    """
    seen = rebalance.where(F.col("mq_all").isNotNull()).select(*GROUP_TOPIC, "ts", F.explode("mq_all").alias("q"))
    seen = seen.groupBy(*GROUP_TOPIC, "q.broker_name", "q.queue_id").agg(
        F.min("ts").alias("first_ts"), (F.max("ts") + F.make_dt_interval(secs=F.lit(interval_s))).alias("last_ts")
    )
    pulled = pull.groupBy("cluster", *QUEUE).agg(
        F.min("request_ts").alias("first_ts"), F.max(F.coalesce("response_ts", "request_ts")).alias("last_ts")
    )
    sharing = subscribed.join(F.broadcast(broadcasting), ["cluster", "consumer_group"], "left_anti")
    active = _merged(sharing, GROUP_TOPIC)
    known = seen.select("cluster", "consumer_group").distinct().withColumn("_known", F.lit(True))
    unseen = active.join(F.broadcast(known), ["cluster", "consumer_group"], "left").where("_known IS NULL")
    by_pulls = unseen.select(*GROUP_TOPIC).distinct().join(pulled, ["cluster", "topic"])
    queues = seen.unionByName(by_pulls.select(*seen.columns))
    both = queues.join(active, GROUP_TOPIC)
    spans = both.select(
        *GROUP_QUEUE,
        F.greatest("first_ts", "from_ts").alias("from_ts"),
        F.least("last_ts", "to_ts").alias("to_ts"),
    )
    return spans.where(F.col("to_ts") > F.col("from_ts"))


def subscribers(members: DataFrame, heartbeat: DataFrame, rebalance: DataFrame, owners: DataFrame) -> DataFrame:
    """MEMBER, topic, from_ts, to_ts, watched: sessions of members, once for each topic that they subscribe to."""
    topics = [
        subscriptions(heartbeat).select(*MEMBER, F.explode("topics").alias("topic")),
        rebalance.select(*MEMBER, "topic"),
        owners.select(*MEMBER, "topic"),
    ]
    return members.join(reduce(DataFrame.unionByName, topics).distinct(), MEMBER)


def idle_members(subscribed: DataFrame, owners: DataFrame, broadcasting: DataFrame) -> DataFrame:
    """MEMBER, from_ts, to_ts: while a member that was watched held no queue but of retry topics."""
    own_topics = ~F.col("topic").startswith("%RETRY%")
    there = subscribed.where(own_topics & F.col("watched")).select(*MEMBER, "from_ts", "to_ts").distinct()
    there = there.join(F.broadcast(broadcasting), ["cluster", "consumer_group"], "left_anti")
    swept = _sweep([(owners.where(own_topics), "queues"), (there, "there")], MEMBER)
    idle = swept.where((F.col("there") > 0) & (F.col("queues") == 0))
    return _merged(idle, MEMBER)


def _merged(spans: DataFrame, by: list[str]) -> DataFrame:
    """Spans that touch or overlap, as one."""
    together = with_session(spans, by, "from_ts", "to_ts", 0)
    whole = together.groupBy(*by, "session").agg(F.min("from_ts").alias("from_ts"), F.max("to_ts").alias("to_ts"))
    return whole.drop("session")


def _sweep(spans: list[Span], by: list[str]) -> DataFrame:
    """``by``, from_ts, to_ts, and for each named frame of spans how many of them lie over that stretch."""
    names = [name for _, name in spans]
    edges = [
        frame.select(*by, F.col(ts).alias("from_ts"), *[_step(n == name, step).alias(n) for n in names])
        for frame, name in spans
        for ts, step in (("from_ts", 1), ("to_ts", -1))
    ]
    at = reduce(DataFrame.unionByName, edges).groupBy(*by, "from_ts").agg(*[F.sum(n).alias(n) for n in names])
    order = Window.partitionBy(*by).orderBy("from_ts")
    until = order.rowsBetween(Window.unboundedPreceding, 0)
    counted = at.select(
        *by, "from_ts", F.lead("from_ts").over(order).alias("to_ts"), *[F.sum(n).over(until).alias(n) for n in names]
    )
    return counted.where(F.col("to_ts").isNotNull())


def _step(is_its: bool, step: int) -> Column:
    return F.lit(step if is_its else 0)
