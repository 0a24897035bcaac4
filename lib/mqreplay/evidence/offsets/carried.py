"""Rows from before a replay that are still valid: tables of changes do not repeat them, so the last one counts.

silver.offset_checkpoint holds the last changes before a day, so that a night reads only one earlier night.
"""

from __future__ import annotations

import datetime as dt

import polars as pl

from mqreplay.evidence.frames import valued
from mqreplay.evidence.offsets.queue_events import is_offset_file

CHAIN = ["source_name", "broker_name", "broker_id", "topic", "consumer_group", "queue_id"]
CHECKPOINT_KEY = ["source_name", "topic", "consumer_group", "broker_name", "queue_id", "broker_id", "client_id"]
VALUES = ["previous_offset", "new_offset", "from_ts"]


def carried_offsets(earlier: pl.DataFrame, changes: pl.DataFrame, snapshot: pl.DataFrame) -> pl.DataFrame:
    """Return rows for ``changes`` (silver.offset_change): earlier offsets of brokers, in the form of first copies.

    ``earlier`` are all rows before ``changes``, or the last row of each offset. ``snapshot`` is all of silver.snapshot
    in the time of ``changes``; the other two may be those of one shard. A replay with these rows equals that of a
    recording that began then: its first copy of a file has every offset.
    """
    is_read = is_offset_file()
    first = (
        snapshot.filter(is_read).sort("ts", "source_digest").unique("source_name", keep="first", maintain_order=True)
    )
    first_copy = first.select("source_name", pl.col("ts").alias("_ts"), pl.col("source_digest").alias("_digest"))
    last = (
        earlier.filter(pl.col("broker_id").is_not_null())
        .sort("to_ts", "new_offset")
        .unique(CHAIN, keep="last", maintain_order=True)
        .filter(pl.col("new_offset").is_not_null())
        .select(*CHAIN, "new_offset")
    )
    # If the first copy has another offset, its row has both.
    shown = changes.join(first_copy, on="source_name").filter(pl.col("to_ts") == pl.col("_ts"))
    carried = last.join(first_copy, on="source_name").join(shown, on=CHAIN, how="anti")
    values = {
        "day": pl.col("_ts").dt.date(),
        "to_ts": pl.col("_ts"),
        "source_digest": pl.col("_digest"),
    } | {name: pl.col(name) for name in (*CHAIN, "new_offset")}
    return valued(carried, changes.schema, **values)


def carried_configs(earlier: pl.DataFrame, key: str) -> pl.DataFrame:
    """Return the last row of each file and ``key`` before a time, without removed ones.

    ``earlier`` are rows of silver.topic_config, or of a table like it.
    """
    rest = [name for name in earlier.columns if name != "ts"]
    last = earlier.sort("ts", *rest).unique(["source_name", key], keep="last", maintain_order=True)
    return last.filter(pl.col("change") != "removed")


def offsets_at(checkpoint: pl.DataFrame, changes: pl.DataFrame, instant: dt.datetime) -> pl.DataFrame:
    """Return each offset at ``instant``; ``new_offset`` is the offset.

    Columns: source_name, topic, consumer_group, broker_name, queue_id, broker_id, client_id, previous_offset,
    new_offset, from_ts, to_ts.

    ``checkpoint`` holds the last changes before the next midnight, ``changes`` those of the day of ``instant``. Changes
    from the instant to midnight are undone.
    """
    first = _ends(changes.filter(pl.col("to_ts") >= instant)).group_by(CHECKPOINT_KEY, maintain_order=True).first()
    undone = first.with_columns(new_offset=pl.col("previous_offset"), to_ts=pl.coalesce("from_ts", "to_ts"))
    before = checkpoint.filter(pl.col("to_ts") < instant)
    return pl.concat([before.select(*CHECKPOINT_KEY, *VALUES, "to_ts"), undone])


def _ends(changes: pl.DataFrame) -> pl.DataFrame:
    return changes.select(*CHECKPOINT_KEY, *VALUES, "to_ts").sort("to_ts", maintain_order=True)
