"""The queues of groups at an instant: owner, committed offset, end, last suggestion, lock."""

from __future__ import annotations

import datetime as dt
from typing import Final

import polars as pl

from mqreplay.core.pull_check import FLAG_COMMIT_OFFSET
from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.core.topic_route import MASTER_ID
from mqreplay.decisions.queue_owner import LOCKED_S, lock_intervals
from mqreplay.evidence.arrays.keys import KEY, QUEUE
from mqreplay.evidence.brokers.broker_descriptions import has_store_plug_in
from mqreplay.evidence.members.membership import MEMBER
from mqreplay.evidence.offsets.queue_events import accepted_commits
from mqreplay.moment.instant import Recorded
from mqreplay.moment.members import goes_on

GROUP_QUEUE: Final = ["consumer_group", *QUEUE]
COLUMNS: Final = (
    *("consumer_group", "topic", "broker_name", "queue_id", "owners", "owned_since", "owned_by"),
    *("committed", "committed_ts", "committed_by", "end_offset", "end_ts", "lag"),
    *("suggested_broker_id", "suggested_ts", "locked_by"),
)
OF_COMMIT: Final = ("kind", "commit_offset", "ts", "error", "response_code", "remark")
LOCKS_REACH: Final = dt.timedelta(seconds=2 * LOCKED_S)


def queues_at(recorded: Recorded, at: dt.datetime, group: str | None = None) -> pl.DataFrame:
    """Return one row for each queue that a group held, committed or pulled: COLUMNS.

    ``owners``: the clients that held it, mostly one; ``owned_by``: the evidence for it (gold.queue_owner.source).
    ``committed``: the offset in the master, by the last commit, pull with a commit, or copy of its offsets that was
    recorded before ``at``; ``committed_by`` says which. ``end_offset``: the queue's end in the last answer of its
    master. ``lag`` in messages; null where one of them is not known. ``locked_by``: the client whose lock is valid.
    """
    owners = _of(owners_at(recorded, at), group)
    committed = _of(committed_at(recorded, at), group)
    suggested = _of(suggestions_at(recorded, at), group)
    locked = _of(locks_at(recorded, at), group)
    known = pl.concat([frame.select(GROUP_QUEUE) for frame in (owners, committed, suggested)]).unique()
    joined = known
    for frame in (owners, committed, suggested, locked):
        joined = joined.join(frame, GROUP_QUEUE, how="left")
    ended = joined.join(ends_at(recorded, at), QUEUE, how="left")
    lag = (pl.col("end_offset") - pl.col("committed")).clip(0)
    return ended.with_columns(lag.alias("lag"), pl.col("owners").fill_null([])).select(COLUMNS).sort(GROUP_QUEUE)


def _of(rows: pl.LazyFrame, group: str | None) -> pl.DataFrame:
    return (rows if group is None else rows.filter(pl.col("consumer_group") == group)).collect()


def owners_at(recorded: Recorded, at: dt.datetime) -> pl.LazyFrame:
    """Return the owners of each queue: consumer_group, broker_name, topic, queue_id, owners, owned_since, owned_by."""
    begun = recorded.begun("gold.queue_owner", at)
    # A client that goes on after the recording still holds what it held at its last sign of life.
    sessions = recorded.begun("gold.member", at).filter(goes_on(recorded)).select(*MEMBER, "to_ts")
    going_on = begun.filter(pl.col("to_ts") <= at).join(sessions, [*MEMBER, "to_ts"], how="semi")
    held = pl.concat([begun.filter((pl.col("to_ts") > at) | (pl.col("to_ts") >= recorded.last)), going_on])
    return held.group_by(GROUP_QUEUE).agg(
        pl.col("client_id").unique().sort().alias("owners"),
        pl.col("from_ts").min().alias("owned_since"),
        pl.col("source").min().alias("owned_by"),
    )


def committed_at(recorded: Recorded, at: dt.datetime) -> pl.LazyFrame:
    """Return the offset of each group and queue in its master: committed, committed_ts and committed_by.

    A commit sets the offset, also a lower one (ConsumerOffsetManager#commitOffset); a pull that carries one does, too
    (PullMessageProcessor#processRequest). ``committed`` is null if a copy shows that the offset was removed.
    """
    last = commits_before(recorded, at).sort("committed_ts", "committed_by", "committed")
    return last.group_by(GROUP_QUEUE).last()


def commits_before(recorded: Recorded, at: dt.datetime, group: str | None = None) -> pl.LazyFrame:
    """Return what set the offsets of a group, or of all, in their masters: GROUP_QUEUE and the columns of
    `committed_at`."""
    of_group = pl.lit(value=True) if group is None else pl.col("consumer_group") == group
    changes = recorded.before("silver.offset_change", "to_ts", at).filter(of_group)
    kept = recorded.before("silver.offset_checkpoint", "to_ts", at).filter(of_group)
    of_copies = [
        frame.select(*GROUP_QUEUE, "broker_id", "client_id", "new_offset", "to_ts") for frame in (kept, changes)
    ]
    copied = pl.concat(of_copies).filter((pl.col("broker_id") == MASTER_ID) & pl.col("client_id").is_null())
    reach = dt.timedelta(days=1)
    of_master = pl.col("broker_id").fill_null(MASTER_ID) == MASTER_ID
    sent = recorded.before("silver.offset_commit", "ts", at, reach).filter(of_master & of_group)
    commits = accepted_commits(sent.select(*GROUP_QUEUE, *OF_COMMIT).collect()).lazy()
    carries = (pl.col("sys_flag") & FLAG_COMMIT_OFFSET) == FLAG_COMMIT_OFFSET
    pulls = recorded.before("silver.pull", "request_ts", at, reach).filter(
        carries & of_master & of_group & (pl.col("commit_offset") > 0)
    )
    events = [
        _event(copied, "new_offset", "to_ts", "copy"),
        _event(commits, "commit_offset", "ts", "commit"),
        _event(pulls, "commit_offset", "request_ts", "pull"),
    ]
    return pl.concat(events)


def _event(rows: pl.LazyFrame, offset: str, ts: str, by: str) -> pl.LazyFrame:
    return rows.select(
        *GROUP_QUEUE,
        pl.col(offset).alias("committed"),
        pl.col(ts).alias("committed_ts"),
        pl.lit(by).alias("committed_by"),
    )


def ends_at(recorded: Recorded, at: dt.datetime) -> pl.DataFrame:
    """Return the last known end of each queue: broker_name, topic, queue_id, end_offset, end_ts.

    An answer that comes after a later request may be the older one: of these the highest end counts.
    """
    reach = dt.timedelta(days=1)
    stats = recorded.before("silver.topic_stats", "ts", at, reach)
    pull = recorded.before("silver.pull", "response_ts", at, reach)
    stated = stated_ends(recorded, stats, pull).rename({"ts": "end_ts"})
    newest = stated.filter(pl.col("end_ts") >= pl.col("asked_ts").max().over(QUEUE))
    return newest.sort("end_offset", "end_ts").group_by(QUEUE).last().drop("asked_ts").collect()


def stated_ends(recorded: Recorded, topic_stats: pl.LazyFrame, pull: pl.LazyFrame) -> pl.LazyFrame:
    """Return the ends of queues that masters stated, in polls and answers.

    Columns: broker_name, topic, queue_id, asked_ts, ts, end_offset; see evidence.offsets.queue_ends.

    The frames are rows of silver.topic_stats and silver.pull. A plug-in of the store may state another end of its own.
    """
    of_master = pl.col("broker_id") == MASTER_ID
    polled = topic_stats.filter(of_master & pl.col("offsets").is_not_null())
    each = polled.select("ts", "offsets").explode("offsets").unnest("offsets")
    answered = pull.filter(of_master & pl.col("max_offset").is_not_null())
    described = recorded.before("silver.broker", "ts", recorded.last)
    plug_ins = described.filter(has_store_plug_in()).select("broker_name", "broker_id").unique()
    read = (pl.col("queue_offset") < pl.col("max_offset")).fill_null(value=True)
    by_store = answered.filter(read).join(plug_ins, ["broker_name", "broker_id"], how="anti")
    answered = pl.concat([answered.filter(~read), by_store])
    end = pl.col("max_offset").alias("end_offset")
    answered_ts = pl.col("response_ts").alias("ts")
    return pl.concat(
        [
            each.select(*QUEUE, pl.col("ts").alias("asked_ts"), "ts", end),
            answered.select(*QUEUE, pl.col("request_ts").alias("asked_ts"), answered_ts, end),
        ]
    )


def suggestions_at(recorded: Recorded, at: dt.datetime) -> pl.LazyFrame:
    """Return the last broker that an answer suggested for each queue: suggested_broker_id, suggested_ts."""
    answers = recorded.before("silver.pull", "response_ts", at, dt.timedelta(days=1))
    suggested = answers.filter(pl.col("suggest_which_broker_id").is_not_null()).select(
        *GROUP_QUEUE,
        pl.col("suggest_which_broker_id").alias("suggested_broker_id"),
        pl.col("response_ts").alias("suggested_ts"),
    )
    return suggested.sort("suggested_ts", "suggested_broker_id").group_by(GROUP_QUEUE).last()


def locks_at(recorded: Recorded, at: dt.datetime) -> pl.LazyFrame:
    """Return the client whose lock of a queue is valid: locked_by (RebalanceLockManager, 60 s)."""
    lock = recorded.before("silver.lock", "ts", at, LOCKS_REACH).collect()
    day = recorded.begun("gold.member", at).filter(pl.col("to_ts") >= at).select(*MEMBER, "from_ts", "to_ts").collect()
    held = lock_intervals(lock, day).filter((pl.col("from_ts") <= at) & (pl.col("to_ts") > at))
    return held.lazy().group_by(KEY).agg(pl.col("client_id").last().alias("locked_by"))


def without_retry_topics(queues: pl.DataFrame) -> pl.DataFrame:
    """Return the queues of topics that applications send to."""
    return queues.filter(~pl.col("topic").str.starts_with(RETRY))
