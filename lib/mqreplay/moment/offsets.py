"""Committed offsets and ends of queues over time: what set them.

It is the one source of both: for an instant (`at`, `ready`, figures), for suppositions, and for the nights of pages.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Final

import polars as pl

from mqreplay.core.pull_check import FLAG_COMMIT_OFFSET
from mqreplay.core.topic_route import MASTER_ID
from mqreplay.evidence.brokers.broker_descriptions import has_store_plug_in
from mqreplay.evidence.members.polled_night import ends_of_groups
from mqreplay.evidence.offsets.queue_ends import polled_ends, pulled_ends
from mqreplay.evidence.offsets.queue_events import accepted_commits
from mqreplay.moment.instant import Recorded
from mqreplay.words.keys import BROKER, GROUP_QUEUE, QUEUE
from mqreplay.words.time_span import ONE_DAY

Read = Callable[[str, str], pl.LazyFrame]  # a table and the column of its instant -> its rows of a time
COPIES: Final = ("silver.offset_checkpoint", "silver.offset_change")
ANSWER: Final = ("kind", "commit_offset", "ts", "error", "response_code", "remark")  # of a commit


def known_sum(column: str) -> pl.Expr:
    """Return the sum of a column; null if one of its values is not known."""
    return pl.when(pl.col(column).is_not_null().all()).then(pl.col(column).sum()).alias(column)


def offset_events(read: Read) -> pl.LazyFrame:
    """Return what set the offsets of groups in their masters: GROUP_QUEUE, committed, committed_ts and committed_by.

    A commit sets the offset, also a lower one (ConsumerOffsetManager#commitOffset); a pull that carries one does, too
    (PullMessageProcessor#processRequest). ``committed`` is null if a copy shows that the offset was removed. Of events
    of one instant, the last one by ``committed_by`` and ``committed`` counts.
    """
    is_master = pl.col("broker_id").fill_null(MASTER_ID) == MASTER_ID
    is_masters_copy = (pl.col("broker_id") == MASTER_ID) & pl.col("client_id").is_null()
    commits = accepted_commits(
        read("silver.offset_commit", "ts").filter(is_master).select(*GROUP_QUEUE, *ANSWER).collect()
    )
    carries = (pl.col("sys_flag") & FLAG_COMMIT_OFFSET) == FLAG_COMMIT_OFFSET
    pulls = read("silver.pull", "request_ts").filter(carries & is_master & (pl.col("commit_offset") > 0))
    copies = [_events(read(name, "to_ts").filter(is_masters_copy), "new_offset", "to_ts", "copy") for name in COPIES]
    return pl.concat(
        [
            *copies,
            _events(commits.lazy(), "commit_offset", "ts", "commit"),
            _events(pulls, "commit_offset", "request_ts", "pull"),
        ]
    )


def _events(rows: pl.LazyFrame, offset: str, ts: str, by: str) -> pl.LazyFrame:
    return rows.select(
        *GROUP_QUEUE,
        pl.col(offset).alias("committed"),
        pl.col(ts).alias("committed_ts"),
        pl.lit(by).alias("committed_by"),
    )


def commits_before(recorded: Recorded, at: dt.datetime, group: str | None = None) -> pl.LazyFrame:
    """Return the events up to an instant: of a group, or of all."""
    is_wanted = pl.lit(value=True) if group is None else pl.col("consumer_group") == group

    def read(table: str, ts: str) -> pl.LazyFrame:
        return recorded.before(table, ts, at, None if table in COPIES else ONE_DAY).filter(is_wanted)

    return offset_events(read)


def committed_at(recorded: Recorded, at: dt.datetime) -> pl.LazyFrame:
    """Return the offset of each group and queue in its master, by the last event: the columns of `offset_events`."""
    last = commits_before(recorded, at).sort("committed_ts", "committed_by", "committed")
    return last.group_by(GROUP_QUEUE).last()


def stated_ends(recorded: Recorded, read: Read) -> pl.LazyFrame:
    """Return the ends of queues that masters stated, in polls and answers.

    Columns: broker_name, topic, queue_id, asked_ts, ts, end_offset; see evidence.offsets.queue_ends.

    A plug-in of the store may state another end of its own.
    """
    polled, pull = read("silver.topic_stats", "ts"), read("silver.pull", "response_ts")
    like = pl.DataFrame(schema=polled.collect_schema())
    of_groups = ends_of_groups(read("silver.consume_stats", "ts").collect(), like)
    described = recorded.before("silver.broker", "ts", recorded.last)
    plug_ins = described.filter(has_store_plug_in()).select(BROKER).unique()
    is_read = (pl.col("queue_offset") < pl.col("max_offset")).fill_null(value=True)
    by_store = pl.concat([pull.filter(~is_read), pull.filter(is_read).join(plug_ins, BROKER, how="anti")])
    stated = pl.concat([polled_ends(polled), polled_ends(of_groups.lazy()), pulled_ends(by_store)])
    return stated.select(*QUEUE, asked_ts="asked_at", ts="at", end_offset="queue_max_offset")


def ends_at(recorded: Recorded, at: dt.datetime) -> pl.DataFrame:
    """Return the last known end of each queue: broker_name, topic, queue_id, end_offset, end_ts.

    An answer that comes after a later request may be the older one: of these the highest end counts.
    """
    stated = stated_ends(recorded, lambda table, ts: recorded.before(table, ts, at, ONE_DAY)).rename({"ts": "end_ts"})
    newest = stated.filter(pl.col("end_ts") >= pl.col("asked_ts").max().over(QUEUE))
    return newest.sort("end_offset", "end_ts").group_by(QUEUE).last().drop("asked_ts").collect()


def ends_between(recorded: Recorded, since: dt.datetime, until: dt.datetime, topic: str | None = None) -> pl.DataFrame:
    """Return the ends of queues that masters stated after ``since``, up to ``until``: `stated_ends`; of one topic, or
    of all."""
    is_wanted = pl.lit(value=True) if topic is None else pl.col("topic") == topic
    stated = stated_ends(recorded, lambda table, ts: recorded.between(table, ts, since, until))
    return stated.filter(is_wanted).collect()
