"""gold.committed_offset: the offsets that push consumers commit, against what they have finished.

A client commits the smallest offset that it pulled and has not finished, else the one after the last
(ProcessQueue#removeMessage, RemoteBrokerOffsetStore#updateOffset). An offset past an unfinished message loses it if the
client stops. Logs of deliveries show it for commits, running info for the offset in the client's memory: it is read
before the cache (DefaultMQPushConsumerImpl#consumerRunningInfo), and the smallest cached offset only grows.
All messages below a commit had finished: the last of them to finish shows it. Agreement is counted, and not stored.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

import numpy as np
import polars as pl

from mqreplay.decisions.decision import QUEUE_WORDS, VERDICT_WORDS, Decision, by_name
from mqreplay.decisions.verdict import AGREE, DIFFER, UNDETERMINED, decided
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.arrays.distinct import key_codes
from mqreplay.evidence.arrays.frame_arrays import Numbers
from mqreplay.evidence.frames import columns, filled, with_flag
from mqreplay.evidence.intervals import INSTANT, with_state
from mqreplay.evidence.lags.queue_caches import HOOK
from mqreplay.evidence.members.membership import push_consumers
from mqreplay.evidence.members.observed_clients import RUNNING_INFO
from mqreplay.evidence.messages.deliveries import DONE
from mqreplay.evidence.offsets.queue_events import stored_commits
from mqreplay.words.keys import CLIENT_QUEUE, GROUP_QUEUE, MEMBER

COMMIT_SOURCE: Final = "commit"
TYPES: Final[dict[str, pl.DataType]] = {
    "day": pl.Date(),
    **dict.fromkeys(("consumer_group", "topic", "broker_name"), pl.String()),
    **columns("queue_id", "client_id", "ts", "source"),
    **dict.fromkeys(("committed_offset", "unfinished_offset"), pl.Int64()),
    "finished_ts": INSTANT,
    **dict.fromkeys(("judgement", "reason", "consume_record_id", "record_id"), pl.String()),
}
CLOCKS: Final = dt.timedelta(seconds=1)  # the log and the request are of one host, whose clock may be set
# A client sends a message back that takes longer than consumeTimeout, at least 1 minute (ProcessQueue#cleanExpiredMsg).
LEAST_CONSUME_TIMEOUT: Final = dt.timedelta(minutes=1)
NO_LOG: Final = "the log has no delivery of the queue to the client"
BEYOND_LOG: Final = "the log has neither the message before the offset nor the one at it"
BEHIND: Final = (
    "the message at the offset had finished: the log may lack its last delivery, or the client lost the queue"
)


def committed_offsets(offset_commit: pl.DataFrame, consume: pl.DataFrame, consumers: pl.DataFrame) -> pl.DataFrame:
    """Return the verdict on each commit: columns of gold.committed_offset.

    ``offset_commit`` and ``consume`` are one shard, the latter with queue_topic; ``consumers`` is the frame of
    queue_start.consumers.
    """
    updates = stored_commits(offset_commit).filter((pl.col("kind") == "UPDATE") & pl.col("commit_offset").is_not_null())
    named = updates.select("day", *CLIENT_QUEUE, "ts", pl.col("commit_offset").alias("committed_offset"), "record_id")
    log, commits = logged_queues(consume if len(named) else consume.clear(), named)
    with_type = with_flag(commits, push_consumers(consumers), MEMBER, "is_push")
    begun = _with_start(_with_log(with_type, finished_offsets(log)), offset_commit)
    return _judged(begun).with_columns(pl.lit(COMMIT_SOURCE).alias("source")).select(*TYPES)


def _with_log(commits: pl.DataFrame, finished: pl.DataFrame) -> pl.DataFrame:
    """Add what the log says of the last message before each commit, of the slowest one before it, and of the next."""
    before = {"queue_offset": "before", "finished_ts": "before_ts", "deliveries": "before_deliveries"}
    before |= {"place": "before_place"}
    following = {"queue_offset": "next", "last_ts": "next_ts"}
    slowest = {"place": "slowest", "queue_offset": "unfinished_offset", "finished_ts": "finished_ts"}
    slowest |= {"store_ts": "unfinished_store_ts", "is_orderly": "is_orderly", "record_id": "consume_record_id"}
    slowest |= {"logged_ts": "logged_ts"}
    in_order = finished.sort("queue_offset")
    known = commits.with_columns((pl.col("committed_offset") - 1).alias("last")).sort("committed_offset")
    joined = with_state(
        known,
        in_order.select("held", "slowest", *(pl.col(name).alias(named) for name, named in before.items())),
        "held",
        "last",
        "before",
    )
    joined = with_state(
        joined,
        in_order.select("held", *(pl.col(name).alias(named) for name, named in following.items())),
        "held",
        "committed_offset",
        "next",
        after=True,
    )
    return joined.join(finished.select(pl.col(name).alias(named) for name, named in slowest.items()), "slowest", "left")


def _with_start(commits: pl.DataFrame, offset_commit: pl.DataFrame) -> pl.DataFrame:
    """Add started: the offset that the broker last gave the client for the queue (READ_FROM_STORE); null: not known."""
    answers = offset_commit.filter((pl.col("kind") == "QUERY") & pl.col("answer_offset").is_not_null())
    starts = answers.select(*CLIENT_QUEUE, pl.col("ts").alias("started_ts"), pl.col("answer_offset").alias("started"))
    return with_state(commits, starts, CLIENT_QUEUE, "ts", "started_ts")


def _judged(rows: pl.DataFrame) -> pl.DataFrame:
    """Add judgement and reason; unfinished_offset, finished_ts and consume_record_id only of a message it passed."""
    ts, offset = pl.col("ts"), pl.col("committed_offset")
    passed = (pl.col("finished_ts") > ts + CLOCKS).fill_null(value=False)
    is_last = pl.col("before") == pl.col("last")
    of_log = is_last & (pl.col("before_ts") <= ts)
    logged = pl.col("before_place").cast(pl.Int64) - pl.col("slowest").cast(pl.Int64)
    is_whole = (pl.col("before_deliveries") == 1) & (logged == pl.col("before") - pl.col("unfinished_offset"))
    # A log that begins later, and a reset, show an old message as a new one.
    is_complete = (is_whole & (pl.col("logged_ts") <= pl.col("unfinished_store_ts"))).fill_null(value=False)
    is_young = ts - pl.col("unfinished_store_ts") < LEAST_CONSUME_TIMEOUT
    is_short = (pl.col("is_orderly") | is_young).fill_null(value=False)
    late_s = ((pl.col("finished_ts") - ts).dt.total_milliseconds() / 1000).round(1)
    what = pl.format("the commit passed offset {}, which finished {} s later", "unfinished_offset", late_s)
    is_next = pl.col("next") == offset
    behind = is_next & (pl.col("next_ts") < ts - CLOCKS)
    verdict = decided(
        (passed & ~pl.col("is_push"), UNDETERMINED, _but(what, "no heartbeat names a push consumer")),
        (passed & ~of_log, UNDETERMINED, _but(what, "the offset may be that of a reset")),
        (passed & ~is_complete, UNDETERMINED, _but(what, "the log may lack deliveries")),
        (passed & ~is_short, UNDETERMINED, _but(what, "it may have exceeded consumeTimeout")),
        (passed, DIFFER, what),
        (offset <= 0, AGREE, "no message is before it"),
        (behind, UNDETERMINED, BEHIND),
        (is_last, AGREE, "all messages before it had finished"),
        (is_next, AGREE, "it is the lowest offset that had not finished"),
        (pl.col("started") == offset, AGREE, "it is the offset at which the client started"),
        (pl.col("before").is_null() & pl.col("next").is_null(), UNDETERMINED, NO_LOG),
        otherwise=(UNDETERMINED, BEYOND_LOG),
    )
    shown = ("unfinished_offset", "finished_ts", "consume_record_id")
    return rows.with_columns(*(pl.when(passed).then(name).alias(name) for name in shown), **verdict)


def _but(what: pl.Expr, why: str) -> pl.Expr:
    return pl.concat_str(what, pl.lit(f"; {why}"))


def offsets_in_memory(flow: pl.DataFrame, consumers: pl.DataFrame) -> pl.DataFrame:
    """Return the verdict on the offset in a client's memory, where it has unfinished messages.

    Columns: those of gold.committed_offset. ``flow`` are rows of flow_control.client_flow, ``consumers`` the frame of
    queue_start.consumers.
    """
    observed = flow.filter(
        pl.col("source").is_in([RUNNING_INFO, HOOK])
        & pl.col("head_offset").is_not_null()
        & (pl.col("memory_offset") >= 0)
    ).join(push_consumers(consumers), MEMBER, how="semi")
    passed = pl.col("memory_offset") > pl.col("head_offset")
    what = pl.format("the client would commit {}, but has not finished offset {}", "memory_offset", "head_offset")
    verdict = decided(
        (~passed, AGREE, "it is not above the lowest offset in the cache"),
        (pl.col("source") == RUNNING_INFO, DIFFER, what),
        otherwise=(UNDETERMINED, _but(what, "the cache may have been read first")),  # a hook may read it first
    )
    values = {"committed_offset": pl.col("memory_offset"), "unfinished_offset": pl.when(passed).then("head_offset")}
    return filled(observed, TYPES, **values, **verdict)


def stored_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that are stored: offsets past a message that had not finished."""
    return rows.filter(pl.col("unfinished_offset").is_not_null())


def logged_queues(consume: pl.DataFrame, commits: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the deliveries with the numbers ``held`` and ``queue``, and the commits with ``held``.

    ``held`` is equal where CLIENT_QUEUE is, in both frames, and ``queue`` where GROUP_QUEUE is; the topic is that of
    the queue. Numbers are sorted and joined much faster than names. ``consume`` has queue_topic.
    """
    named = consume.with_columns(pl.col("queue_topic").alias("topic")).drop_nulls([*CLIENT_QUEUE, "queue_offset"])
    of_log, of_commits = key_codes(CLIENT_QUEUE, named, commits)
    held, first, place = np.unique(of_log, return_index=True, return_inverse=True)
    (queues,) = key_codes(GROUP_QUEUE, named[first]) if len(held) else (held,)
    log = named.with_columns(_number("held", of_log), _number("queue", queues[place]))
    return log, commits.with_columns(_number("held", of_commits))


def _number(name: str, codes: Numbers) -> pl.Series:
    return pl.Series(name, codes, pl.Int64)


def finished_offsets(log: pl.DataFrame) -> pl.DataFrame:
    """Return the messages that each client received, sorted by held and queue_offset.

    Columns: held; queue_offset; deliveries to this client; is_orderly; store_ts; record_id of the first delivery;
    last_ts: when the client finished it the last time; and

    - logged_ts: when the client first finished a message of the queue, so the log lacks no delivery of later messages
    - finished_ts: when a client of the group finished it first. An orderly listener finishes a message by its success.
    - place: the number of the row; slowest: that of the message that finished last, of all up to this one

    ``log`` is the first frame of `logged_queues`.
    """
    is_done = pl.col("status").is_in(DONE) | ~pl.col("orderly").fill_null(value=False)
    each = log.group_by("held", "queue", "queue_offset").agg(
        pl.coalesce(pl.col("ts").filter(is_done).min(), pl.col("ts").max()).alias("own_ts"),
        pl.col("ts").max().alias("last_ts"),
        pl.len().alias("deliveries"),
        pl.col("orderly").fill_null(value=False).any().alias("is_orderly"),
        pl.col("store_ts").min(),
        pl.col("record_id").get(pl.col("ts").arg_min()),
    )
    finished = pl.col("own_ts").min().over("queue", "queue_offset").alias("finished_ts")
    logged = pl.col("own_ts").min().over("held").alias("logged_ts")
    in_order = (
        each.with_columns(finished, logged).drop("own_ts", "queue").sort("held", "queue_offset").with_row_index("place")
    )
    last = pl.col("finished_ts").cum_max().over("held")
    is_last = pl.when(pl.col("finished_ts") == last).then("place")
    return in_order.with_columns(is_last.forward_fill().over("held").alias("slowest"))


COMMITTED_OFFSET: Final = Decision(
    table="gold.committed_offset",
    instant="ts",
    one="committed offset",
    many="committed offsets",
    importance=8,
    phrases=(
        QUEUE_WORDS,
        "offset {committed_offset:,} committed",
        "offset {unfinished_offset:,} not finished",
        "finished {finished_ts}",
        VERDICT_WORDS,
    ),
    needs=(Need("consume_log"), Need("offset_commits")),
    rows=("passed_commits", "stored_in_memory"),
    steps={
        "offsets_in_memory": by_name(offsets_in_memory, flow="client_flow"),
        "stored_in_memory": by_name(stored_rows, rows="offsets_in_memory"),
    },
    counted="offsets_in_memory",
)
