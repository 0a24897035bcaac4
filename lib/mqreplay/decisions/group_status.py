"""gold.group_status: status (by Burrow), lag in messages and time of a group and topic at the end of each window.

Commits are those of clients; if none of a group were recorded, the master's snapshots count instead. RocketMQ's own
groups have no rows: a broker consumes with them, not an application.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import polars as pl
import pyarrow as pa

from mqreplay.core.status_windows import STATUSES
from mqreplay.core.system_names import is_system_group
from mqreplay.decisions.decision import Decision, RowCount, by_name
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.frames import columns, first_of, instant_of, typed
from mqreplay.evidence.members.listed_members import outside

GROUP_SOURCE = ["consumer_group", "topic", "source"]
# The state of a group and topic in a window, from one or several queues: rows of queues can be merged.
PARTIAL: dict[str, pl.DataType] = {
    **columns("consumer_group", "topic", "source", "window_end_ms"),
    "rank": pl.Int8(),  # rank of the worst status, from 1; null if no queue's status is known
    "undetermined": pl.Int64(),  # queues with unknown status
    "queues": pl.Int64(),
    "queues_unknown": pl.Int64(),  # queues with unknown lag in messages
    "negative": pl.Int64(),  # of these, queues whose committed offset is negative
    "lag": pl.Int64(),  # of the queues with known lag; null if it does not fit a bigint
    "time_unknown": pl.Int64(),  # queues with unknown lag in time
    "time_lag_ms": pl.Float64(),  # the longest
    "commits": pl.Int64(),
    "worst_rank": pl.Int8(),  # of the worst queue; an unknown status or lag is 0
    "worst_lag": pl.Int64(),
    **columns("worst_broker_name", "worst_queue_id"),
}
STATUS_COUNTS = ["undetermined", "queues", "queues_unknown", "negative", "time_unknown", "commits"]
RANKS = {status: rank for rank, status in enumerate(STATUSES, 1)}
SO = pl.lit(", so the lag is not known")
LARGEST_LAG, MOST_NAMES, MOST_IDS = (
    2**64,
    2**20,
    2**32,
)  # largest number of each: together with a rank they fit 128 bits


def status_of_shard(windows: pa.Table) -> pl.DataFrame:
    """Return the states of groups by topic and window, from the shard's queues (schema PARTIAL).

    ``windows`` is the table of status_windows.windows.
    """
    every = pl.DataFrame(windows)
    system = [group for group in every["consumer_group"].unique() if is_system_group(group)]
    queues = every.filter(~pl.col("consumer_group").is_in(system))
    names = _names(queues["broker_name"])
    # A shard has hundreds of windows per queue: they use numbers instead of names.
    groups = queues.select(GROUP_SOURCE).unique().with_row_index("group")
    numbered = queues.join(groups, on=GROUP_SOURCE).select(
        "group", _place_and_id("broker_name", "queue_id", names), "w"
    )
    windows_of_queue = numbered.explode("w").unnest("w")
    # A broker takes a negative offset for none (ConsumerManageProcessor#queryConsumerOffset): nothing shows the lag.
    negative = pl.col("committed_offset") < 0
    unknown = [pl.when(~negative).then(name).alias(name) for name in ("status", "lag", "time_lag_ms")]
    each = windows_of_queue.with_columns(*unknown, negative.cast(pl.Int64).alias("negative"))
    rank = pl.col("status").replace_strict(RANKS, return_dtype=pl.Int8)
    lag = pl.col("lag").fill_null(0)
    rows = each.select(
        "group",
        "window_end_ms",
        rank.alias("rank"),
        rank.is_null().cast(pl.Int64).alias("undetermined"),
        pl.lit(1, pl.Int64).alias("queues"),
        pl.col("lag").is_null().cast(pl.Int64).alias("queues_unknown"),
        "negative",
        lag.alias("lag"),
        pl.col("time_lag_ms").is_null().cast(pl.Int64).alias("time_unknown"),
        "time_lag_ms",
        pl.col("commits").cast(pl.Int64),
        _weight(rank.fill_null(0), lag),
    )
    return _partial(_added_up(rows, ["group", "window_end_ms"]).join(groups, on="group"), names)


def merged_status(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return the merged states of several shards (schema PARTIAL). The order of merging does not matter."""
    rows = pl.concat([pl.DataFrame(schema=PARTIAL), *parts])
    names = _names(rows["worst_broker_name"])
    place_and_id = _place_and_id("worst_broker_name", "worst_queue_id", names)
    weight = _weight(pl.col("worst_rank"), pl.col("worst_lag"))
    return _partial(
        _added_up(rows.with_columns(place_and_id).with_columns(weight), [*GROUP_SOURCE, "window_end_ms"]), names
    )


def group_status(parts: Iterable[pl.DataFrame], window_s: int) -> pl.DataFrame:
    """Return the rows of gold.group_status: one per group, topic and window of ``window_s`` seconds.

    ``parts`` are the PARTIAL rows of all shards.
    """
    rank = pl.col("rank")
    # As core's group_status: a known problem is the status; without one, an unknown queue makes it unknown.
    hidden = (pl.col("undetermined") > 0) & (rank <= 1).fill_null(True)
    known = rank.fill_null(1).replace_strict({rank: status for status, rank in RANKS.items()}, return_dtype=pl.String)
    start = instant_of(pl.col("window_end_ms") - window_s * 1000)
    return merged_status(parts).select(
        start.dt.date().alias("day"),
        "consumer_group",
        "topic",
        start.alias("from_ts"),
        instant_of(pl.col("window_end_ms")).alias("to_ts"),
        pl.when(hidden).then(pl.lit("undetermined")).otherwise(known).alias("status"),
        pl.when(pl.col("queues_unknown") == 0).then("lag").alias("lag"),
        pl.when(pl.col("time_unknown") == 0).then("time_lag_ms").alias("time_lag_ms"),
        "queues",
        "queues_unknown",
        "worst_broker_name",
        "worst_queue_id",
        "commits",
        "source",
        _reason(hidden).alias("reason"),
    )


def _reason(hidden: pl.Expr) -> pl.Expr:
    """Return the reason of a status; ``hidden``: it is undetermined."""
    unknown, negative = pl.col("queues_unknown"), pl.col("negative")
    without_end = _queues(unknown - negative, "the end of {} is not known")
    below_zero = _queues(negative, "the committed offset of {} is negative")
    known = _queues(pl.col("queues") - unknown, "the worst of {} with known lag")
    open_reason = pl.concat_str([pl.concat_str([without_end, below_zero], separator=", and ", ignore_nulls=True), SO])
    return first_of(
        (hidden & (unknown == 0), "the end of a queue was not known at an earlier commit, so its status is not"),
        (hidden, open_reason),
        (unknown > 0, known),
        otherwise="the worst of its queues",
    )


def _queues(count: pl.Expr, text: str) -> pl.Expr:
    """Return the text with the number of queues in it; null if there are none."""
    queues = pl.when(count == 1).then(pl.lit("1 queue")).otherwise(pl.format("{} queues", count))
    return pl.when(count > 0).then(pl.format(text, queues))


def _added_up(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    lag = pl.col("lag").cast(pl.Int128).sum().cast(pl.Int64, strict=False)  # null if it does not fit a bigint
    return rows.group_by(by).agg(
        pl.col("rank", "time_lag_ms", "weight").max(),
        pl.col(STATUS_COUNTS).sum(),
        pl.when(pl.col("lag").null_count() == 0).then(lag).alias("lag"),
    )


def _names(broker_names: pl.Series) -> pl.Series:
    return broker_names.unique().sort()


def _place_and_id(broker_name: str, queue_id: str, names: pl.Series) -> pl.Expr:
    """Return one number from the rank of the queue's broker name and its id."""
    place = pl.col(broker_name).cast(pl.Enum(names)).to_physical()
    return (place.cast(pl.Int64) * MOST_IDS + pl.col(queue_id).cast(pl.Int64) + MOST_IDS // 2).alias("place_and_id")


def _weight(rank: pl.Expr, lag: pl.Expr) -> pl.Expr:
    """Return one number from a queue's rank, lag, broker name and id: the worst queue has the greatest.

    Sorting the queues by several columns would take much longer.
    """
    status = rank.cast(pl.Int128) * LARGEST_LAG + (lag.cast(pl.Int128) + LARGEST_LAG // 2)
    return (status * (MOST_NAMES * MOST_IDS) + pl.col("place_and_id")).alias("weight")


def _partial(added: pl.DataFrame, names: pl.Series) -> pl.DataFrame:
    weight = pl.col("weight")
    place = (weight // MOST_IDS % MOST_NAMES).cast(pl.Int64)
    parts = {
        "worst_rank": weight // (LARGEST_LAG * MOST_NAMES * MOST_IDS),
        "worst_lag": weight // (MOST_NAMES * MOST_IDS) % LARGEST_LAG - LARGEST_LAG // 2,
        "worst_broker_name": pl.lit(names).gather(place),
        "worst_queue_id": weight % MOST_IDS - MOST_IDS // 2,
    }
    worst = added.with_columns(part.alias(name) for name, part in parts.items())
    return typed(worst, PARTIAL)


def watched_status(status: pl.DataFrame, status_window_s: int, holes: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of gold.group_status, without those in holes of the recording."""
    return outside(group_status([status], status_window_s), "to_ts", holes)


GROUP_STATUS: Final = Decision(
    table="gold.group_status",
    instant="to_ts",
    one="group status",
    many="group statuses",
    importance=25,
    needs=(
        Need("offset_commits", or_polled=("consumer_offset",), easier="consumer_offset"),
        Need("pull_log", or_polled=("topic_stats", "consume_stats"), easier="topic_stats"),
    ),
    count=RowCount("gold.group_status", pl.col("status") == "undetermined", pl.col("reason")),
    rows=by_name(watched_status),
)
