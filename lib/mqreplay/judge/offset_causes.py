"""Causes of offset changes: the resets, skipping pulls and commits that agree with a change of a broker's file.

Changes are rows of silver.offset_change. Each rule asks whether any row of evidence of the same group and queue meets
some bounds. Sorted lookups answer that: to pair the changes of a busy queue with all its commits or resets takes too
much memory.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np
import polars as pl

from mqreplay.core.pull_check import FLAG_COMMIT_OFFSET
from mqreplay.judge.distinct import key_codes
from mqreplay.judge.frame_arrays import MOST, NOWHERE, numbers
from mqreplay.judge.nearest import as_of, nearest
from mqreplay.judge.sorted_runs import runs

GROUP_QUEUE = ["consumer_group", "broker_name", "topic", "queue_id"]
NEW_OFFSET = [*GROUP_QUEUE, "new_offset"]
BEGAN = pl.coalesce("from_ts", "to_ts")
OFFSET_MOVED = 21  # ResponseCode.PULL_OFFSET_MOVED
PUSHED, ANSWERED = "silver.server_request", "silver.pull"
_FELL = pl.col("new_offset") < pl.col("previous_offset")


def offset_resets(server_request: pl.DataFrame, pull: pl.DataFrame) -> pl.DataFrame:
    """Return resets as clients received them: GROUP_QUEUE, offset (messages), since, ts, table_name, record_id.

    A pull that waited is answered later than the offset was set: ``since`` is the instant of its request.

    With the pulls of one shard the result holds all resets of the shard's queues, and those pushed for other queues
    too. To cover several shards, concatenate `moved_resets_of_shard` of each of them and add `pushed_resets` once.
    """
    return pl.concat([pushed_resets(server_request), moved_resets_of_shard(pull)])


def pushed_resets(server_request: pl.DataFrame) -> pl.DataFrame:
    """Return the resets that brokers pushed, of all queues: 4.9 sends RESET_CONSUMER_CLIENT_OFFSET to clients."""
    reset = pl.col("reset_offsets").struct.field
    return (
        server_request.filter(pl.col("reset_offsets").list.len() > 0)
        .select("consumer_group", "ts", "record_id", "reset_offsets")
        .explode("reset_offsets")
        .select(
            "consumer_group",
            *(reset(name) for name in ("broker_name", "topic", "queue_id", "offset")),
            pl.col("ts").alias("since"),
            "ts",
            pl.lit(PUSHED).alias("table_name"),
            "record_id",
        )
    )


def moved_resets_of_shard(pull: pl.DataFrame) -> pl.DataFrame:
    """Return the resets that brokers sent as answers to the pulls of a shard.

    A 5.x broker sets the offset itself (ConsumerOffsetManager#assignResetOffset), and answers the next pull inside the
    queue's range with PULL_OFFSET_MOVED.
    """
    in_range = pl.col("queue_offset").is_between("min_offset", "max_offset")
    return pull.filter((pl.col("response_code") == OFFSET_MOVED) & in_range).select(
        *GROUP_QUEUE,
        pl.col("next_begin_offset").alias("offset"),
        pl.col("request_ts").alias("since"),
        pl.coalesce("response_ts", "request_ts").alias("ts"),
        pl.lit(ANSWERED).alias("table_name"),
        "record_id",
    )


def with_reset(changes: pl.DataFrame, resets: pl.DataFrame, reach_s: int) -> pl.DataFrame:
    """Add ``reset``: whether a reset led to just this offset, or further back and the group went on from there.

    ``resets`` is offset_resets' frame. A reset shows in a file within ``reach_s`` seconds.
    """
    reach = pl.duration(seconds=reach_s)
    # Keep, of all resets that began by an instant, the latest end: one comparison is then enough for all of them.
    to_offset = resets.rename({"offset": "new_offset"}).filter(pl.col("new_offset").is_not_null()).sort("since")
    to_offset, answered = (
        frame.with_columns(pl.col("ts").cum_max().over(NEW_OFFSET))
        for frame in (to_offset, to_offset.filter(pl.col("table_name") == ANSWERED))
    )
    # A 5.x broker sets the offset at once, and a client that has enough to do asks much later. An offset that rose may
    # be just where a later reset leads, so only one that fell is compared with later answers.
    asked = changes.with_columns((pl.col("to_ts") + reach).alias("_latest"))
    asked = as_of(asked, to_offset, NEW_OFFSET, "to_ts", {"_reset": "ts"}, right_at="since")
    asked = as_of(asked, answered, NEW_OFFSET, "_latest", {"_answered": "ts"}, right_at="since")
    since = BEGAN - reach
    to_this = (pl.col("_reset") >= since) | (_FELL & (pl.col("_answered") >= since))
    # Between the two copies the group was reset further back, and consumed up to this offset.
    further_back = _FELL & (_least_reset(changes, resets) < pl.col("new_offset"))
    reset = to_this.fill_null(False) | further_back.fill_null(False)
    return asked.with_columns(reset.alias("reset")).drop("_latest", "_reset", "_answered")


def _least_reset(changes: pl.DataFrame, resets: pl.DataFrame) -> pl.Series:
    """Return, for each change, the least offset that its group and queue were reset to between its two copies."""
    known = resets.filter(pl.col("offset").is_not_null()).sort("ts")
    key, of_reset = key_codes(GROUP_QUEUE, changes, known)
    order = np.argsort(of_reset, kind="stable")
    of_reset, at, offset = of_reset[order], *(numbers(known[name].to_arrow())[0][order] for name in ("ts", "offset"))
    began, ended = (numbers(changes.select(bound).to_series().to_arrow())[0] for bound in (BEGAN, "to_ts"))
    first = nearest(key, began, of_reset, at, side="after")
    last = nearest(key, ended, of_reset, at)
    some = (first != NOWHERE) & (first <= last)
    # Every second run is a range, the others lie between them. A range may end with the last reset: one row is added.
    bounds = np.column_stack([first[some], last[some] + 1]).ravel()
    least = np.full(len(key), MOST)
    least[some] = runs(np.minimum, np.append(offset, MOST), bounds)[::2]
    return pl.Series(least)


def with_skip(changes: pl.DataFrame, skips: pl.DataFrame, reach_s: int) -> pl.DataFrame:
    """Add ``skipped``: whether a pull began at this offset, past messages that the group was not given.

    ``skips`` is the frame of offset_continuity.skips. The pull comes when a consumer next asks: at once, or when the
    group is started again.
    """
    past = skips.rename({"skipped_to": "new_offset"}).filter(pl.col("skipped_from") <= pl.col("new_offset"))
    latest_first = past.group_by(*NEW_OFFSET, "ts").agg(pl.col("skipped_from").max()).sort("ts", descending=True)
    # Keep, of all skips since an instant, the one that passed the fewest messages.
    highest = latest_first.with_columns(pl.col("skipped_from").cum_max().over(NEW_OFFSET))
    asked = changes.with_columns((BEGAN - pl.duration(seconds=reach_s)).alias("_since"))
    asked = as_of(asked, highest, NEW_OFFSET, "_since", {"_from": "skipped_from"}, right_at="ts", after=True)
    skipped = (pl.col("_from") >= pl.col("previous_offset")).fill_null(False)
    return asked.with_columns(skipped.alias("skipped")).drop("_since", "_from")


def with_committed(
    changes: pl.DataFrame,
    offset_commit: pl.DataFrame,
    pull: pl.DataFrame,
    groups_with_commits: AbstractSet[str],
    reach_s: int,
) -> pl.DataFrame:
    """Add ``committed``: whether a client committed just this offset shortly before; null if no commits were recorded.

    ``groups_with_commits`` are the groups of which commits were recorded, in any shard.

    A pull may carry a commit, too (PullMessageProcessor). Pulls are so many that only those between the two copies are
    evidence: over a longer time, one of them committed each offset that the group passed.
    """
    updates = offset_commit.filter(pl.col("kind") == "UPDATE").select(*GROUP_QUEUE, "commit_offset", "ts")
    carries = (pl.col("sys_flag") & FLAG_COMMIT_OFFSET) != 0
    carried = pull.filter(carries).select(*GROUP_QUEUE, "commit_offset", pl.col("request_ts").alias("ts"))
    asked = changes
    for frame, name in ((updates, "_commit"), (carried, "_carried")):
        sent = frame.rename({"commit_offset": "new_offset"}).filter(pl.col("new_offset").is_not_null())
        asked = as_of(asked, sent, NEW_OFFSET, "to_ts", {name: "ts"}, right_at="ts")
    near = pl.col("_commit") >= BEGAN - pl.duration(seconds=reach_s)
    hit = near.fill_null(False) | (pl.col("_carried") >= pl.col("from_ts")).fill_null(False)
    recorded = pl.col("consumer_group").is_in(sorted(groups_with_commits))
    committed = pl.when(hit).then(True).when(recorded).then(False)
    return asked.with_columns(committed.alias("committed")).drop("_commit", "_carried")
