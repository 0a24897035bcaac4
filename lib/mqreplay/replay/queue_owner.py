"""gold.queue_owner: in which interval which client held which queue, by the best evidence there is for that client.

assignment  what the client said it held (its process queue table), at every change and every 15 s
rebalance   what it computed, every 20 s (RebalanceService) and when a broker notified it
lock        what a broker locked for it (LOCK_BATCH_MQ, renewed every 20 s; UNLOCK_BATCH_MQ), for orderly listeners
pull        what it pulled: from its first pull of the queue to its last, unless another client pulled in between
"""

from __future__ import annotations

import datetime as dt
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mqreplay.replay.membership import MEMBER

QUEUE = ["topic", "broker_name", "queue_id"]
SOURCES = ("assignment", "rebalance", "lock", "pull")
HELD = [*MEMBER, *QUEUE]
LOCKED_S = 60  # RebalanceLockManager.REBALANCE_LOCK_MAX_LIVE_TIME


def queue_owner(
    assignment: DataFrame,
    rebalance: DataFrame,
    lock: DataFrame,
    pull: DataFrame,
    members: DataFrame,
    broadcasting: DataFrame,
    pull_gap_s: int,
) -> DataFrame:
    """One row an interval, closed at its start and open at its end; broadcasting groups own nothing for themselves.

    ``members`` is membership's frame; a look is believed until the next, or until the client's session ends.
    ``pull_gap_s`` is how long a client may not pull a queue that another pulls meanwhile, and still hold it.
    """
    looks = _with_end(_looks(assignment, rebalance), members)
    locks = _of_locks(lock, members)
    told = looks.select(*MEMBER, "source").unionByName(locks.select(*MEMBER, "source")).distinct()
    pulls = _of_pulls(_unseen(pull, told), pull_gap_s)
    told = told.unionByName(pulls.select(*MEMBER, "source").distinct())
    rank = F.array_position(F.array(*map(F.lit, SOURCES)), F.col("source"))
    best = told.groupBy(*MEMBER).agg(F.min_by("source", rank).alias("source"))
    held = _of_looks(looks).unionByName(locks).unionByName(pulls)
    return (
        held.join(F.broadcast(best), [*MEMBER, "source"], "left_semi")
        .join(F.broadcast(broadcasting), ["cluster", "consumer_group"], "left_anti")
        .where(F.col("to_ts") > F.col("from_ts"))
        .select(
            "cluster",
            F.to_date("from_ts").alias("day"),
            "consumer_group",
            "topic",
            "broker_name",
            "queue_id",
            "client_id",
            "from_ts",
            "to_ts",
            "source",
        )
    )


def owned_from(owners: DataFrame, begin: dt.datetime) -> DataFrame:
    """The intervals as of an instant: what began before it begins with it, what ended before it is not there."""
    later = owners.where(F.col("to_ts") > F.lit(begin))
    since = later.withColumn("from_ts", F.greatest("from_ts", F.lit(begin)))
    return since.withColumn("day", F.to_date("from_ts"))


def _looks(assignment: DataFrame, rebalance: DataFrame) -> DataFrame:
    """MEMBER, source, scope, ts, queues (those held of the scope): each a whole view of what the client had then."""

    def queue(q: Column, topic: Column) -> Column:
        return F.struct(topic.alias("topic"), q.broker_name.alias("broker_name"), q.queue_id.alias("queue_id"))

    kept = F.filter("queues", lambda q: ~F.coalesce(q.dropped, F.lit(False)))
    views = [
        assignment.select(*MEMBER, _named("assignment"), F.lit("").alias("scope"), "ts", _held(kept, queue)),
        rebalance.where(F.col("mq_divided").isNotNull()).select(
            *MEMBER,
            _named("rebalance"),
            F.col("topic").alias("scope"),
            "ts",
            F.transform("mq_divided", lambda q: queue(q, F.col("topic"))).alias("queues"),
        ),
    ]
    return reduce(DataFrame.unionByName, views)


def _named(source: str) -> Column:
    return F.lit(source).alias("source")


def _held(queues: Column, queue) -> Column:  # type: ignore[no-untyped-def]
    return F.transform(queues, lambda q: queue(q, q.topic)).alias("queues")


def _with_end(looks: DataFrame, members: DataFrame) -> DataFrame:
    """Adds ``look`` (a number) and ``until``: the next look, or the end of the session that the look falls into."""
    order = Window.partitionBy(*MEMBER, "source", "scope").orderBy("ts", F.size("queues"))
    numbered = looks.withColumn("look", F.row_number().over(order)).withColumn("next_ts", F.lead("ts").over(order))
    return _ended(numbered, members, F.col("next_ts"))


def _ended(frame: DataFrame, members: DataFrame, until: Column) -> DataFrame:
    """Adds ``until``, at the latest the end of the session that ``ts`` falls into."""
    session = members.select(*MEMBER, F.col("from_ts").alias("_from"), F.col("to_ts").alias("_to"))
    asked = frame.join(F.broadcast(session), MEMBER, "left").where(
        F.col("_from").isNull() | ((F.col("_from") <= F.col("ts") + _slack()) & (F.col("ts") <= F.col("_to")))
    )
    return asked.withColumn("until", F.least(until, F.coalesce("_to", until, "ts"))).drop("_from", "_to")


def _slack() -> Column:
    return F.expr("INTERVAL 1 SECOND")


def _of_looks(looks: DataFrame) -> DataFrame:
    """Intervals of looks in a row that show the queue; one that ends with its session ends the interval."""
    by = [*HELD, "source", "scope"]
    shown = _alike(looks).select("*", F.explode("queues").alias("q")).select("*", "q.*").drop("q", "queues")
    order = Window.partitionBy(*by).orderBy("look")
    before = F.lag(F.struct("last_look", "until")).over(order)
    goes_on = (F.col("_before.last_look") == F.col("look") - 1) & (F.col("_before.until") == F.col("ts"))
    runs = shown.withColumn("_before", before).withColumn("_starts", F.when(goes_on, 0).otherwise(1))
    runs = runs.withColumn("run", F.sum("_starts").over(order.rowsBetween(Window.unboundedPreceding, 0)))
    held = runs.groupBy(*by, "run").agg(F.min("ts").alias("from_ts"), F.max("until").alias("to_ts"))
    return held.select(*HELD, "source", "from_ts", "to_ts")


def _alike(looks: DataFrame) -> DataFrame:
    """Looks in a row that show the same as one, from the first's ``ts`` to the last's ``until``; ``last_look`` is its.

    A client looks every 20 s and mostly sees what it saw before: this is done before its queues become rows.
    """
    by = [*MEMBER, "source", "scope"]
    order = Window.partitionBy(*by).orderBy("look")
    before = F.lag(F.struct("look", "until", "queues")).over(order)
    goes_on = (
        (F.col("_before.look") == F.col("look") - 1)
        & (F.col("_before.until") == F.col("ts"))
        & (F.col("_before.queues") == F.col("queues"))
    )
    runs = looks.withColumn("_before", before).withColumn("_starts", F.when(goes_on, 0).otherwise(1))
    runs = runs.withColumn("_alike", F.sum("_starts").over(order.rowsBetween(Window.unboundedPreceding, 0)))
    return runs.groupBy(*by, "_alike").agg(
        F.min("ts").alias("ts"),
        F.max("until").alias("until"),
        F.min("look").alias("look"),
        F.max("look").alias("last_look"),
        F.first("queues").alias("queues"),
    )


def _of_locks(lock: DataFrame, members: DataFrame) -> DataFrame:
    """Intervals of a broker's lock table: from a grant until the owner unlocks, another is granted it, or it runs out.

    A client asks for one queue when it takes it, and for all that it has of a broker to renew them: no request is a
    whole view. Source: RebalanceLockManager, RebalanceImpl#lock, #lockAll.
    """

    def told(kind: str, queues: str, granted: bool) -> DataFrame:
        each = lock.where(F.col("kind") == kind).select(*MEMBER, "ts", F.explode(queues).alias("q"))
        return each.select(*MEMBER, *[f"q.{name}" for name in QUEUE], "ts", F.lit(granted).alias("granted"))

    events = told("LOCK_BATCH_MQ", "lock_ok_mq_set", True).unionByName(told("UNLOCK_BATCH_MQ", "mq_set", False))
    of_queue = Window.partitionBy("cluster", "consumer_group", *QUEUE).orderBy("ts", "granted", "client_id")
    until_now = of_queue.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    owner = F.last(F.when(F.col("granted"), F.col("client_id")), ignorenulls=True).over(until_now)
    # Whoever lost it unlocks nothing of another's.
    real = events.withColumn("_owner", owner).where(F.col("_owner") == F.col("client_id"))
    ends = F.col("ts") + F.expr(f"INTERVAL {LOCKED_S} SECOND")
    granted = real.withColumn("_next", F.lead("ts").over(of_queue)).where("granted")
    spans = _ended(granted, members, F.least("_next", ends))
    of_member = Window.partitionBy(*HELD).orderBy("ts")
    goes_on = F.lag("until").over(of_member) == F.col("ts")
    runs = spans.withColumn("_starts", F.when(goes_on, 0).otherwise(1)).withColumn(
        "run", F.sum("_starts").over(of_member.rowsBetween(Window.unboundedPreceding, 0))
    )
    held = runs.groupBy(*HELD, "run").agg(F.min("ts").alias("from_ts"), F.max("until").alias("to_ts"))
    return held.select(*HELD, _named("lock"), "from_ts", "to_ts")


def _unseen(pull: DataFrame, told: DataFrame) -> DataFrame:
    """The pulls of groups with a member that only its pulls tell of; the others' pulls bound what it held."""
    members = pull.select(*MEMBER).distinct().join(F.broadcast(told.select(*MEMBER).distinct()), MEMBER, "left_anti")
    groups = members.select("cluster", "consumer_group").distinct()
    return pull.join(F.broadcast(groups), ["cluster", "consumer_group"], "left_semi")


def _of_pulls(pull: DataFrame, gap_s: int) -> DataFrame:
    """Intervals of pulls: they go on over a silence if nobody else pulled the queue for the group meanwhile."""
    pulls = pull.select(*HELD, F.col("request_ts").alias("ts"), F.coalesce("response_ts", "request_ts").alias("until"))
    of_queue = Window.partitionBy("cluster", "consumer_group", *QUEUE).orderBy("ts", "client_id")
    of_client = Window.partitionBy(*HELD).orderBy("ts")
    since = F.unix_millis("ts") - F.unix_millis(F.lag("ts").over(of_client))
    alone = F.lag("client_id").over(of_queue) == F.col("client_id")
    goes_on = (since <= gap_s * 1000) | (since.isNotNull() & alone)
    runs = pulls.withColumn("_starts", F.when(goes_on, 0).otherwise(1)).withColumn(
        "run", F.sum("_starts").over(of_client.rowsBetween(Window.unboundedPreceding, 0))
    )
    held = runs.groupBy(*HELD, "run").agg(F.min("ts").alias("from_ts"), F.max("until").alias("to_ts"))
    return held.select(*HELD, _named("pull"), "from_ts", "to_ts")
