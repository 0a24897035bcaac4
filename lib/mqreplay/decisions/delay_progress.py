"""gold.delay_progress: whether a master delivered the delayed messages of each level that were due.

A message of a level is due the level's delay after it was stored (ScheduleMessageService#computeDeliverTimestamp). All
messages of an earlier reading of the level's queue were stored by then. So the offset in delayOffset.json must have
reached the end of that reading when the delay has passed since, and some time for the broker's schedule. Readings that
agree are only counted, in gold.judgement. An offset after the end of its queue is never right.

The queue of a level in SCHEDULE_TOPIC_XXXX grows with each delayed message (CommitLog#asyncPutMessage). The offset up
to which the broker moved the messages to their topics is in delayOffset.json (ScheduleMessageService). The recorder
asks a broker for both each minute, and writes a copy of delayOffset.json only if it changed.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.core.delay_level import (
    DEFAULT_MESSAGE_DELAY_LEVEL,
    SCHEDULE_TOPIC,
    compute_deliver_timestamp,
    delay_level_to_queue_id,
    parse_delay_level,
    queue_id_to_delay_level,
)
from mqreplay.decisions.decision import VERDICT_WORDS, Decision, by_name
from mqreplay.decisions.verdict import AGREE, DIFFER, UNDETERMINED, decided
from mqreplay.evidence.brokers.broker_descriptions import PROPERTIES, descriptions, valid_at
from mqreplay.evidence.frames import columns, with_law
from mqreplay.evidence.intervals import INSTANT, with_state
from mqreplay.words.keys import BROKER

COLUMNS: Final = (
    *("day", "broker_name", "broker_id", "queue_id", "delay_level", "ts", "delayed_end", "due_offset"),
    *("delivered_offset", "delay_ms", "judgement", "reason", "record_id"),
)
DELIVERED: Final = "all messages that were due are delivered"
NOT_DELIVERED: Final = "messages that were due are not delivered"
AFTER_END: Final = "the offset of the level is after the end of its queue"
NO_SETTINGS: Final = "brokers.json lacks the settings of this master, so its delay levels are not known"
NO_COPY: Final = "the recording has no copy of delayOffset.json of the master up to this time"
NOT_CONFIRMED: Final = "no later copy of delayOffset.json or poll of it shows what was delivered at this time"
STARTED: Final = "the broker had just started"
NO_ENDS: Final = "no reading of SCHEDULE_TOPIC_XXXX of this master shows how many messages are delayed"
PAST_END: Final = (pl.col("delivered_offset") > pl.col("delayed_end")).fill_null(value=False)
DELAY_FILE: Final = "delayOffset.json"
REQUEST: Final = "GET_ALL_DELAY_OFFSET"
STATED_PREFIX: Final = "scheduleMessageOffset_"  # RunningStats
LEVEL: Final = ("broker_name", "delay_level")
# Seconds after a reading within which the recorder asks for the delay offsets again, and for the ends.
ASKED_AGAIN_S: Final = 90
READ_AGAIN_S: Final = 150


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
    timed = _with_due(_with_delays(ends, broker), late_s)
    stated = _with_due(_with_delays(stated_levels(broker_runtime, ends), broker, assumed=True), late_s)
    each = pl.concat([with_delivered(timed, delay_offset, snapshot), stated], how="diagonal")
    readings = _with_boot(each.filter(pl.col("due_offset").is_not_null() | PAST_END), broker_runtime)
    verdict = decided(
        (PAST_END, DIFFER, AFTER_END),
        (pl.col("delay_ms").is_null(), UNDETERMINED, NO_SETTINGS),
        ((pl.col("ts") - pl.col("boot_ts")).dt.total_seconds() < late_s, UNDETERMINED, STARTED),
        (pl.col("next_offset") < pl.col("due_offset"), DIFFER, NOT_DELIVERED),
        (pl.col("delivered_offset").is_null(), UNDETERMINED, NO_COPY),
        (pl.col("delivered_offset") >= pl.col("due_offset"), AGREE, DELIVERED),
        (pl.col("confirmed") | pl.col("is_stated"), DIFFER, NOT_DELIVERED),
        otherwise=(UNDETERMINED, NOT_CONFIRMED),
    )
    judged = readings.with_columns(
        confirmed(readings, recorder_event).alias("confirmed"), pl.col("is_stated").fill_null(value=False)
    ).with_columns(**verdict)
    rows = [judged.select(*COLUMNS, "is_stated"), _without_ends(delay_offset, ends)]
    return pl.concat(rows, how="diagonal").sort("ts", *LEVEL)


def stored_rows(judged: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that gold.delay_progress keeps: all but readings that agree."""
    return judged.filter(pl.col("judgement") != "agree").drop("is_stated", strict=False)


def _with_delays(ends: pl.DataFrame, broker: pl.DataFrame, *, assumed: bool = False) -> pl.DataFrame:
    """Add delay_ms, the level's delay by the settings at that time; null if no settings of the broker are known.

    With ``assumed``, a broker without known settings has the usual delays.
    """
    described = [(row, named.get("messageDelayLevel")) for row, named in descriptions(broker) if named]
    rows = [(*(row[key] for key in (*BROKER, "ts")), text or DEFAULT_MESSAGE_DELAY_LEVEL) for row, text in described]
    settings = pl.DataFrame(rows, columns(*BROKER, "ts") | {"levels": pl.String()}, orient="row")
    known = valid_at(ends, settings, "ts")
    if assumed:
        known = known.with_columns(pl.col("levels").fill_null(DEFAULT_MESSAGE_DELAY_LEVEL))
    return with_law(known, ["levels", "delay_level"], {"delay_ms": pl.Int64()}, _delay).drop("levels")


def _delay(levels: str | None, delay_level: int | None) -> int | None:
    if levels is None or delay_level is None:
        return None
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
    known = with_state(ends, earlier.sort("ts", "due_offset"), LEVEL, "ts")
    due_offset = pl.when(pl.col("delay_ms").is_null()).then("delayed_end").otherwise("due_offset")
    return known.with_columns(due_offset.alias("due_offset"))


def _with_boot(readings: pl.DataFrame, broker_runtime: pl.DataFrame) -> pl.DataFrame:
    """Add boot_ts of the master at its last answer before."""
    polls = broker_runtime.filter((pl.col("broker_id") == 0) & pl.col("boot_ts").is_not_null())
    known = polls.select("broker_name", "ts", "boot_ts").sort("ts")
    return with_state(readings, known, "broker_name", "ts")


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


def stated_levels(broker_runtime: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Return what masters' runtime figures state of levels, in the columns of `level_ends`.

    Also delivered_offset, and is_stated (true). Follows ScheduleMessageService#buildRunningStats: the broker prints the
    offset and the end of a level's queue together. Masters with rows in ``ends`` are left out.
    """
    named = pl.element().struct.field
    figures = (
        pl.col("runtime").cast(PROPERTIES).list.eval(pl.element().filter(named("key").str.starts_with(STATED_PREFIX)))
    )
    polls = broker_runtime.filter((pl.col("broker_id") == 0) & pl.col("runtime").is_not_null())
    listed = polls.join(ends.select("broker_name").unique(), "broker_name", how="anti").with_columns(figures.alias("_"))
    each = listed.filter(pl.col("_").list.len() > 0).explode("_").unnest("_")
    offsets = pl.col("value").str.extract_groups(r"^\s*([0-9]{1,18})\s*,\s*([0-9]{1,18})\s*$").struct
    level = pl.col("key").str.strip_prefix(STATED_PREFIX).cast(pl.Int64, strict=False)
    rows = each.with_columns(
        level.alias("delay_level"),
        (level - 1).cast(pl.Int32).alias("queue_id"),  # delay_level_to_queue_id
        offsets.field("1").cast(pl.Int64).alias("delivered_offset"),
        offsets.field("2").cast(pl.Int64).alias("delayed_end"),
        pl.lit(0, pl.Int64).alias("delayed_begin"),
        pl.lit(value=True).alias("is_stated"),
    )
    known = rows.filter((pl.col("delayed_end") > 0) & (pl.col("delay_level") > 0))
    return known.select(*ends.columns, "delivered_offset", "is_stated").sort("ts", "record_id", "delay_level")


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
        timed = with_state(
            timed, copies.with_columns(pl.col("ts").alias(name)), "broker_name", "ts", after=after, exact=not after
        )
    for at, name in (("copy_ts", "delivered_offset"), ("next_ts", "next_offset")):
        asked = timed.filter(pl.col(at).is_not_null()).sort(at, maintain_order=True)
        known = with_state(asked, states.rename({"ts": at, "offset": name}), LEVEL, at).with_columns(
            pl.max_horizontal(pl.col(name).fill_null(0), "delayed_begin").alias(name)
        )
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
    known = with_state(
        timed.with_row_index("reading"), _failed_polls(recorder_event, readings), "broker_name", "until", "failed_from"
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


DELAY_PROGRESS: Final = Decision(
    table="gold.delay_progress",
    instant="ts",
    one="reading of a delay level",
    many="readings of delay levels",
    importance=17,
    phrases=(
        "delay level {delay_level} of {broker_name}",
        "delivered up to {delivered_offset:,}, due up to {due_offset:,}",
        VERDICT_WORDS,
    ),
    rows=by_name(stored_rows, judged="judged_delays"),
    steps={"judged_delays": by_name(delay_progress, snapshot="raw_snapshot", late_s="stuck_s")},
    counted="judged_delays",
)
