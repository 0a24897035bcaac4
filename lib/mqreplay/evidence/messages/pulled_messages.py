"""Messages that groups received and passed, by the answers to their pulls, for topics whose sends were recorded.

An answer FOUND delivers the offsets from the pull's offset to the next one (DefaultPullMessageResultHandler), without
those that the broker filtered. Ranges that touch are one. Pulls of retry topics show what became of messages that
groups sent back.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from mqreplay.core.get_message import MESSAGE_WAS_REMOVING, OFFSET_FOUND_NULL, OFFSET_TOO_SMALL
from mqreplay.core.pull_answer import SUCCESS
from mqreplay.core.pull_check import FLAG_COMMIT_OFFSET
from mqreplay.core.retry_topic import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX
from mqreplay.evidence.frames import first_of, with_flag
from mqreplay.evidence.intervals import with_run, with_state
from mqreplay.evidence.messages.audit_scope import last_committed
from mqreplay.words.keys import CLIENT_QUEUE, GROUP, GROUP_QUEUE

# With these a broker moves a client past offsets whose messages it no longer has (DefaultMessageStore#getMessage).
MOVED_PAST: Final = (OFFSET_TOO_SMALL, MESSAGE_WAS_REMOVING, OFFSET_FOUND_NULL)
RANGE: Final = ("from_offset", "to_offset")  # to_offset is not in the range
PULLED_MESSAGE: Final = ("consumer_group", "topic", "msg_id")


@dataclass(frozen=True)
class PulledMessages:
    """The messages that groups received: frames by GROUP_QUEUE, of whole queues.

    ``received``: ranges of offsets in answers; ``is_whole``: no message of the range is missing in them.
    ``again``: ranges that a further pull asked for, and received or may have received. ``gone``: ranges past which a
    broker moved the group, because it no longer had the messages.
    ``queues``: first_offset, that of the first answer; committed, the last committed offset; furthest, the largest
    one that a client committed; unanswered_from, the least offset of a pull without a recorded answer; has_unseen:
    clients committed of which no pull is recorded.
    """

    received: pl.DataFrame
    again: pl.DataFrame
    gone: pl.DataFrame
    queues: pl.DataFrame


def pulled_messages_of_shard(
    pull: pl.DataFrame, offset_commit: pl.DataFrame, offset_change: pl.DataFrame, topics: Collection[str]
) -> PulledMessages:
    """Return what the groups of some whole queues received of the ``topics``, and of their retry topics."""
    topic = pl.col("topic")
    is_wanted = (
        topic.is_in(sorted(topics)) | topic.str.starts_with(RETRY_GROUP_TOPIC_PREFIX) if topics else pl.lit(False)
    )
    pulls = pull.lazy().filter(is_wanted).select(_PULL).collect()
    commits = offset_commit.filter(is_wanted & (pl.col("kind") == "UPDATE") & pl.col("error").is_null())
    return _pulled_messages(pulls, commits, offset_change.filter(is_wanted))


_PULL: Final = (
    *(*CLIENT_QUEUE, "queue_offset", "next_begin_offset", "response_code", "remark", "error", "msg_count"),
    *("sys_flag", "commit_offset"),
)


def _pulled_messages(pulls: pl.DataFrame, commits: pl.DataFrame, offset_change: pl.DataFrame) -> PulledMessages:
    asked, after = pl.col("queue_offset"), pl.col("next_begin_offset")
    answers = pulls.filter(after > asked).select(
        *(*GROUP_QUEUE, asked.alias("from_offset"), after.alias("to_offset"), "response_code", "remark"),
        (pl.col("msg_count") == after - asked).fill_null(value=False).alias("is_whole"),
    )
    found = answers.filter(pl.col("response_code") == SUCCESS)
    open_pulls = pulls.filter(pl.col("response_code").is_null() & pl.col("error").is_null())
    may_be_again = open_pulls.select(*GROUP_QUEUE, asked.alias("from_offset"), (asked + 1).alias("to_offset"))
    with_ends = _with_ends_before(found)
    received = _merged(with_ends)
    overlaps = with_ends.filter(pl.col("from_offset") < pl.col("end_before")).with_columns(
        pl.min_horizontal("to_offset", "end_before").alias("to_offset")
    )
    return PulledMessages(
        received.select(*GROUP_QUEUE, *RANGE, "is_whole"),
        merged_ranges(pl.concat([overlaps.select(may_be_again.columns), may_be_again])),
        merged_ranges(
            answers.filter((pl.col("response_code") != SUCCESS) & pl.col("remark").is_in(MOVED_PAST)).select(
                may_be_again.columns
            )
        ),
        _queues(received, open_pulls, pulls, commits, offset_change),
    )


def _queues(
    received: pl.DataFrame,
    open_pulls: pl.DataFrame,
    pulls: pl.DataFrame,
    commits: pl.DataFrame,
    offset_change: pl.DataFrame,
) -> pl.DataFrame:
    with_commit = pulls.filter(pl.col("sys_flag").fill_null(0) & FLAG_COMMIT_OFFSET != 0)
    by_clients = pl.concat([each.select(*CLIENT_QUEUE, "commit_offset") for each in (commits, with_commit)])
    furthest = by_clients.group_by(GROUP_QUEUE).agg(pl.col("commit_offset").max().alias("furthest"))
    committers = with_flag(by_clients.select(CLIENT_QUEUE).unique(), pulls, CLIENT_QUEUE, "pulls")
    unseen = committers.group_by(GROUP_QUEUE).agg((~pl.col("pulls")).any().alias("has_unseen"))
    return (
        received.group_by(GROUP_QUEUE)
        .agg(pl.col("from_offset").min().alias("first_offset"))
        .join(last_committed(commits, offset_change), GROUP_QUEUE, how="left")
        .join(furthest, GROUP_QUEUE, how="left")
        .join(
            open_pulls.group_by(GROUP_QUEUE).agg(pl.col("queue_offset").min().alias("unanswered_from")),
            GROUP_QUEUE,
            how="left",
        )
        .join(unseen, GROUP_QUEUE, how="left")
        .with_columns(pl.col("has_unseen").fill_null(value=True))
    )


def merged_ranges(ranges: pl.DataFrame) -> pl.DataFrame:
    """Return the ranges with those that overlap or touch as one: GROUP_QUEUE, RANGE."""
    whole = ranges.with_columns(pl.lit(value=True).alias("is_whole"))
    return _merged(_with_ends_before(whole)).select(*GROUP_QUEUE, *RANGE)


def _with_ends_before(ranges: pl.DataFrame) -> pl.DataFrame:
    """Return the ranges in order, with end_before: the largest end of the ranges before it."""
    return ranges.sort(*GROUP_QUEUE, *RANGE).with_columns(
        pl.col("to_offset").cum_max().shift(1).over(GROUP_QUEUE).alias("end_before")
    )


def _merged(ranges: pl.DataFrame) -> pl.DataFrame:
    ranges = with_run(ranges, pl.col("from_offset") > pl.col("end_before"), GROUP_QUEUE)
    whole = (pl.col("from_offset").min(), pl.col("to_offset").max(), pl.col("is_whole").all())
    return ranges.group_by(*GROUP_QUEUE, "run").agg(*whole)


def within(messages: pl.DataFrame, ranges: pl.DataFrame, name: str, flags: Sequence[str] = ()) -> pl.DataFrame:
    """Add ``name`` to messages (GROUP_QUEUE, queue_offset): a range has the offset; and ``flags`` of that range.

    ``ranges`` are merged: none overlap. The order of the messages may change.
    """
    begins = ranges.select(*GROUP_QUEUE, *RANGE, *flags).sort("from_offset")
    met = with_state(messages, begins, GROUP_QUEUE, "queue_offset", "from_offset")
    is_in = (pl.col("queue_offset") < pl.col("to_offset")).fill_null(value=False)
    added = [(is_in & pl.col(flag).fill_null(value=False)).alias(flag) for flag in flags]
    return met.with_columns(is_in.alias(name), *added).drop(RANGE)


def retry_fates(retried: pl.DataFrame, pulled: PulledMessages) -> pl.DataFrame:
    """Return consumer_group, topic, msg_id and is_dead of each message that was sent back.

    ``retried`` are rows of gold.retried_message. ``is_dead``: the last request made it a dead letter; null: not known.
    A message is known to be consumed by a retry if the group received as many messages of its retry topic as went
    there, and committed past all of them: a retry that failed would have been sent back, too.
    """
    target = pl.col("expected_topic")
    last = retried.sort("sent_ts", "record_id").group_by(PULLED_MESSAGE).agg(target.last())
    went = (
        retried.filter(target.str.starts_with(RETRY_GROUP_TOPIC_PREFIX)).group_by(GROUP).agg(pl.len().alias("retries"))
    )
    of_retries = pulled.received.filter(pl.col("topic") == RETRY_GROUP_TOPIC_PREFIX + pl.col(GROUP))
    width = pl.col("to_offset") - pl.col("from_offset")
    is_passed = pl.col("to_offset") <= pl.max_horizontal("committed", "furthest")
    got = (
        of_retries.join(pulled.queues, GROUP_QUEUE)
        .group_by(GROUP)
        .agg(width.sum().alias("received"), is_passed.fill_null(value=False).all().alias("is_passed"))
    )
    known = last.join(went, GROUP, how="left").join(got, GROUP, how="left")
    is_done = pl.col("is_passed") & (pl.col("received") >= pl.col("retries"))
    is_dead = first_of((target.str.starts_with(DLQ_GROUP_TOPIC_PREFIX), True), (target.is_not_null() & is_done, False))
    return known.select(*PULLED_MESSAGE, is_dead.alias("is_dead"))
