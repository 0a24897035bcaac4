"""gold.failover_exposure: the cost of losing a master, for each minute: bytes lost, messages delivered again.

Messages past the end of the slave's commit log are lost with the master (HAService). Messages whose offsets the slave's
consumerOffset.json lacks are delivered again: SlaveSynchronize copies the offsets every 10 s in 4.9 and about every
minute in 5.x.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import polars as pl
import pyarrow as pa

from mqreplay.decisions.decision import Decision, RowCount, by_name
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.arrays.frame_arrays import (
    COUNTLESS,
    NOWHERE,
    Mask,
    Numbers,
    instants,
    last_such,
    lasts,
    less,
    lists,
    one_later,
    runs,
    starts,
)
from mqreplay.evidence.frames import MAP_OF_NUMBERS, columns, typed, with_flag
from mqreplay.evidence.intervals import INSTANT
from mqreplay.evidence.offsets.slave_copies import BothFiles
from mqreplay.words.keys import SLAVE

OF_GROUP = [*SLAVE, "consumer_group"]
LACKED: dict[str, pl.DataType] = {
    **columns("broker_name", "slave_id", "consumer_group"),
    "minute": INSTANT,
    "messages": pl.Int64(),  # messages that the slave's copy lacks at the minute's end, less those a minute before
    "unknown": pl.Int64(),  # queues for which that is unknown, likewise
    "of_master": pl.Boolean(),  # whether the master's file changed in the minute
    "of_slave": pl.Boolean(),
}
MINUTE = 60_000_000  # microseconds
MINUTES = "STRUCT<minute: TIMESTAMP, messages: BIGINT, unknown: BIGINT, of_master: BOOLEAN, of_slave: BOOLEAN>"


def lacked_of_shard(copies: BothFiles) -> pl.DataFrame:
    """Return the messages that slaves' copies lack, by minute, for the shard's queues (schema LACKED)."""
    each = (
        pl.DataFrame(copies.table(lacked=lacking(copies)))
        .select(*OF_GROUP, "lacked")
        .explode("lacked")
        .unnest("lacked")
    )
    return _added_up(each)


def lacked_by_minute(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return the rows of all shards added up: one per slave, group and minute with a change (schema LACKED)."""
    return _added_up(pl.concat([pl.DataFrame(schema=LACKED), *parts]))


def failover_exposure(broker_runtime: pl.DataFrame, lacked: pl.DataFrame) -> pl.DataFrame:
    """Return one row per master and minute in which its runtime table was polled or its offsets were copied.

    Of several slaves the most advanced one counts: for bytes by its commit log, for messages by its copy of the
    offsets. ``lacked`` is the frame of lacked_by_minute.
    """
    became = _became_master(broker_runtime)
    again = _again(lacked, became)
    minutes = _logs(broker_runtime, became).join(again, on=["broker_name", "minute"], how="full", coalesce=True)
    counts = pl.col("by_group", "messages", "unknown")
    # A replica that became the master is no copy any more; where none is left, what would be lost is not known.
    gone = pl.col("no_slave").fill_null(False)
    return (
        minutes.sort("broker_name", "minute")
        .with_columns(counts.forward_fill().over("broker_name"))
        .with_columns(pl.when(~gone).then(counts))
        .select(
            pl.col("minute").dt.date().alias("day"),
            "broker_name",
            pl.col("minute").alias("minute_ts"),
            "master_up",
            "master_end",
            "slave_end",
            # The polls of a minute are seconds apart: a slave polled after its master may be ahead of it.
            less("master_end", "slave_end").clip(lower_bound=0).alias("bytes_behind"),
            pl.col("by_group").alias("redelivered_by_group"),
            pl.col("messages").alias("redelivered"),
            pl.col("unknown").alias("unknown_queues"),
        )
    )


def _added_up(lacked: pl.DataFrame) -> pl.DataFrame:
    return typed(
        lacked.group_by(*OF_GROUP, "minute").agg(
            pl.col("messages", "unknown").sum(), pl.col("of_master", "of_slave").any()
        ),
        LACKED,
    )


def _became_master(broker_runtime: pl.DataFrame) -> pl.DataFrame:
    """Return the minutes from which on a slave's address is that of its master, until it is no longer.

    Columns: broker_name, slave_id, minute.

    A controller makes a replica the master at the same address. The recorder may still ask it by its old id.
    """
    polled = broker_runtime.filter(pl.col("error").is_null() & pl.col("broker_addr").is_not_null())
    minute = pl.col("ts").dt.truncate("1m").alias("minute")
    masters = polled.filter(pl.col("broker_id") == 0).sort("ts").group_by("broker_name", minute, maintain_order=True)
    last = masters.agg(pl.col("broker_addr").last().alias("master_addr"))
    slaves = polled.filter(pl.col("broker_id") != 0)
    asked = slaves.select("broker_name", pl.col("broker_id").alias("slave_id"), minute, "broker_addr").unique()
    same = asked.join(last, ["broker_name", "minute"]).filter(pl.col("broker_addr") == pl.col("master_addr"))
    return same.select(*SLAVE, "minute").unique()


def _logs(broker_runtime: pl.DataFrame, became: pl.DataFrame) -> pl.DataFrame:
    """Return the last known ends of commit logs in each minute, in bytes.

    Columns: broker_name, minute, master_up, master_end, slave_end, no_slave (all slaves that were asked in the minute
    had become the master).

    ``no_slave``: all slaves that were asked in the minute had become the master.
    """
    end = pl.col("commit_log_max_offset")
    masters = became.select("broker_name", pl.col("slave_id").alias("broker_id"), "minute")
    minute = pl.col("ts").dt.truncate("1m")
    asked = broker_runtime.filter(pl.col("broker_id").is_not_null()).with_columns(minute.alias("minute"))
    others = asked.join(masters, ["broker_name", "broker_id", "minute"], how="anti")
    left = others.filter((pl.col("broker_id") != 0) & pl.col("error").is_null())
    no_slave = became.select("broker_name", "minute").unique().join(left, ["broker_name", "minute"], how="anti")
    last = (
        others.sort("ts", end)
        .group_by("broker_name", "broker_id", "minute", maintain_order=True)
        .agg(end.drop_nulls().last().alias("end"), pl.col("error").is_null().any().alias("up"))
    )
    is_master = pl.col("broker_id") == 0
    ends = last.group_by("broker_name", "minute").agg(
        pl.col("up").filter(is_master).max().alias("master_up"),
        pl.col("end").filter(is_master).max().alias("master_end"),
        pl.col("end").filter(~is_master).max().alias("slave_end"),
    )
    return with_flag(ends, no_slave, ["broker_name", "minute"], "no_slave")


def _again(lacked: pl.DataFrame, became: pl.DataFrame) -> pl.DataFrame:
    """Return the messages that the most advanced slave lacks, at the end of each minute with a change.

    Columns: broker_name, minute, by_group, messages, unknown.

    A master's rows begin with the minute in which the files of master and slave had been copied. ``became`` is the
    frame of `_became_master`.
    """
    minutes = lacked.select("broker_name", "minute").unique()
    number = pl.col("minute").rank("dense").over("broker_name").cast(pl.Int64)
    minutes = minutes.with_columns(number.alias("number"))
    counted = _counted(lacked, minutes).join(_both_known(lacked), on=SLAVE).filter(pl.col("minute") >= pl.col("since"))
    # The copy of a replica that became the master stays, but no slave has it.
    since = became.group_by(SLAVE).agg(pl.col("minute").min().alias("became"))
    counted = counted.join(since, SLAVE, how="left").filter((pl.col("minute") < pl.col("became")).fill_null(True))
    # A copy that lacks fewer queues is more advanced than one whose messages cannot be counted.
    furthest = counted.sort("unknown", "messages", "slave_id").unique(["broker_name", "minute"], keep="first")
    lists = _by_group(lacked, minutes, furthest)
    return furthest.join(lists, on=["broker_name", "minute"], how="left").select(
        "broker_name", "minute", pl.col("by_group").fill_null(pl.lit([], MAP_OF_NUMBERS)), "messages", "unknown"
    )


def _counted(lacked: pl.DataFrame, minutes: pl.DataFrame) -> pl.DataFrame:
    """Return the missing messages of all groups, at each minute with a change of the broker name.

    Columns: broker_name, slave_id, minute, number, messages, unknown.
    """
    risen = lacked.group_by(*SLAVE, "minute").agg(pl.col("messages", "unknown").sum())
    grid = lacked.select(SLAVE).unique().join(minutes, on="broker_name").join(risen, [*SLAVE, "minute"], how="left")
    return grid.sort("minute").with_columns(pl.col("messages", "unknown").fill_null(0).cum_sum().over(SLAVE))


def _by_group(lacked: pl.DataFrame, minutes: pl.DataFrame, furthest: pl.DataFrame) -> pl.DataFrame:
    """Return the messages that the most advanced copy lacks, by group.

    Columns: broker_name, minute, by_group.
    """
    # The number is constant until the group's next change: only minutes with missing messages become rows.
    numbered = lacked.join(minutes, on=["broker_name", "minute"]).sort("minute")
    last = minutes.group_by("broker_name").agg((pl.col("number").max() + 1).alias("last"))
    stays = numbered.join(last, on="broker_name", maintain_order="left").select(
        *OF_GROUP,
        "number",
        pl.col("messages").cum_sum().over(OF_GROUP),
        pl.col("number").shift(-1).over(OF_GROUP).fill_null(pl.col("last")).alias("until"),
    )
    lacks = stays.filter(pl.col("messages") > 0).with_columns(pl.int_ranges("number", "until").alias("number"))
    entry = pl.struct(pl.col("consumer_group").alias("key"), pl.col("messages").alias("value"))
    return (
        lacks.explode("number")
        .join(furthest.select(*SLAVE, "number", "minute"), on=[*SLAVE, "number"])
        .sort("consumer_group")
        .group_by("broker_name", "minute", maintain_order=True)
        .agg(entry.alias("by_group"))
    )


def _both_known(lacked: pl.DataFrame) -> pl.DataFrame:
    """Return the minute from which the files of master and slave are known; no row if one never is.

    Columns: broker_name, slave_id, since.
    """
    first = [pl.col("minute").filter(pl.col(name)).min().alias(name) for name in ("of_master", "of_slave")]
    known = lacked.group_by(SLAVE).agg(first).drop_nulls()
    return known.select(*SLAVE, pl.max_horizontal("of_master", "of_slave").alias("since"))


def lacking(copies: BothFiles) -> pa.ListArray:
    """Return for each copy the minutes in which it or the master's file changed, as MINUTES.

    ``messages`` that the copy lacked at the minute's end, and whether that is ``unknown`` (1: one of the files has no
    offset, or one set from outside), each less the value a minute before, so that sums over queues and minutes are
    right. ``of_master``, ``of_slave``: which file changed.
    """
    messages, unknown = _missing(copies)
    minute = copies.at // MINUTE
    first = starts(copies.copy, minute)
    last = lasts(first, len(minute))
    goes_on = one_later(copies.copy[first], NOWHERE) == copies.copy[first]
    fields = {
        "minute": instants(minute[first] * MINUTE),
        "messages": pa.array(_risen(messages[last], goes_on)),
        "unknown": pa.array(_risen(unknown[last], goes_on)),
        "of_master": pa.array(runs(np.logical_or, copies.of_master, first)),
        "of_slave": pa.array(runs(np.logical_or, ~copies.of_master, first)),
    }
    return lists(np.append(np.flatnonzero(~goes_on), len(first)), fields)


def _missing(copies: BothFiles) -> tuple[Numbers, Numbers]:
    """Return after each row: messages that the slave's copy lacks, and 1 if that is unknown."""
    held, is_held = _last_offset(copies, copies.of_master)
    copied, is_copied = _last_offset(copies, ~copies.of_master)
    more = is_held & is_copied & (held > copied)
    lacks = held - copied
    # An offset set from outside counts no messages; a negative difference does not fit a bigint.
    countless = more & ((lacks > COUNTLESS) | (lacks < 0))
    return np.where(more & ~countless, lacks, 0), ((is_held != is_copied) | countless).astype(np.int64)


def _last_offset(copies: BothFiles, such: Mask) -> tuple[Numbers, Mask]:
    offset, there = copies.offset
    row = last_such(such, copies.first)
    return offset[row], there[row] & (row != NOWHERE)


def _risen(values: Numbers, goes_on: Mask) -> Numbers:
    """Return each value less the one before it, if they belong together."""
    return values - np.where(goes_on, one_later(values), 0)


MISSING_POLL: Final = "the master and its slaves were not polled in the same minute"


FAILOVER_EXPOSURE: Final = Decision(
    table="gold.failover_exposure",
    instant="minute_ts",
    one="failover estimate",
    many="failover estimates",
    importance=26,
    needs=(Need("consumer_offset"), Need("broker_runtime")),
    count=RowCount(
        "gold.failover_exposure",
        pl.col("redelivered").is_null() & pl.col("bytes_behind").is_null(),
        pl.lit(MISSING_POLL),
    ),
    rows=by_name(failover_exposure),
)
