"""Slaves whose copies of the offsets stayed behind: SlaveSynchronize no longer copies them.

Told from the files alone, which change only: what a file held between two copies that agree, it held all the while.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mqreplay.replay.as_of import as_of
from mqreplay.replay.far import COUNTLESS, less
from mqreplay.replay.findings.shape import evidence, finding, queues_text, text_of
from mqreplay.replay.sessions import with_session

NAME = ["cluster", "broker_name"]
SLAVE = [*NAME, "slave_id"]
COPY = [*SLAVE, "consumer_group", "topic", "queue_id"]
# Of what was seen in the same millisecond: what the master held, what the slave held, then the question.
MASTER, COPIED, ASKED, PLACES = 0, 1, 2, 4
NOT_KNOWN = -(2**63)  # lower than any offset: what nobody saw may have been what the slave holds


def stale_slave_offsets(
    offset_change: DataFrame, snapshot: DataFrame, outages: DataFrame, stale_slave_s: int
) -> DataFrame:
    """One finding a slave that kept an offset below all that its master held in the last ``stale_slave_s`` seconds.

    ``outages`` is broker_outages' frame. Judged where both files were copied and the master was there all that time.
    """
    copies = snapshot.where("file_name = 'consumerOffset.json' AND broker_id IS NOT NULL")
    watched = _watched(copies, outages, stale_slave_s)
    last = watched.groupBy(*SLAVE).agg(F.max("watched_to").alias("last_ms"))
    behind = _behind(_moments(offset_change, F.broadcast(last)), stale_slave_s * 1000)
    since, until = F.greatest("stale_from", "watched_from"), F.least("stale_to", "watched_to")
    met = behind.join(F.broadcast(watched), SLAVE).where(since <= until)
    by_queue = met.groupBy(*COPY).agg(
        # The copy was right at most so long before it was stale.
        (F.min("began") - stale_slave_s * 1000).alias("from_ms"),
        F.max(until).alias("to_ms"),
        F.max("lacks").alias("lacks"),
    )
    found = (
        by_queue.withColumn("source_name", F.concat_ws("-", "broker_name", F.col("slave_id").cast("string")))
        .withColumnRenamed("slave_id", "broker_id")
        .groupBy(*NAME, "broker_id")
        .agg(
            F.timestamp_millis(F.min("from_ms")).alias("from_ts"),
            F.timestamp_millis(F.max("to_ms")).alias("to_ts"),
            F.count(F.lit(1)).alias("queues"),
            F.count_distinct("consumer_group").alias("groups"),
            F.sum("lacks").alias("messages"),
            evidence("silver.offset_change", "source_name", "topic", "consumer_group", "queue_id"),
        )
    )
    return finding(
        found,
        kind="stale_slave_offsets",
        severity=F.lit("warning"),
        summary=text_of(
            "Slave ",
            "{broker_id}",
            " of ",
            "{broker_name}",
            " kept offsets of ",
            queues_text(),
            " of ",
            "{groups}",
            F.when(F.col("groups") == 1, " group").otherwise(" groups"),
            f" below all that its master held for {stale_slave_s} s; were it read instead, up to ",
            "{messages}",
            " messages would be delivered again.",
        ),
        advice="See in the slave's broker.log why SlaveSynchronize fails, and whether it still reaches its master.",
        confidence=0.9,
    )


def _watched(copies: DataFrame, outages: DataFrame, stale_slave_s: int) -> DataFrame:
    """SLAVE, watched_from, watched_to (epoch ms): spans of a slave's copies that can be held against its master.

    Within the last ``stale_slave_s`` seconds of each the master's file was copied, and the master was never gone.
    """
    slaves = copies.where("broker_id > 0").select(*NAME, F.col("broker_id").alias("slave_id"), "ts")
    masters = copies.where("broker_id = 0").select(*NAME, "ts")
    copied = as_of(slaves, masters, NAME, "ts", F.col("ts"), "master_ts").where(
        F.unix_millis("ts") - F.unix_millis("master_ts") < stale_slave_s * 1000
    )
    gone = outages.where("broker_id = 0").select(*NAME, F.col("from_ts").alias("_from"), F.col("to_ts").alias("_to"))
    keys = [F.col(f"c.{k}") == F.col(f"g.{k}") for k in NAME]
    reached = F.col("c.ts") - F.make_dt_interval(secs=F.lit(stale_slave_s))
    within = (F.col("g._from") <= F.col("c.ts")) & (F.col("g._to") > reached)
    there = copied.alias("c").join(F.broadcast(gone).alias("g"), [*keys, within], "left_anti")
    together = with_session(there, SLAVE, "ts", "ts", stale_slave_s)
    return together.groupBy(*SLAVE, "session").agg(
        F.unix_millis(F.min("ts")).alias("watched_from"), F.unix_millis(F.max("ts")).alias("watched_to")
    )


def _moments(offset_change: DataFrame, slaves: DataFrame) -> DataFrame:
    """COPY, place, held and ended (of the master), copied and asked (of the slave): all that was seen of each copy.

    ``place`` orders them: milliseconds, and within one of these what comes first. ``asked`` is what the slave still
    held when a copy last showed it.
    """
    changes = offset_change.where(F.col("broker_id").isNotNull())
    named = [c for c in COPY if c != "slave_id"]
    of_master = changes.where("broker_id = 0").join(slaves.drop("last_ms"), NAME)
    of_slave = changes.where("broker_id > 0").withColumnRenamed("broker_id", "slave_id")
    columns = [*named, "slave_id"]
    held = of_master.select(
        *columns,
        _place(F.unix_millis("to_ts"), MASTER),
        F.struct(F.col("new_offset").alias("offset")).alias("held"),
        F.coalesce("previous_offset", F.lit(NOT_KNOWN)).alias("ended"),
    )
    copied = of_slave.select(
        *columns,
        _place(F.unix_millis("to_ts"), COPIED),
        F.struct(F.col("new_offset").alias("offset")).alias("copied"),
    )
    changed = of_slave.where("previous_offset IS NOT NULL AND from_ts IS NOT NULL").select(
        *columns,
        _place(F.unix_millis("from_ts"), ASKED),
        # From then until the next copy nobody knows.
        F.struct(F.lit(None).cast("bigint").alias("offset")).alias("copied"),
        F.struct(F.col("previous_offset").alias("offset")).alias("asked"),
    )
    standing = of_slave.groupBy(*columns).agg(
        F.max_by(F.struct(F.col("new_offset").alias("offset")), "to_ts").alias("asked"), F.max("to_ts").alias("_ts")
    )
    ended = standing.join(slaves, SLAVE).where(F.col("last_ms") >= F.unix_millis("_ts"))
    at_end = ended.select(*columns, _place(F.col("last_ms"), ASKED), "asked")
    moments = held.unionByName(copied, allowMissingColumns=True).unionByName(changed, allowMissingColumns=True)
    return moments.unionByName(at_end, allowMissingColumns=True)


def _place(ms: Column, kind: int) -> Column:
    return (ms * PLACES + kind).alias("place")


def _behind(moments: DataFrame, reach_ms: int) -> DataFrame:
    """COPY, began, stale_from, stale_to (epoch ms), lacks (messages): when the slave held less than the master ever.

    Looked at when the master moves and when a copy last showed what the slave held: between these nothing changes but
    what the master held before, which falls out of reach.
    """
    order = Window.partitionBy(*COPY).orderBy("place")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    # What the master held within reach is what ended within it, and what it holds.
    recent = order.rangeBetween(-(reach_ms - 1) * PLACES, 0)
    asked = F.col("asked")["offset"]
    copied = F.last("copied", ignorenulls=True).over(before)["offset"]
    looked = moments.select(
        *COPY,
        "place",
        F.when(F.col("asked").isNotNull(), asked).when(F.col("held").isNotNull(), copied).alias("has"),
        F.last("held", ignorenulls=True).over(before)["offset"].alias("holds"),
        F.min("ended").over(recent).alias("lowest"),
        F.lag("place").over(order).alias("prior"),
    )
    is_stale = (F.col("has") < F.col("holds")) & (F.col("lowest").isNull() | (F.col("has") < F.col("lowest")))
    stale = looked.withColumn("stale", F.coalesce(is_stale, F.lit(False)))
    went_on = F.coalesce(F.lag("stale").over(order), F.lit(False))
    at, prior = _ms("place"), _ms("prior")
    # A span that begins between two moments does so when the last of what ended before it falls out of reach.
    since = F.when(went_on, prior).otherwise(F.least(at, prior + reach_ms))
    spans = stale.withColumns({"stale_from": since, "_first": F.when(F.col("stale") & ~went_on, since)})
    began = F.last("_first", ignorenulls=True).over(order.rowsBetween(Window.unboundedPreceding, 0))
    return (
        spans.withColumn("began", began)
        .where("stale")
        .select(
            *COPY,
            "began",
            "stale_from",
            at.alias("stale_to"),
            F.least(less("holds", "has"), F.lit(COUNTLESS)).alias("lacks"),
        )
    )


def _ms(place: str) -> Column:
    return F.floor(F.col(place) / PLACES).cast("bigint")
