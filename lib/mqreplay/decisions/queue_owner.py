"""gold.queue_owner: the intervals in which a client held a queue, by the best evidence for that client.

assignment    queues that the client reported (its process queue table), at every change and every 15 s
rebalance     queues that it computed, every 20 s (RebalanceService) and when a broker notified it
running_info  queues in its answers to polls, at most every 20 s
client_log    queues in its log, at every change
lock          queues that a broker locked for it (LOCK_BATCH_MQ, every 20 s; UNLOCK_BATCH_MQ), for orderly listeners
pull          queues that it pulled: from the first pull to the last, unless another client pulled in between
"""

from __future__ import annotations

import datetime as dt

import polars as pl

from mqreplay.core.rebalance_lock_manager import REBALANCE_LOCK_MAX_LIVE_TIME
from mqreplay.evidence.arrays.distinct import distinct_values, value_numbers
from mqreplay.evidence.arrays.keys import KEY, QUEUE
from mqreplay.evidence.members.membership import MEMBER, within_session
from mqreplay.evidence.members.observed_clients import CLIENT_LOG, RUNNING_INFO, hooked, owner_views, polled
from mqreplay.evidence.time_spans import INSTANT

HELD = [*MEMBER, *QUEUE]
LOCKED_S = REBALANCE_LOCK_MAX_LIVE_TIME // 1000
SOURCES = ("assignment", "rebalance", "running_info", "client_log", "lock", "pull")  # the best first
_VIEW = [*MEMBER, "scope"]
_INTERVAL = [*HELD, "from_ts", "to_ts"]


def queue_owner(
    assignment: pl.DataFrame,
    rebalance: pl.DataFrame,
    lock: pl.DataFrame,
    pull_intervals: pl.DataFrame,
    members: pl.DataFrame,
    unshared: pl.DataFrame,
) -> pl.DataFrame:
    """Return gold.queue_owner: one row per interval, closed at its start and open at its end.

    ``pull_intervals`` are `pull_intervals_of_shard` of all shards; ``members`` and ``unshared`` are the frames of
    membership.py: the members of unshared groups do not own queues. A view of a client's queues is valid until its next
    view, or until its session ends.
    """
    shown = held_views(assignment, rebalance, members)
    locked = lock_intervals(lock, members)
    evidence = [*shown, ("lock", locked), ("pull", pull_intervals)]
    intervals = [*((source, intervals_of(views)) for source, views in shown), *evidence[-2:]]
    ranks = [frame.select(*MEMBER, pl.lit(SOURCES.index(source)).alias("_rank")).unique() for source, frame in evidence]
    best = pl.concat(ranks).group_by(MEMBER).agg(pl.col("_rank").min())
    held = pl.concat(
        [
            frame.select(*_INTERVAL, pl.lit(source).alias("source"), pl.lit(SOURCES.index(source)).alias("_rank"))
            for source, frame in intervals
        ]
    )
    owned = held.join(best, [*MEMBER, "_rank"], how="semi").join(unshared, "consumer_group", how="anti")
    return owned.filter(pl.col("to_ts") > pl.col("from_ts")).select(
        pl.col("from_ts").dt.date().alias("day"),
        "consumer_group",
        "topic",
        "broker_name",
        "queue_id",
        "client_id",
        "from_ts",
        "to_ts",
        "source",
    )


def held_views(
    assignment: pl.DataFrame, rebalance: pl.DataFrame, members: pl.DataFrame
) -> list[tuple[str, pl.DataFrame]]:
    """Return sources with their views of clients' queues: each view has all queues of a client, or those of a topic."""
    logged = polled(assignment, CLIENT_LOG)
    # A log's lines about added and removed queues are better evidence than computed shares.
    computed = polled(rebalance, CLIENT_LOG).join(logged, MEMBER, how="anti")
    views = [
        ("assignment", _assignment_views(hooked(assignment))),
        ("rebalance", _rebalance_views(hooked(rebalance))),
        (RUNNING_INFO, _running_views(assignment, members)),
        (CLIENT_LOG, _assignment_views(logged)),
        (CLIENT_LOG, _rebalance_views(computed)),
    ]
    return [(source, _until_next(each, members)) for source, each in views]


def owned_from(owners: pl.DataFrame, begin: dt.datetime) -> pl.DataFrame:
    """Return the intervals from an instant on: earlier parts are cut off."""
    start = pl.lit(begin, INSTANT)
    cut = owners.filter(pl.col("to_ts") > start).with_columns(pl.max_horizontal("from_ts", start).alias("from_ts"))
    return cut.with_columns(pl.col("from_ts").dt.date().alias("day"))


def _assignment_views(assignment: pl.DataFrame) -> pl.DataFrame:
    """Return views of clients' queues: each row has all queues of the client.

    Columns: consumer_group, client_id, scope (empty), ts, queues.
    """
    field = pl.element().struct.field
    queue = pl.struct(*[field(name) for name in QUEUE])
    held = pl.col("queues").list.eval(queue.filter(~field("dropped").fill_null(False)))
    return assignment.select(*MEMBER, pl.lit("").alias("scope"), "ts", held.alias("queues"))


def _running_views(assignment: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return views of clients' queues: each row has all queues of the client until ``ends``, if that is set.

    Columns: consumer_group, client_id, scope (empty), ts, ends, queues.
    """
    views = owner_views(assignment, members)
    return views.select(*MEMBER, pl.lit("").alias("scope"), "ts", pl.col("until").alias("ends"), "queues")


def _rebalance_views(rebalance: pl.DataFrame) -> pl.DataFrame:
    """Return views of clients' queues: each row has all queues that the client took of one topic.

    Columns: consumer_group, client_id, scope (the topic), ts, queues.
    """
    took = rebalance.filter(pl.col("mq_divided").is_not_null())
    return took.select(*MEMBER, pl.col("topic").alias("scope"), "ts", pl.col("mq_divided").alias("queues"))


def _until_next(views: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Add ``view`` (a number) and ``until``: the next view, or the end of the view's session."""
    in_order = views.sort("ts", pl.col("queues").list.len())
    following = pl.col("ts").shift(-1).over(_VIEW)
    if "ends" in views.columns:
        following = pl.coalesce("ends", following)
    numbered = in_order.with_columns(pl.int_range(pl.len()).over(_VIEW).alias("view"), following.alias("_next"))
    return within_session(numbered, members, pl.col("_next")).drop("_next", "ends", strict=False)


def intervals_of(views: pl.DataFrame) -> pl.DataFrame:
    """Return the intervals of consecutive views with the queue; the end of a session ends its last interval.

    Columns: consumer_group, client_id, broker_name, topic, queue_id, from_ts, to_ts.
    """
    repeated = _without_repeats(views)
    each = repeated.filter(pl.col("queues").list.len() > 0).explode("queues").unnest("queues")
    if "topic" not in each.columns:
        each = each.with_columns(pl.col("scope").alias("topic"))
    by = [*HELD, "scope"]
    goes_on = _follows(by, "last_view")
    numbered = each.sort("view").with_columns((~goes_on).fill_null(True).alias("_begins"))
    intervals = (
        numbered.with_columns(pl.col("_begins").cum_sum().over(by).alias("_interval"))
        .group_by(*by, "_interval")
        .agg(pl.col("ts").min().alias("from_ts"), pl.col("until").max().alias("to_ts"))
    )
    return intervals.select(_INTERVAL)


def _follows(by: list[str], last_view: str) -> pl.Expr:
    """Return whether a row's view directly follows that of the row before it."""
    in_turn = pl.col(last_view).shift(1).over(by) == pl.col("view") - 1
    return in_turn & (pl.col("until").shift(1).over(by) == pl.col("ts"))


def _without_repeats(views: pl.DataFrame) -> pl.DataFrame:
    """Return equal consecutive views as one, until the end of the last one; ``last_view`` is its number.

    A client computes its share every 20 s and mostly gets the same: repeats are dropped before queues become rows.
    """
    # Numbers of distinct lists: each list is compared once, and copied only at the start of a run.
    lists, list_of = distinct_values(views, ["queues"])
    coded = views.with_columns(pl.Series("_list", list_of))
    same = pl.col("_list").shift(1).over(_VIEW) == pl.col("_list")
    begins = (~(_follows(_VIEW, "view") & same)).fill_null(True)
    numbered = coded.with_columns(begins.alias("_begins")).with_columns(
        pl.col("_begins").cum_sum().over(_VIEW).alias("_run")
    )
    runs = numbered.group_by(*_VIEW, "_run").agg(
        pl.col("ts").min(),
        pl.col("until").max(),
        pl.col("view").min(),
        pl.col("view").max().alias("last_view"),
        pl.col("_list").first(),
    )
    return runs.with_columns(lists["queues"].gather(runs["_list"]))


def lock_intervals(lock: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return the intervals from a grant until the owner unlocks, another client gets the lock, or it expires.

    Columns: consumer_group, client_id, broker_name, topic, queue_id, from_ts, to_ts.

    A client locks one queue when it takes it, and all its queues of a broker to renew them: no request has all of its
    queues (RebalanceLockManager, RebalanceImpl#lock, #lockAll). ``members`` is the frame of `membership`.
    """
    events = pl.concat(
        [
            _lock_events(lock, "LOCK_BATCH_MQ", "lock_ok_mq_set", True),
            _lock_events(lock, "UNLOCK_BATCH_MQ", "mq_set", False),
        ]
    ).sort("ts", "granted", "client_id")
    owner = pl.when("granted").then("client_id").forward_fill().over(KEY)
    # A client that lost a lock cannot unlock a queue that another client holds.
    valid = events.filter(owner == pl.col("client_id")).with_columns(pl.col("ts").shift(-1).over(KEY).alias("_next"))
    expires = pl.col("ts") + pl.duration(seconds=LOCKED_S)
    spans = within_session(valid.filter("granted"), members, pl.min_horizontal("_next", expires))
    goes_on = pl.col("until").shift(1).over(HELD) == pl.col("ts")
    numbered = spans.with_columns((~goes_on).fill_null(True).alias("_begins")).with_columns(
        pl.col("_begins").cum_sum().over(HELD).alias("_interval")
    )
    intervals = numbered.group_by(*HELD, "_interval").agg(
        pl.col("ts").min().alias("from_ts"), pl.col("until").max().alias("to_ts")
    )
    return intervals.drop("_interval")


def _lock_events(lock: pl.DataFrame, kind: str, queues: str, granted: bool) -> pl.DataFrame:
    listed = lock.filter((pl.col("kind") == kind) & (pl.col(queues).list.len() > 0))
    each = listed.select(*MEMBER, "ts", pl.col(queues).alias("queue")).explode("queue")
    queue = [pl.col("queue").struct.field(name) for name in QUEUE]
    return each.select(*MEMBER, *queue, "ts", pl.lit(granted).alias("granted"))


def pull_intervals_of_shard(pull: pl.DataFrame, pull_gap_s: int) -> pl.DataFrame:
    """Return the intervals in which a client pulled a queue for its group.

    Columns: consumer_group, client_id, broker_name, topic, queue_id, from_ts, to_ts.

    An interval continues over a silence of at most ``pull_gap_s`` seconds, and over a longer one if no other client of
    the group pulled the queue meanwhile. All pulls of a queue are in one shard.
    """
    ends = [pl.col("request_ts").alias("ts"), pl.coalesce("response_ts", "request_ts").alias("until")]
    queue, held = value_numbers(pull, KEY, "_queue"), value_numbers(pull, HELD, "_held")
    pulls = pull.select(*HELD, *ends, queue, held).sort("ts", "client_id")
    silence_ms = pl.col("ts").dt.epoch("ms") - pl.col("ts").shift(1).over("_held").dt.epoch("ms")
    alone = pl.col("_held").shift(1).over("_queue") == pl.col("_held")
    goes_on = (silence_ms <= pull_gap_s * 1000) | (silence_ms.is_not_null() & alone)
    numbered = pulls.with_columns((~goes_on).fill_null(True).alias("_begins")).with_columns(
        pl.col("_begins").cum_sum().over("_held").alias("_interval")
    )
    intervals = numbered.group_by("_held", "_interval").agg(
        pl.col(HELD).first(), pl.col("ts").min().alias("from_ts"), pl.col("until").max().alias("to_ts")
    )
    return intervals.drop("_held", "_interval")
