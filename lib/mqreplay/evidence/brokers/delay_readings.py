"""Readings of the delay levels of masters: the ends of their queues, and how far their messages were delivered.

The queue of a level in SCHEDULE_TOPIC_XXXX grows with each delayed message (CommitLog#asyncPutMessage). The offset up
to which the broker moved the messages to their topics is in delayOffset.json (ScheduleMessageService). The recorder
asks a broker for both each minute, and writes a copy of delayOffset.json only if it changed.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.core.delay_level import SCHEDULE_TOPIC, queue_id_to_delay_level
from mqreplay.evidence.time_spans import INSTANT

DELAY_FILE: Final = "delayOffset.json"
REQUEST: Final = "GET_ALL_DELAY_OFFSET"
LEVEL: Final = ("broker_name", "delay_level")
# Seconds after a reading within which the recorder asks for the delay offsets again, and for the ends.
ASKED_AGAIN_S: Final = 90
READ_AGAIN_S: Final = 150


def level_ends(topic_stats: pl.DataFrame) -> pl.DataFrame:
    """Return the ends of the queues of delay levels at masters, in order of time; empty queues have no row.

    Columns: day, broker_name, broker_id, queue_id, delay_level, ts, delayed_begin, delayed_end, record_id.
    """
    is_read = (pl.col("topic") == SCHEDULE_TOPIC) & (pl.col("broker_id") == 0) & pl.col("offsets").is_not_null()
    each = topic_stats.filter(is_read).explode("offsets").filter(pl.col("offsets").is_not_null())
    field = pl.col("offsets").struct.field
    named = each.with_columns(
        field("queue_id").alias("queue_id"),
        field("min_offset").fill_null(0).alias("delayed_begin"),
        field("max_offset").alias("delayed_end"),
    )
    known = named.filter(pl.col("delayed_end") > 0)
    levels = {queue: queue_id_to_delay_level(queue) for queue in known["queue_id"].unique()}
    level = pl.col("queue_id").replace_strict(levels, default=None, return_dtype=pl.Int64).alias("delay_level")
    place = ("day", "broker_name", "broker_id", "queue_id", "delay_level", "ts")
    columns = (*place, "delayed_begin", "delayed_end", "record_id")
    return known.with_columns(level).select(columns).sort("ts", "record_id", "delay_level")


def with_delivered(ends: pl.DataFrame, delay_offset: pl.DataFrame, snapshot: pl.DataFrame) -> pl.DataFrame:
    """Add the offsets up to which messages of the level were delivered.

    delivered_offset: at the last copy of delayOffset.json before the reading; null: there is none
    next_offset, next_ts: at the first copy after it; null: there is none. Offsets only grow.

    A level without an entry in a copy has delivered nothing yet. Messages below the first of the queue are deleted, and
    not waited for (ScheduleMessageService#correctDelayOffset).
    """
    of_master = delay_offset.filter(pl.col("broker_id") == 0)
    is_copy = (pl.col("file_name") == DELAY_FILE) & (pl.col("broker_id") == 0)
    copies = pl.concat([snapshot.filter(is_copy).select("broker_name", "ts"), of_master.select("broker_name", "ts")])
    copies = copies.unique().sort("ts")
    offset = pl.when(pl.col("change") != "removed").then("offset").fill_null(0)
    states = of_master.select(*LEVEL, "ts", offset.alias("offset")).sort("ts")
    timed = ends.sort("ts", maintain_order=True)
    for name, after in (("copy_ts", False), ("next_ts", True)):
        timed = timed.join_asof(
            copies.with_columns(pl.col("ts").alias(name)),
            on="ts",
            by="broker_name",
            strategy="forward" if after else "backward",
            allow_exact_matches=not after,
            check_sortedness=False,
        )
    for at, name in (("copy_ts", "delivered_offset"), ("next_ts", "next_offset")):
        asked = timed.filter(pl.col(at).is_not_null()).sort(at, maintain_order=True)
        known = asked.join_asof(
            states.rename({"ts": at, "offset": name}), on=at, by=LEVEL, strategy="backward", check_sortedness=False
        ).with_columns(pl.max_horizontal(pl.col(name).fill_null(0), "delayed_begin").alias(name))
        without = timed.filter(pl.col(at).is_null()).with_columns(pl.lit(None, pl.Int64).alias(name))
        timed = pl.concat([known, without.select(known.columns)])
    return timed.drop("copy_ts").sort("ts", "record_id", "delay_level")


def confirmed(readings: pl.DataFrame, recorder_event: pl.DataFrame) -> pl.Series:
    """Return whether the recorder asked for the delay offsets again after each reading, and no copy shows a change.

    So the last copy before the reading was still valid at it: a changed answer would have been written. A later
    reading of the level shows that the recorder went on.
    """
    if recorder_event.is_empty():
        return pl.Series([False] * len(readings), dtype=pl.Boolean)
    until = (pl.col("ts") + pl.duration(seconds=READ_AGAIN_S)).alias("until")
    timed = readings.with_columns(until, pl.col("ts").shift(-1).over(LEVEL, order_by="ts").alias("later_ts"))
    known = (
        timed.with_row_index("reading")
        .sort("until")
        .join_asof(
            _failed_polls(recorder_event, readings),
            left_on="until",
            right_on="failed_from",
            by="broker_name",
            strategy="backward",
            check_sortedness=False,
        )
    )
    answered = ~(pl.col("failed_to") >= pl.col("ts")).fill_null(value=False)
    went_on = (pl.col("later_ts") <= pl.col("until")).fill_null(value=False)
    unchanged = (pl.col("next_ts") > pl.col("ts") + pl.duration(seconds=ASKED_AGAIN_S)).fill_null(value=True)
    return known.sort("reading").select(went_on & unchanged & answered).to_series()


def _failed_polls(recorder_event: pl.DataFrame, readings: pl.DataFrame) -> pl.DataFrame:
    """Return when delay offsets were not polled: broker_name, failed_from, failed_to (the latest end so far)."""
    of_file = pl.col("request").is_null() | (pl.col("request") == REQUEST)
    failed = recorder_event.filter((pl.col("kind") == "skipped") & of_file).select(
        "broker_name",
        pl.coalesce("from_ts", "ts").cast(INSTANT).alias("failed_from"),
        pl.coalesce("to_ts", "ts").cast(INSTANT).alias("failed_to"),
    )
    brokers = readings.select("broker_name").unique()
    everywhere = failed.filter(pl.col("broker_name").is_null()).drop("broker_name").join(brokers, how="cross")
    each = pl.concat([failed.filter(pl.col("broker_name").is_not_null()), everywhere.select(failed.columns)])
    return each.sort("failed_from").with_columns(pl.col("failed_to").cum_max().over("broker_name"))
