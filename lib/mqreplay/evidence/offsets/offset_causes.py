"""Causes of offset changes: the resets, skipping pulls and commits that agree with a change of a broker's file.

Changes are rows of silver.offset_change. Each rule asks whether any row of evidence of the same group and queue meets
some bounds. Sorted lookups answer that: to pair the changes of a busy queue with all its commits or resets takes too
much memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np
import polars as pl

from mqreplay.core.consumer_offset_manager import QUERY_NOT_FOUND
from mqreplay.core.pull_answer import SUCCESS
from mqreplay.core.pull_check import FLAG_COMMIT_OFFSET
from mqreplay.evidence.arrays.distinct import key_codes
from mqreplay.evidence.arrays.frame_arrays import INT64_MAX, NOWHERE, Numbers, numbers, runs
from mqreplay.evidence.arrays.nearest import as_of, nearest
from mqreplay.evidence.frames import with_flag
from mqreplay.evidence.offsets.queue_events import REFUSED_COMMIT
from mqreplay.words.keys import CLIENT_QUEUE, GROUP_QUEUE

COPIED = "copied_from_master"  # SlaveSynchronize#syncConsumerOffset
NOT_OF_MASTERS = ("stale", "vanished")  # kinds with another cause on a slave, or without an offset
NEW_OFFSET = [*GROUP_QUEUE, "new_offset"]
BEGAN = pl.coalesce("from_ts", "to_ts")
OFFSET_MOVED = 21  # ResponseCode.PULL_OFFSET_MOVED
PUSHED, ANSWERED = "silver.server_request", "silver.pull"
MASTER_SAVES_S = 15  # a master saves offsets every 5 s (flushConsumerOffsetInterval); clocks and a late save
_FELL = pl.col("new_offset") < pl.col("previous_offset")


def offset_resets(server_request: pl.DataFrame, pull: pl.DataFrame) -> pl.DataFrame:
    """Return the resets as clients received them.

    Columns: consumer_group, topic, broker_name, queue_id, asked, delivered_to, offset, since, ts, table_name,
    record_id.

    ``offset`` (messages) is where the reset leads, ``asked`` where the client was that pulled, and ``delivered_to`` up
    to where the group had received messages; both are null of pushes. A pull that waited is answered later than the
    offset was set: ``since`` is the instant of its request.

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
            *(reset(name) for name in GROUP_QUEUE[1:]),
            pl.lit(None, pl.Int64).alias("asked"),
            pl.lit(None, pl.Int64).alias("delivered_to"),
            reset("offset"),
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
    moved = pull.filter((pl.col("response_code") == OFFSET_MOVED) & in_range)
    delivered = delivered_offsets(pull.join(moved.select(GROUP_QUEUE).unique(), GROUP_QUEUE, how="semi"))
    known = moved.with_columns(pl.coalesce("response_ts", "request_ts").alias("answer_ts"))
    return as_of(known, delivered, GROUP_QUEUE, "answer_ts", {"delivered_to": "delivered_to"}, right_at="at").select(
        *GROUP_QUEUE,
        pl.col("queue_offset").alias("asked"),
        "delivered_to",
        pl.col("next_begin_offset").alias("offset"),
        pl.col("request_ts").alias("since"),
        pl.col("answer_ts").alias("ts"),
        pl.lit(ANSWERED).alias("table_name"),
        "record_id",
    )


def with_reset(changes: pl.DataFrame, resets: pl.DataFrame, reach_s: int) -> pl.DataFrame:
    """Add ``reset``: whether a reset led to just this offset, or further back and the group went on from there.

    ``resets`` is offset_resets' frame. A reset shows in a file within ``reach_s`` seconds: a client of 4.9 waits 10 s
    and more before it commits where the reset leads (MQClientInstance#resetOffset).
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
    # The group was reset further back, and consumed up to this offset before the copy.
    further_back = _FELL & (_least_reset(changes, resets, reach_s) <= pl.col("new_offset"))
    reset = to_this.fill_null(False) | further_back.fill_null(False)
    return asked.with_columns(reset.alias("reset")).drop("_latest", "_reset", "_answered")


def with_awaited_reset(changes: pl.DataFrame, resets: pl.DataFrame) -> pl.DataFrame:
    """Return the changes; ``reset`` is true, too, where a 5.x broker set an offset that a later pull was answered with.

    ConsumerOffsetManager#assignResetOffset sets the offset at once, and the broker ignores commits of the queue until
    the next pull has been answered with it (queryThenEraseResetOffset). That pull may come minutes later, when the
    group is started again. So if the last change of the master's file before that pull leads to just this offset, the
    reset made it. ``changes`` has the columns of `with_reset` and `with_committed`.
    """
    answered = resets.filter((pl.col("table_name") == ANSWERED) & pl.col("offset").is_not_null())
    of_masters = changes.filter(pl.col("broker_id") == 0)
    last = as_of(
        answered.select(*GROUP_QUEUE, "offset", "since"),
        of_masters,
        GROUP_QUEUE,
        "since",
        {"to_ts": "to_ts", "new_offset": "new_offset"},
        right_at="to_ts",
    )
    made = last.filter(pl.col("new_offset") == pl.col("offset"))
    made = made.select(*NEW_OFFSET, "to_ts", pl.lit(0, pl.Int64).alias("broker_id")).unique()
    asked = with_flag(changes, made, [*NEW_OFFSET, "to_ts", "broker_id"], "_made")
    # A group may be reset to where its own commits had brought it: such a rise is not of the reset.
    by_reset = pl.col("_made") & (_FELL | ~pl.col("committed")).fill_null(False)
    return asked.with_columns((pl.col("reset") | by_reset).alias("reset")).drop("_made")


def _least_reset(changes: pl.DataFrame, resets: pl.DataFrame, reach_s: int) -> pl.Series:
    """Return, for each change, the least offset that a reset led its queue to just before or between its two copies.

    A broker sets an offset before it answers, so the answers between the two copies count; a client commits it up to
    ``reach_s`` seconds after the push. MOST where there was no reset.
    """
    pushed = resets.filter(pl.col("table_name") == PUSHED)
    reach = pl.duration(seconds=reach_s)
    return pl.Series(np.minimum(_least_between(changes, resets, BEGAN), _least_between(changes, pushed, BEGAN - reach)))


def _least_between(changes: pl.DataFrame, resets: pl.DataFrame, since: pl.Expr) -> Numbers:
    known = resets.filter(pl.col("offset").is_not_null()).sort("ts")
    key, of_reset = key_codes(GROUP_QUEUE, changes, known)
    order = np.argsort(of_reset, kind="stable")
    of_reset, at, offset = of_reset[order], *(numbers(known[name].to_arrow())[0][order] for name in ("ts", "offset"))
    began, ended = (numbers(changes.select(bound).to_series().to_arrow())[0] for bound in (since, "to_ts"))
    first = nearest(key, began, of_reset, at, side="after")
    last = nearest(key, ended, of_reset, at)
    some = (first != NOWHERE) & (first <= last)
    # Every second run is a range, the others lie between them. A range may end with the last reset: one row is added.
    bounds = np.column_stack([first[some], last[some] + 1]).ravel()
    least = np.full(len(key), INT64_MAX)
    least[some] = runs(np.minimum, np.append(offset, INT64_MAX), bounds)[::2]
    return least


def with_extent(changes: pl.DataFrame, resets: pl.DataFrame, pull: pl.DataFrame, reach_s: int) -> pl.DataFrame:
    """Add ``delivered_to`` and ``reset_to``: up to where the group had messages by then, and where a reset led it.

    A client is ahead of the offset that it commits. ``delivered_to`` is null where no pull was answered with messages,
    ``reset_to`` where there was no reset (see `with_reset`).
    """
    known = as_of(
        changes, delivered_offsets(pull), GROUP_QUEUE, "to_ts", {"delivered_to": "delivered_to"}, right_at="at"
    )
    least = _least_reset(changes, resets, reach_s)
    return known.with_columns(least.set(least == INT64_MAX, None).alias("reset_to"))


def delivered_offsets(pull: pl.DataFrame) -> pl.DataFrame:
    """Return up to where the group had received messages at each instant, oldest first.

    Columns: consumer_group, topic, broker_name, queue_id, at, delivered_to.
    """
    delivered = pull.filter((pl.col("response_code") == SUCCESS) & pl.col("next_begin_offset").is_not_null()).select(
        *GROUP_QUEUE, pl.coalesce("response_ts", "request_ts").alias("at"), delivered_to=pl.col("next_begin_offset")
    )
    return delivered.sort("at").with_columns(pl.col("delivered_to").cum_max().over(GROUP_QUEUE))


def with_skip(changes: pl.DataFrame, skips: pl.DataFrame, reach_s: int) -> pl.DataFrame:
    """Add ``skipped``: whether a pull began at this offset, past messages that the group did not receive.

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


def with_reset_ahead(changes: pl.DataFrame, resets: pl.DataFrame, skips: pl.DataFrame, reach_s: int) -> pl.DataFrame:
    """Return the changes; ``reset`` is true, too, where an offset passed one that a reset ahead led to.

    Before the copy was made the group had gone on from there. A pull that began just there, past all that the group
    received (``skips``), proves that the reset was carried out.
    """
    reach = pl.duration(seconds=reach_s)
    ahead = skips.rename({"skipped_to": "offset"}).join(
        resets.select(*GROUP_QUEUE, "offset", sent_ts="ts"), [*GROUP_QUEUE, "offset"]
    )
    made = ahead.filter(pl.col("ts").is_between(pl.col("sent_ts") - reach, pl.col("sent_ts") + reach))
    passed = _with_passed(changes, made, reach_s)
    return passed.with_columns(pl.col("reset") | pl.col("passed")).drop("passed")


def _with_passed(changes: pl.DataFrame, ahead: pl.DataFrame, reach_s: int) -> pl.DataFrame:
    """Add ``passed``: whether the offset passed the one that it was moved ahead to (``offset`` of ``ahead``, at ts)."""
    last = ahead.group_by(*GROUP_QUEUE, "ts").agg(pl.col("offset").max()).with_columns(at="ts")
    asked = changes
    for name in ("at", "offset"):
        asked = as_of(asked, last, GROUP_QUEUE, "to_ts", {f"_{name}": name}, right_at="ts")
    # Below its end before, not below it afterwards: this is the change in which it was passed.
    passed = (pl.col("previous_offset") < pl.col("_offset")) & (pl.col("_offset") <= pl.col("new_offset"))
    in_reach = pl.col("_at") >= BEGAN - pl.duration(seconds=reach_s)
    return asked.with_columns((in_reach & passed).fill_null(False).alias("passed")).drop("_at", "_offset")


def with_refused_query(
    changes: pl.DataFrame, offset_commit: pl.DataFrame, skips: pl.DataFrame, reach_s: int
) -> pl.DataFrame:
    """Add ``refused_query``: whether a client began past messages after a broker refused its QUERY_CONSUMER_OFFSET.

    A client of 4.x takes every error for no stored offset (RemoteBrokerOffsetStore#readOffset). ``skipped`` is then
    true, too, where the group had gone on before the copy was made.
    """
    queries = offset_commit.filter((pl.col("kind") == "QUERY") & pl.col("response_code").is_not_null()).select(
        *GROUP_QUEUE, pl.coalesce("response_ts", "ts").alias("at"), "response_code"
    )
    asked = as_of(skips, queries, GROUP_QUEUE, "ts", {"code": "response_code"}, right_at="at")
    refused = asked.filter(~pl.col("code").is_in([SUCCESS, QUERY_NOT_FOUND])).rename({"skipped_to": "offset"})
    passed = _with_passed(changes, refused, reach_s)
    return passed.with_columns(pl.col("skipped") | pl.col("passed")).rename({"passed": "refused_query"})


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
    evidence: over a longer time, one of them committed each offset that the group passed. A commit by a client that
    never pulled the queue, while others did, is an administrator's (mqadmin resetOffsetByTime of a group that is down).

    A commit shows in the file of the broker that it was sent to: of a master within MASTER_SAVES_S seconds. Where that
    broker is not known, a slave may have copied it within ``reach_s`` seconds.
    """
    updates = offset_commit.filter((pl.col("kind") == "UPDATE") & ~REFUSED_COMMIT).select(
        *CLIENT_QUEUE, "broker_id", "commit_offset", "ts"
    )
    pullers = pull.filter(pl.col("opaque").is_not_null()).select(CLIENT_QUEUE).unique()
    others = updates.select(CLIENT_QUEUE).unique().join(pullers, CLIENT_QUEUE, how="anti")
    outsiders = others.join(pullers.select(GROUP_QUEUE).unique(), GROUP_QUEUE, how="semi")
    updates = updates.join(outsiders, CLIENT_QUEUE, how="anti").drop("client_id")
    anywhere = updates.filter(pl.col("broker_id").is_null())
    carries = (pl.col("sys_flag") & FLAG_COMMIT_OFFSET) != 0
    carried = pull.filter(carries).select(*GROUP_QUEUE, "commit_offset", pl.col("request_ts").alias("ts"))
    asked = changes
    for frame, by, name in (
        (updates, [*NEW_OFFSET, "broker_id"], "_commit"),
        (anywhere, NEW_OFFSET, "_anywhere"),
        (carried, NEW_OFFSET, "_carried"),
    ):
        sent = frame.rename({"commit_offset": "new_offset"}).filter(pl.col("new_offset").is_not_null())
        asked = as_of(asked, sent, by, "to_ts", {name: "ts"}, right_at="ts")
    saved_s = pl.when(pl.col("broker_id") == 0).then(min(reach_s, MASTER_SAVES_S)).otherwise(reach_s)
    near = pl.max_horizontal("_commit", "_anywhere") >= BEGAN - pl.duration(seconds=saved_s)
    hit = near.fill_null(False) | (pl.col("_carried") >= pl.col("from_ts")).fill_null(False)
    recorded = pl.col("consumer_group").is_in(sorted(groups_with_commits))
    committed = pl.when(hit).then(True).when(recorded).then(False)
    return asked.with_columns(committed.alias("committed")).drop("_commit", "_anywhere", "_carried")


def has_master(changes: pl.DataFrame) -> pl.Series:
    """Return for each change whether the file of a master shows an offset of its queue and group, too."""
    return changes.select((pl.col("broker_id") == 0).any().over(GROUP_QUEUE)).to_series()


def with_causes_of_masters(breaks: pl.DataFrame, reach_s: int) -> pl.DataFrame:
    """Return the breaks; the row of a slave has the cause of the master's row that leads to the same offset.

    Where a master has no such row within ``reach_s`` seconds, a rewind that the slave copied has the cause of the
    master's rewind: between two copies its offset rises. ``breaks`` are rows of gold.offset_continuity, all brokers'.
    """
    numbered = breaks.with_row_index("_row")
    of_slave = (pl.col("broker_id") > 0) & ~pl.col("kind").is_in(NOT_OF_MASTERS)
    slaves, masters = numbered.filter(of_slave), numbered.filter(pl.col("broker_id") == 0)
    if slaves.is_empty() or masters.is_empty():
        return breaks
    same = _causes_of_masters(slaves, masters.filter(pl.col("new_offset").is_not_null()), NEW_OFFSET, reach_s)
    copied = slaves.filter((pl.col("cause") == COPIED) & (pl.col("kind") == "rewind"))
    between = _causes_of_masters(copied, masters.filter(pl.col("kind") == "rewind"), GROUP_QUEUE, reach_s)
    causes = pl.concat([same, between]).unique("_row", keep="first", maintain_order=True)
    named = numbered.join(causes, "_row", how="left", maintain_order="left")
    return named.with_columns(pl.coalesce("of_master", "cause").alias("cause")).select(breaks.columns)


def _causes_of_masters(slaves: pl.DataFrame, masters: pl.DataFrame, by: Sequence[str], reach_s: int) -> pl.DataFrame:
    """Return for each slave's row the cause (``of_master``) of the last row of a master that it can have copied.

    Columns: _row, of_master.
    """
    latest = masters.sort("to_ts", "_row").unique([*by, "from_ts"], keep="last")
    found = as_of(slaves, latest, by, "to_ts", {"began": "from_ts"}, right_at="from_ts")
    met = found.join(
        latest.select(*by, pl.col("from_ts").alias("began"), pl.col("to_ts").alias("ended"), of_master="cause"),
        [*by, "began"],
    )
    in_reach = pl.col("ended") >= pl.col("from_ts") - pl.duration(seconds=reach_s)
    return met.filter(in_reach).select("_row", "of_master")
