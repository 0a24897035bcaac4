"""Where a slave's copy of an offset stayed behind its master's: SlaveSynchronize no longer copies it.

The evidence is the files alone, of which changes are recorded: if two copies of a file agree, the file held the same
in between.
"""

from __future__ import annotations

import polars as pl

from mqreplay.judge.as_of import as_of
from mqreplay.judge.sessions import with_session

SLAVE = ["broker_name", "slave_id"]
COPY = [*SLAVE, "consumer_group", "topic", "queue_id"]


def stale_spans_of_shard(copies: pl.DataFrame) -> pl.DataFrame:
    """Return COPY, began_ms, from_ms, to_ms, lacks, holds and has: one row a span in which a slave's copy was behind.

    ``copies`` is judge/slave_copies.py's frame of a shard. Spans of a shard, and those of all shards, may be given to
    `stale_copies`.
    """
    behind = copies.filter(pl.col("behind").list.len() > 0)
    return behind.select(*COPY, "behind").explode("behind").unnest("behind")


def stale_copies(
    spans: pl.DataFrame, snapshot: pl.DataFrame, outages: pl.DataFrame, stale_slave_s: int
) -> pl.DataFrame:
    """Return gold.offset_continuity's rows of kind stale: a slave's offset below all that its master held for so long.

    One row a stretch of time. ``spans`` is the frame of `stale_spans_of_shard`, of one or more shards; ``snapshot`` is
    silver.snapshot and ``outages`` broker_outages' frame, both whole. Only times are judged in which both files were
    copied and the master was there.
    """
    read = snapshot.filter((pl.col("file_name") == "consumerOffset.json") & pl.col("broker_id").is_not_null())
    slaves = read.filter(pl.col("broker_id") > 0).rename({"broker_id": "slave_id"})
    masters = read.filter(pl.col("broker_id") == 0)
    # Watched spans of a slave do not overlap: a stale span reaches the last one that began by its end, or none.
    watched = _watched(slaves, masters, outages, stale_slave_s)
    judged = as_of(spans, watched, SLAVE, "to_ms", {"watched_to": "watched_to"}, right_at="watched_from")
    judged = judged.filter(pl.col("watched_to") >= pl.col("from_ms"))
    until = pl.min_horizontal("to_ms", "watched_to")
    # What the copy held when it lacked most messages: of equal ones the last.
    stretches = (
        judged.sort("lacks", "to_ms", "holds", "has")
        .group_by(*COPY, "began_ms", maintain_order=True)
        .agg(_instant(until.max()).alias("to_ts"), pl.col("holds", "has", "lacks").last())
    )
    none = pl.lit(None, pl.Int64)
    return as_of(stretches, slaves, SLAVE, "to_ts", {"source_digest": "source_digest"}, right_at="ts").select(
        pl.col("to_ts").dt.date().alias("day"),
        "broker_name",
        pl.col("slave_id").alias("broker_id"),
        "topic",
        "consumer_group",
        "queue_id",
        pl.lit("stale").alias("kind"),
        pl.col("holds").alias("previous_offset"),
        pl.col("has").alias("new_offset"),
        pl.col("lacks").alias("size"),
        # Before it became stale, the copy was last right at most so long ago.
        _instant(pl.col("began_ms") - stale_slave_s * 1000).alias("from_ts"),
        "to_ts",
        pl.lit("not_copied").alias("cause"),
        pl.col("lacks").alias("redelivered_max"),
        none.alias("queue_min_offset"),
        none.alias("queue_max_offset"),
        "source_digest",
    )


def _instant(ms: pl.Expr) -> pl.Expr:
    return (ms * 1000).cast(pl.Datetime("us", "UTC"))


def _watched(slaves: pl.DataFrame, masters: pl.DataFrame, outages: pl.DataFrame, stale_slave_s: int) -> pl.DataFrame:
    """Return SLAVE, watched_from, watched_to (epoch ms): when a slave's copies can be compared with its master's.

    In the ``stale_slave_s`` seconds before each copy the master's file was copied, and the master was never gone.
    """
    copied = as_of(slaves.select(*SLAVE, "ts"), masters, ["broker_name"], "ts", {"master_ts": "ts"})
    age_ms = pl.col("ts").dt.epoch("ms") - pl.col("master_ts").dt.epoch("ms")
    # Keep, of all outages that began by an instant, the latest end.
    gone = outages.filter(pl.col("broker_id") == 0).sort("from_ts")
    gone = gone.with_columns(pl.col("to_ts").cum_max().over("broker_name"))
    there = as_of(copied, gone, ["broker_name"], "ts", {"_gone_until": "to_ts"}, right_at="from_ts")
    was_gone = pl.col("_gone_until") > pl.col("ts") - pl.duration(seconds=stale_slave_s)
    there = there.filter((age_ms < stale_slave_s * 1000) & ~was_gone.fill_null(False))
    return (
        with_session(there, SLAVE, "ts", "ts", stale_slave_s)
        .group_by(*SLAVE, "session")
        .agg(
            pl.col("ts").min().dt.epoch("ms").alias("watched_from"),
            pl.col("ts").max().dt.epoch("ms").alias("watched_to"),
        )
    )
