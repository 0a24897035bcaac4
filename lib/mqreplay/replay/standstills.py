"""Queues whose offset stood still while messages waited and a member of the group held them.

After consumption an offset is the smallest not yet processed (ProcessQueue#removeMessage), so one message that does not
end holds its queue back; so does a broker that refuses the reads.
"""

from __future__ import annotations

import datetime as dt

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from mqreplay.replay.as_of import AT, Ask, as_of, ask
from mqreplay.replay.queue_ends import QUEUE

KEY = ["cluster", "consumer_group", "topic", "broker_name", "queue_id"]
END = dt.datetime(9999, 1, 1, tzinfo=dt.UTC)
REFUSED = 2  # ResponseCode.SYSTEM_BUSY: a 5.x slave that may not be read


def standstills(
    offset_change: DataFrame,
    commits: DataFrame,
    pull: DataFrame,
    ends: DataFrame,
    owners: DataFrame,
    stuck_s: int,
    snapshot: DataFrame,
) -> DataFrame:
    """KEY, from_ts, to_ts, offset (it stood at), waiting (messages behind it), refused, refusing_broker_id.

    An offset moves when the master's file changes, or a client commits another one. ``ends`` is queue_ends' frame: what
    waits is known from there, and only while it is told can a queue be called stuck. ``owners`` is gold.queue_owner.
    ``snapshot`` is silver.snapshot: where no commits of a queue were recorded, an offset stood still only as long as
    copies showed it, for it may have moved at any time between two copies.
    """
    moves = _moves(offset_change, commits, pull)
    order = Window.partitionBy(*KEY).orderBy("ts", "offset")
    committed = F.max(F.col("by") != "").over(Window.partitionBy(*KEY))
    still = moves.select(
        *KEY,
        "offset",
        F.col("ts").alias("since_ts"),
        F.lead("ts").over(order).alias("until_ts"),
        committed.alias("committed"),
    )
    is_long = F.col("until_ts").isNull() | (_seconds("since_ts", "until_ts") >= stuck_s)
    long = _as_copied(still.where(is_long), snapshot).where(is_long)  # copies make a stretch shorter, never longer
    waited = (
        _told_within(long, ends)
        .where(F.col("queue_max_offset") > F.col("offset"))
        .groupBy(*KEY, "offset", "since_ts", "until_ts")
        .agg(
            F.min("at").alias("from_ts"),
            F.max("at").alias("told_ts"),
            F.max(F.col("queue_max_offset") - F.col("offset")).alias("waiting"),
        )
        .withColumn("to_ts", F.coalesce("until_ts", "told_ts"))
        .where(_seconds("from_ts", "to_ts") >= stuck_s)
    )
    held = waited.join(owners.select(*KEY, F.col("from_ts").alias("_from"), F.col("to_ts").alias("_to")), KEY)
    overlap = _seconds(F.greatest("from_ts", "_from"), F.least("to_ts", "_to"))
    kept = held.groupBy(*waited.columns).agg(F.sum(F.greatest(overlap, F.lit(0.0))).alias("held_s"))
    return _with_refusals(kept.where(F.col("held_s") >= stuck_s), pull)


def _told_within(long: DataFrame, ends: DataFrame) -> DataFrame:
    """The stretches, each with every ``at`` and queue_max_offset that was told of its queue in it, both ends included.

    Stretches of a queue follow each other, so an instant lies in the last that began, or where one ends and another
    begins in both: a join by the queue alone would pair each with all.
    """
    queues = F.broadcast(long.select(*KEY).distinct())
    told = ends.select(*QUEUE, "at", "queue_max_offset").join(queues, QUEUE)
    asked = told.withColumn("_before", F.col("at") - F.expr("INTERVAL 1 MICROSECOND"))
    stretch = F.struct("offset", "since_ts", "until_ts").alias("stretch")
    known = long.select(*KEY, F.col("since_ts").alias(AT), stretch)
    found = ask(asked, known, KEY, [Ask("at", "stretch", "_now"), Ask("_before", "stretch", "_earlier")])
    each = F.explode(F.array_distinct(F.array("_now", "_earlier"))).alias("s")
    within = F.col("until_ts").isNull() | (F.col("at") <= F.col("until_ts"))
    return found.select(*KEY, "at", "queue_max_offset", each).select("*", "s.*").where("s IS NOT NULL").where(within)


def _as_copied(still: DataFrame, snapshot: DataFrame) -> DataFrame:
    """Without commits, a stretch ends with the last copy of the master's file in it."""
    copies = snapshot.where((F.col("broker_id") == 0) & F.col("file_name").startswith("consumerOffset.json")).select(
        "broker_name", F.col("ts").alias("at")
    )
    before = F.coalesce(F.col("until_ts"), F.lit(END)) - F.expr("INTERVAL 1 MILLISECOND")
    seen = as_of(still.withColumn("at", before), copies, ["broker_name"], "at", F.struct("at"), "copied")
    last = F.when(F.col("copied.at") > F.col("since_ts"), F.col("copied.at")).otherwise(F.col("since_ts"))
    return seen.withColumn("until_ts", F.when(F.col("committed"), F.col("until_ts")).otherwise(last)).drop(
        "committed", "copied", "at"
    )


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


def _moves(offset_change: DataFrame, commits: DataFrame, pull: DataFrame) -> DataFrame:
    """KEY, ts, offset: moments in which the group's offset of a queue became another one."""
    saved = offset_change.where((F.col("broker_id") == 0) & F.col("new_offset").isNotNull()).select(
        *KEY, F.col("to_ts").alias("ts"), F.col("new_offset").alias("offset"), F.lit("").alias("by")
    )
    told = commits.where((F.col("kind") == "UPDATE") & F.col("commit_offset").isNotNull()).select(
        *KEY, "ts", F.col("commit_offset").alias("offset"), F.col("client_id").alias("by")
    )
    # A pull carries the offset too (PullSysFlag's commit bit); it says no more than what UPDATE does, but may be all.
    pulled = pull.where(F.col("commit_offset") > 0).select(
        *KEY, F.col("request_ts").alias("ts"), F.col("commit_offset").alias("offset"), F.col("client_id").alias("by")
    )
    every = saved.unionByName(told).unionByName(pulled)
    before = F.lag("offset").over(Window.partitionBy(*KEY, "by").orderBy("ts", "offset"))
    return every.withColumn("_before", before).where(F.col("_before").isNull() | (F.col("_before") != F.col("offset")))


def _seconds(since, until):  # type: ignore[no-untyped-def]
    return (F.unix_millis(until) - F.unix_millis(since)) / 1000
