"""gold.committed_offset: the offsets that push consumers commit, against what they have finished.

A client commits the smallest offset that it pulled and has not finished, else the one after the last
(ProcessQueue#removeMessage, RemoteBrokerOffsetStore#updateOffset). An offset past an unfinished message loses it if the
client stops. Logs of deliveries show it for commits, running info for the offset in the client's memory: it is read
before the cache (DefaultMQPushConsumerImpl#consumerRunningInfo), and the smallest cached offset only grows.
Agreement is counted, and not stored.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

import polars as pl

from mqreplay.evidence.lags.queue_caches import HOOK
from mqreplay.evidence.members.observed_clients import RUNNING_INFO
from mqreplay.evidence.offsets.finished_offsets import HELD, finished_offsets, logged_queues
from mqreplay.evidence.offsets.queue_events import stored_commits
from mqreplay.evidence.time_spans import INSTANT

COMMIT: Final = "commit"
PUSH: Final = "CONSUME_PASSIVELY"
TYPES: Final[dict[str, pl.DataType]] = {
    "day": pl.Date(),
    **dict.fromkeys(("consumer_group", "topic", "broker_name"), pl.String()),
    "queue_id": pl.Int32(),
    "client_id": pl.String(),
    "ts": INSTANT,
    "source": pl.String(),
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
    named = updates.select("day", *HELD, "ts", pl.col("commit_offset").alias("committed_offset"), "record_id")
    log, commits = logged_queues(consume if len(named) else consume.clear(), named)
    push = consumers.filter(pl.col("consume_type") == PUSH).select("consumer_group", "client_id").unique()
    with_type = commits.join(push.with_columns(pl.lit(value=True).alias("is_push")), push.columns, how="left")
    begun = _with_start(_with_log(with_type, finished_offsets(log)), offset_commit)
    return _judged(begun).with_columns(pl.lit(COMMIT).alias("source")).select(*TYPES)


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
    joined = known.join_asof(
        in_order.select("held", "slowest", *(pl.col(name).alias(named) for name, named in before.items())),
        left_on="last",
        right_on="before",
        by="held",
        coalesce=False,
        check_sortedness=False,
    )
    joined = joined.join_asof(
        in_order.select("held", *(pl.col(name).alias(named) for name, named in following.items())),
        left_on="committed_offset",
        right_on="next",
        by="held",
        strategy="forward",
        coalesce=False,
        check_sortedness=False,
    )
    return joined.join(finished.select(pl.col(name).alias(named) for name, named in slowest.items()), "slowest", "left")


def _with_start(commits: pl.DataFrame, offset_commit: pl.DataFrame) -> pl.DataFrame:
    """Add started: the offset that the broker last gave the client for the queue (READ_FROM_STORE); null: not known."""
    answers = offset_commit.filter((pl.col("kind") == "QUERY") & pl.col("answer_offset").is_not_null())
    starts = answers.select(*HELD, pl.col("ts").alias("started_ts"), pl.col("answer_offset").alias("started"))
    return commits.sort("ts").join_asof(
        starts.sort("started_ts"),
        left_on="ts",
        right_on="started_ts",
        by=HELD,
        check_sortedness=False,
    )


def _judged(rows: pl.DataFrame) -> pl.DataFrame:
    """Add judgement and reason; unfinished_offset, finished_ts and consume_record_id only of a message it passed."""
    ts, offset = pl.col("ts"), pl.col("committed_offset")
    passed = (pl.col("finished_ts") > ts + CLOCKS).fill_null(value=False)
    is_last = pl.col("before") == pl.col("last")
    of_log = is_last & (pl.col("before_ts") <= ts)
    logged = pl.col("before_place").cast(pl.Int64) - pl.col("slowest").cast(pl.Int64)
    is_whole = (pl.col("before_deliveries") == 1) & (logged == pl.col("before") - pl.col("unfinished_offset"))
    # A log that begins later, and a reset, show an old message as a new one.
    is_logged = pl.col("logged_ts") <= pl.col("unfinished_store_ts")
    is_short = pl.col("is_orderly") | (ts - pl.col("unfinished_store_ts") < LEAST_CONSUME_TIMEOUT)
    late_s = ((pl.col("finished_ts") - ts).dt.total_milliseconds() / 1000).round(1)
    what = pl.format("the commit passed offset {}, which finished {} s later", "unfinished_offset", late_s)
    is_next = pl.col("next") == offset
    behind = is_next & (pl.col("next_ts") < ts - CLOCKS)
    verdicts = (
        (
            passed & ~pl.col("is_push").fill_null(value=False),
            "undetermined",
            _but(what, "no heartbeat names a push consumer"),
        ),
        (passed & ~of_log, "undetermined", _but(what, "the offset may be that of a reset")),
        (
            passed & ~(is_whole & is_logged).fill_null(value=False),
            "undetermined",
            _but(what, "the log may lack deliveries"),
        ),
        (passed & ~is_short.fill_null(value=False), "undetermined", _but(what, "it may have exceeded consumeTimeout")),
        (passed, "differ", what),
        (offset <= 0, "agree", pl.lit("no message is before it")),
        (behind, "undetermined", pl.lit(BEHIND)),
        (is_last, "agree", pl.lit("all messages before it had finished")),
        (is_next, "agree", pl.lit("it is the lowest offset that had not finished")),
        (pl.col("started") == offset, "agree", pl.lit("it is the offset at which the client started")),
        (pl.col("before").is_null() & pl.col("next").is_null(), "undetermined", pl.lit(NO_LOG)),
    )
    judgement, reason = pl.lit("undetermined"), pl.lit(BEYOND_LOG)
    for condition, verdict, words in reversed(verdicts):
        matches = condition.fill_null(value=False)
        judgement = pl.when(matches).then(pl.lit(verdict)).otherwise(judgement)
        reason = pl.when(matches).then(words).otherwise(reason)
    shown = ("unfinished_offset", "finished_ts", "consume_record_id")
    return rows.with_columns(
        judgement.alias("judgement"),
        reason.alias("reason"),
        *(pl.when(passed).then(name).alias(name) for name in shown),
    )


def _but(what: pl.Expr, why: str) -> pl.Expr:
    return pl.concat_str(what, pl.lit(f"; {why}"))


def offsets_in_memory(flow: pl.DataFrame, consumers: pl.DataFrame) -> pl.DataFrame:
    """Return the verdict on the offset in a client's memory, where it has unfinished messages.

    Columns: those of gold.committed_offset. ``flow`` are rows of flow_control.client_flow, ``consumers`` the frame of
    queue_start.consumers.
    """
    push = consumers.filter(pl.col("consume_type") == PUSH).select("consumer_group", "client_id").unique()
    observed = flow.filter(
        pl.col("source").is_in([RUNNING_INFO, HOOK])
        & pl.col("head_offset").is_not_null()
        & (pl.col("memory_offset") >= 0)
    ).join(push, push.columns, how="semi")
    passed = pl.col("memory_offset") > pl.col("head_offset")
    what = pl.format("the client would commit {}, but has not finished offset {}", "memory_offset", "head_offset")
    # A hook may read the cache first.
    is_read_first = pl.col("source") == RUNNING_INFO
    judgement = (
        pl.when(~passed)
        .then(pl.lit("agree"))
        .when(is_read_first)
        .then(pl.lit("differ"))
        .otherwise(pl.lit("undetermined"))
    )
    reason = (
        pl.when(~passed)
        .then(pl.lit("it is not above the lowest offset in the cache"))
        .when(is_read_first)
        .then(what)
        .otherwise(_but(what, "the cache may have been read first"))
    )
    unknown = [pl.lit(None, TYPES[name]).alias(name) for name in ("finished_ts", "consume_record_id")]
    return observed.with_columns(
        pl.col("memory_offset").alias("committed_offset"),
        pl.when(passed).then("head_offset").alias("unfinished_offset"),
        judgement.alias("judgement"),
        reason.alias("reason"),
        *unknown,
    ).select(*TYPES)


def stored_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that are stored: offsets past a message that had not finished."""
    return rows.filter(pl.col("unfinished_offset").is_not_null())
