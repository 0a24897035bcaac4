"""gold.offset_continuity: where a consumer offset, as a broker kept it, did not simply move forwards.

ConsumerOffsetManager#commitOffset puts whatever it is given, so every break is possible; each kind needs its proof:
  rewind      the next snapshot holds a lower offset
  vanished    the next snapshot holds none
  beyond_max  the master told, after it, of a queue that ends before the offset
  below_min   the master told, before it, of a queue that begins after the offset
  jump        the offset rose past messages that the group was not given: a reset said so, or the next pull skips them
  stale       a slave's file stayed below all that its master's had held for a while (stale_copies.py)
A rise is no break by its size alone: one slow message holds an offset back, and lets it go at once (ProcessQueue).
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mqreplay.core.pull_check import FLAG_COMMIT_OFFSET
from mqreplay.replay.as_of import AT, Ask, ask
from mqreplay.replay.far import less
from mqreplay.replay.queue_ends import QUEUE

GROUP_QUEUE = ["consumer_group", *QUEUE]


def offset_continuity(
    offset_change: DataFrame,
    ends: DataFrame,
    suspects: DataFrame,
    resets: DataFrame,
    skips: DataFrame,
    commits: DataFrame,
    pull: DataFrame,
    reset_reach_s: int,
) -> DataFrame:
    """One row a break, on each broker whose file shows it; brokers' files only.

    ``ends`` is queue_ends' frame, ``suspects`` and ``skips`` are by_queue/suspects.py's, ``resets`` offset_resets'
    frame, ``commits`` and ``pull`` silver.offset_commit and silver.pull.
    ``reset_reach_s`` is how long a reset takes at most to show in a snapshot (clients commit it, slaves copy it).
    """
    changes = offset_change.where(F.col("broker_id").isNotNull())
    # Of most queues nothing can be wrong: only the others are looked at whole.
    looked_at = reduce(DataFrame.unionByName, [f.select(*GROUP_QUEUE) for f in (suspects, resets, skips)]).distinct()
    told = ends.withColumnRenamed("at", AT).join(F.broadcast(looked_at.select(*QUEUE).distinct()), QUEUE, "left_semi")
    known = _with_ends(changes.join(F.broadcast(looked_at), GROUP_QUEUE, "left_semi"), told)
    known = _with_reset(known, resets, skips, reset_reach_s)
    known = _with_committer(known, commits, pull.join(F.broadcast(looked_at), GROUP_QUEUE, "left_semi"), reset_reach_s)
    # What was put back from past the end was proved to be there when it was set.
    before = Window.partitionBy("source_name", *GROUP_QUEUE).orderBy("to_ts")
    return (
        known.withColumn("kind", _kind())
        .withColumns(
            {
                "kind_before": F.lag("kind").over(before),
                "end_before": F.lag("queue_max_offset").over(before),
                "first_seen": F.lag("to_ts").over(before).isNull(),
            }
        )
        .where(F.col("kind").isNotNull())
        .select(
            "cluster",
            "day",
            "broker_name",
            "broker_id",
            "topic",
            "consumer_group",
            "queue_id",
            "kind",
            "previous_offset",
            "new_offset",
            F.abs(less("new_offset", F.coalesce("previous_offset", "new_offset"))).alias("size"),
            F.coalesce("from_ts", "to_ts").alias("from_ts"),
            "to_ts",
            _cause().alias("cause"),
            _redelivered_max().alias("redelivered_max"),
            "queue_min_offset",
            "queue_max_offset",
            "source_digest",
        )
    )


def _with_ends(changes: DataFrame, told: DataFrame) -> DataFrame:
    """Adds what the master told first after the change of the queue's end, and last before it of its beginning."""
    asked = changes.withColumn("began", F.coalesce("from_ts", "to_ts"))
    asks = [
        Ask("to_ts", "queue_max_offset", "queue_max_offset", after=True),
        Ask("began", "queue_min_offset", "queue_min_offset"),
        Ask("began", "queue_max_offset", "max_before", after=True),
    ]
    return ask(asked, told, QUEUE, asks).drop("began")


def _with_reset(changes: DataFrame, resets: DataFrame, skips: DataFrame, reach_s: int) -> DataFrame:
    """Adds ``reset`` and ``skipped`` (a pull began past what was given).

    A reset was to just this offset, or further back, and the group went on from there before the copy.
    """
    reach = F.make_dt_interval(secs=F.lit(reach_s))
    since = F.coalesce("c.from_ts", "c.to_ts")
    began = since - reach
    keys = [F.col(f"c.{k}") == F.col(f"r.{k}") for k in GROUP_QUEUE]
    back = F.col("c.new_offset") < F.col("c.previous_offset")
    # A 5.x broker sets the offset at once, and a client that has enough to do asks much later. An offset that rose may
    # be just where a later reset leads.
    latest = F.when(back & F.col("r.answered"), F.col("c.to_ts") + reach).otherwise(F.col("c.to_ts"))
    to_this = (F.col("r.offset") == F.col("c.new_offset")) & (F.col("r.ts") >= began) & (F.col("r.since") <= latest)
    further_back = back & (F.col("r.offset") < F.col("c.new_offset"))
    further_back &= F.col("r.ts").between(since, F.col("c.to_ts"))
    told = resets.groupBy(*GROUP_QUEUE, "offset", "since", "ts").agg(
        F.lit(True).alias("reset"), F.max(F.col("table_name") == "silver.pull").alias("answered")
    )
    hit = [*keys, to_this | further_back]
    with_reset = changes.alias("c").join(told.alias("r"), hit, "left").select("c.*", "r.reset")
    keys = [F.col(f"c.{k}") == F.col(f"s.{k}") for k in GROUP_QUEUE]
    # The pull that skips comes when a consumer next asks: at once, or when the group is started again.
    past = (F.col("s.skipped_to") == F.col("c.new_offset")) & (F.col("s.skipped_from") <= F.col("c.new_offset"))
    moved = (F.col("s.skipped_from") >= F.col("c.previous_offset")) & (F.col("s.ts") >= began)
    jumped = with_reset.alias("c").join(skips.alias("s"), [*keys, past, moved], "left")
    return jumped.groupBy(*[F.col(f"c.{n}") for n in changes.columns]).agg(
        F.max("c.reset").alias("reset"), F.max(F.col("s.skipped_to").isNotNull()).alias("skipped")
    )


def _with_committer(changes: DataFrame, commits: DataFrame, pull: DataFrame, reach_s: int) -> DataFrame:
    """Adds ``committed``: a client committed just this offset shortly before; null where no commits were recorded.

    A pull may carry one, too (PullMessageProcessor). Of so many only those between the two copies tell anything: a
    while before, each offset that the group passed was committed by one.
    """
    reach = F.make_dt_interval(secs=F.lit(reach_s))
    by_pull = pull.where(F.col("sys_flag").bitwiseAND(FLAG_COMMIT_OFFSET) != 0)
    offset = F.col("commit_offset").alias("offset")
    updates = commits.where("kind = 'UPDATE'").select(*GROUP_QUEUE, offset, "ts", F.lit(False).alias("by_pull"))
    pulled = by_pull.select(*GROUP_QUEUE, offset, F.col("request_ts").alias("ts"), F.lit(True).alias("by_pull"))
    sent = (
        updates.unionByName(pulled).groupBy(*GROUP_QUEUE, "offset", "ts", "by_pull").agg(F.lit(True).alias("committed"))
    )
    recorded = commits.where("kind = 'UPDATE'").select("consumer_group").distinct().withColumn("recorded", F.lit(True))
    keys = [F.col(f"c.{k}") == F.col(f"u.{k}") for k in GROUP_QUEUE]
    began = F.when(F.col("u.by_pull"), F.col("c.from_ts")).otherwise(F.coalesce("c.from_ts", "c.to_ts") - reach)
    near = (F.col("u.ts") >= began) & (F.col("u.ts") <= F.col("c.to_ts"))
    hit = [*keys, near, F.col("u.offset") == F.col("c.new_offset")]
    joined = changes.alias("c").join(sent.alias("u"), hit, "left")
    found = joined.groupBy(*[F.col(f"c.{n}") for n in changes.columns]).agg(F.max("u.committed").alias("hit"))
    return (
        found.join(F.broadcast(recorded), "consumer_group", "left")
        .withColumn("committed", F.coalesce("hit", F.when(F.col("recorded"), F.lit(False))))
        .drop("hit", "recorded")
    )


def _kind() -> Column:
    new, old = F.col("new_offset"), F.col("previous_offset")
    rose = old.isNull() | (new > old)
    return (
        F.when(new.isNull(), "vanished")
        .when(new < old, "rewind")
        .when(rose & (new > F.col("queue_max_offset")), "beyond_max")
        .when(new < F.col("queue_min_offset"), "below_min")
        .when(old.isNotNull() & (F.col("reset") | F.col("skipped")), "jump")
    )


def _corrected() -> Column:
    """Whether an offset past the end was put back to the end, as the next pull does, and not further back.

    The end was told when the offset was set; one set before the recording is told by the end alone.
    """
    put_back = (F.col("kind_before") == "beyond_max") & (F.col("new_offset") >= F.col("end_before"))
    set_before = F.col("first_seen") & (F.col("previous_offset") > F.col("max_before"))
    return F.coalesce(put_back, F.lit(False)) | F.coalesce(set_before, F.lit(False))


def _cause() -> Column:
    return (
        F.when(F.col("kind") == "vanished", "removed")
        .when((F.col("kind") == "rewind") & _corrected(), "corrected")
        .when(F.col("reset"), "reset")
        .when(F.col("committed"), "client_commit")
        .when(~F.col("committed"), "set_from_outside")
        .otherwise("unknown")
    )


def _redelivered_max() -> Column:
    """Messages between the new offset and the old that the queue really held."""
    top = F.least("previous_offset", F.coalesce("max_before", "previous_offset"))
    bottom = F.greatest("new_offset", F.coalesce("queue_min_offset", F.lit(0)))
    # What stood past the end was never consumed, so putting it right delivers nothing again.
    again = F.when(_corrected(), F.lit(0).cast("bigint")).otherwise(F.greatest(less(top, bottom), F.lit(0)))
    return F.when(F.col("kind") == "rewind", again).when(
        F.col("kind").isin("jump", "beyond_max", "below_min"), F.lit(0).cast("bigint")
    )
