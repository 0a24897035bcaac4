"""gold.delay_progress: whether a master delivered the delayed messages of each level that were due.

A message of a level is due the level's delay after it was stored (ScheduleMessageService#computeDeliverTimestamp). All
messages of an earlier reading of the level's queue were stored by then. So the offset in delayOffset.json must have
reached the end of that reading when the delay has passed since, and some time for the broker's schedule. Readings that
agree are only counted, in gold.judgement.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.core.delay_level import (
    DEFAULT_MESSAGE_DELAY_LEVEL,
    compute_deliver_timestamp,
    delay_level_to_queue_id,
    parse_delay_level,
)
from mqreplay.evidence.brokers.broker_descriptions import PROPERTIES, properties_of, valid_at
from mqreplay.evidence.brokers.delay_readings import LEVEL, confirmed, level_ends, with_delivered

COLUMNS: Final = (
    *("day", "broker_name", "broker_id", "queue_id", "delay_level", "ts", "delayed_end", "due_offset"),
    *("delivered_offset", "delay_ms", "judgement", "reason", "record_id"),
)
DELIVERED: Final = "all messages that were due are delivered"
NOT_DELIVERED: Final = "messages that were due are not delivered"
NO_SETTINGS: Final = "brokers.json lacks the settings of this master, so its delay levels are not known"
NO_COPY: Final = "the recording has no copy of delayOffset.json of the master up to this time"
NOT_CONFIRMED: Final = "no later copy of delayOffset.json or poll of it shows what was delivered at this time"
STARTED: Final = "the broker had just started"
NO_ENDS: Final = "no reading of SCHEDULE_TOPIC_XXXX of this master shows how many messages are delayed"


def delay_progress(
    topic_stats: pl.DataFrame,
    delay_offset: pl.DataFrame,
    snapshot: pl.DataFrame,
    broker: pl.DataFrame,
    broker_runtime: pl.DataFrame,
    recorder_event: pl.DataFrame,
    late_s: int,
) -> pl.DataFrame:
    """Return one row for each reading of a level that has messages whose delay is over. Arguments are silver tables.

    A master may deliver ``late_s`` seconds late, and has this time after a start. A level whose offset is known, at
    a master without any reading, has one row, undetermined: its last copy.
    """
    ends = level_ends(topic_stats)
    timed = _with_due(_with_delays(ends, broker), late_s).filter(pl.col("due_offset").is_not_null())
    readings = _with_boot(with_delivered(timed, delay_offset, snapshot), broker_runtime)
    lacks = pl.col("delivered_offset") < pl.col("due_offset")
    cases = (
        (pl.col("delay_ms").is_null(), "undetermined", NO_SETTINGS),
        ((pl.col("ts") - pl.col("boot_ts")).dt.total_seconds() < late_s, "undetermined", STARTED),
        (pl.col("next_offset") < pl.col("due_offset"), "differ", NOT_DELIVERED),
        (pl.col("delivered_offset").is_null(), "undetermined", NO_COPY),
        (~lacks, "agree", DELIVERED),
        ("confirmed", "differ", NOT_DELIVERED),
    )
    judgement, reason = pl.lit("undetermined"), pl.lit(NOT_CONFIRMED)
    for when, verdict, words in reversed(cases):
        judgement = pl.when(when).then(pl.lit(verdict)).otherwise(judgement)
        reason = pl.when(when).then(pl.lit(words)).otherwise(reason)
    known = readings.with_columns(confirmed(readings, recorder_event).alias("confirmed"))
    judged = known.with_columns(judgement.alias("judgement"), reason.alias("reason"))
    return pl.concat([judged.select(COLUMNS), _without_ends(delay_offset, ends)]).sort("ts", *LEVEL)


def stored_rows(judged: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that gold.delay_progress keeps: all but readings that agree."""
    return judged.filter(pl.col("judgement") != "agree")


def _with_delays(ends: pl.DataFrame, broker: pl.DataFrame) -> pl.DataFrame:
    """Add delay_ms, the level's delay by the settings at that time; null if no settings of the broker are known."""
    named = broker.with_columns(pl.col("properties").cast(PROPERTIES))
    described = named.filter(pl.col("properties").list.len() > 0)
    texts = [properties_of(row).get("messageDelayLevel") for row in described.iter_rows(named=True)]
    settings = described.select("broker_name", "broker_id", "ts").with_columns(
        pl.Series("levels", [text or DEFAULT_MESSAGE_DELAY_LEVEL for text in texts], pl.String)
    )
    known = valid_at(ends, settings, "ts")
    cases = known.select("levels", "delay_level").drop_nulls().unique()
    delays = [_delay(*case) for case in cases.iter_rows()]
    listed = cases.with_columns(pl.Series("delay_ms", delays, pl.Int64))
    return known.join(listed, ["levels", "delay_level"], how="left", maintain_order="left").drop("levels")


def _delay(levels: str, delay_level: int) -> int:
    return compute_deliver_timestamp(delay_level, 0, parse_delay_level(levels).delay_level_table)


def _with_due(ends: pl.DataFrame, late_s: int) -> pl.DataFrame:
    """Add due_offset: the end of the level at its last reading whose messages are all due; null: there is none.

    Of a master with unknown delays it is the end itself.
    """
    late = pl.duration(seconds=late_s)
    due = (pl.col("ts") + pl.duration(milliseconds="delay_ms") + late).alias("ts")
    earlier = ends.filter(pl.col("delay_ms").is_not_null()).select(
        *LEVEL, due, pl.col("delayed_end").alias("due_offset")
    )
    known = ends.sort("ts", maintain_order=True).join_asof(
        earlier.sort("ts", "due_offset"), on="ts", by=LEVEL, strategy="backward", check_sortedness=False
    )
    due_offset = pl.when(pl.col("delay_ms").is_null()).then("delayed_end").otherwise("due_offset")
    return known.with_columns(due_offset.alias("due_offset"))


def _with_boot(readings: pl.DataFrame, broker_runtime: pl.DataFrame) -> pl.DataFrame:
    """Add boot_ts of the master at its last answer before."""
    polls = broker_runtime.filter((pl.col("broker_id") == 0) & pl.col("boot_ts").is_not_null())
    known = polls.select("broker_name", "ts", "boot_ts").sort("ts")
    return readings.join_asof(known, on="ts", by="broker_name", strategy="backward", check_sortedness=False)


def _without_ends(delay_offset: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Return the last state of each level at masters whose ends were not read, undetermined."""
    known = delay_offset.filter((pl.col("broker_id") == 0) & (pl.col("change") != "removed"))
    unread = known.join(ends.select("broker_name").unique(), "broker_name", how="anti")
    last = unread.sort("ts").unique(LEVEL, keep="last")
    queues = {level: delay_level_to_queue_id(level) for level in last["delay_level"].unique()}
    values = {
        "queue_id": pl.col("delay_level").replace_strict(queues, default=None, return_dtype=pl.Int32),
        "delivered_offset": pl.col("offset"),
        "judgement": pl.lit("undetermined"),
        "reason": pl.lit(NO_ENDS),
        "record_id": pl.col("source_digest"),
    } | {name: pl.lit(None, pl.Int64) for name in ("delayed_end", "due_offset", "delay_ms")}
    return last.select([values.get(name, pl.col(name)).alias(name) for name in COLUMNS])
