"""gold.queue_owner: the intervals in which a client held a queue, by the best evidence for that client.

assignment    queues that the client reported (its process queue table), at every change and every 15 s
rebalance     queues that it computed, every 20 s (RebalanceService) and when a broker notified it
running_info  queues in its answers to polls, at most every 20 s
client_log    queues in its log, at every change
lock          queues that a broker locked for it (LOCK_BATCH_MQ, every 20 s; UNLOCK_BATCH_MQ), for orderly listeners
pull          queues that it pulled: from the first pull to the last, unless another client pulled in between

Where two sources disagree about a client's queues for longer than their precision, that is a gap.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Final

import polars as pl

from mqreplay.core.rebalance_lock_manager import REBALANCE_LOCK_MAX_LIVE_TIME
from mqreplay.decisions.decision import QUEUE_WORDS, Decision, RowCount, by_name
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.arrays.distinct import distinct_values, value_numbers
from mqreplay.evidence.frames import ms, typed
from mqreplay.evidence.gap_rows import GAP
from mqreplay.evidence.intervals import INSTANT, count_spans, intersect, with_run
from mqreplay.evidence.members.membership import within_session
from mqreplay.evidence.members.observed_clients import CLIENT_LOG, RUNNING_INFO, hooked, owner_views, polled
from mqreplay.words.keys import GROUP_QUEUE, MEMBER, QUEUE

HELD = [*MEMBER, *QUEUE]
LOCKED_S = REBALANCE_LOCK_MAX_LIVE_TIME // 1000
OWNER_SOURCES = ("assignment", "rebalance", "running_info", "client_log", "lock", "pull")  # the best first
_VIEW = [*MEMBER, "scope"]
_INTERVAL = [*HELD, "from_ts", "to_ts"]
COMPARED = ("assignment", RUNNING_INFO, CLIENT_LOG)  # a computed share is not yet held
PRECISION_S = 21  # a client is polled every 20 s


def queue_owner(
    assignment: pl.DataFrame,
    rebalance: pl.DataFrame,
    locked: pl.DataFrame,
    pull_intervals: pl.DataFrame,
    members: pl.DataFrame,
    unshared: pl.DataFrame,
) -> pl.DataFrame:
    """Return gold.queue_owner: one row per interval, closed at its start and open at its end.

    ``locked`` are `lock_intervals` of all groups, and ``pull_intervals`` `pull_intervals_of_shard` of all shards;
    ``members`` and ``unshared`` are the frames of membership.py: the members of unshared groups do not own queues. A
    view of a client's queues is valid until its next view, or until its session ends.
    """
    shown = held_views(assignment, rebalance, members)
    evidence = [*shown, ("lock", locked), ("pull", pull_intervals)]
    intervals = [*((source, intervals_of(views)) for source, views in shown), *evidence[-2:]]
    ranks = [
        frame.select(*MEMBER, pl.lit(OWNER_SOURCES.index(source)).alias("_rank")).unique() for source, frame in evidence
    ]
    best = pl.concat(ranks).group_by(MEMBER).agg(pl.col("_rank").min())
    held = pl.concat(
        [
            frame.select(*_INTERVAL, pl.lit(source).alias("source"), pl.lit(OWNER_SOURCES.index(source)).alias("_rank"))
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
    runs = with_run(each.sort("view"), ~_follows(by, "last_view"), by).group_by(*by, "run")
    return runs.agg(pl.col("ts").min().alias("from_ts"), pl.col("until").max().alias("to_ts")).select(_INTERVAL)


def _follows(by: Sequence[str], last_view: str) -> pl.Expr:
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
    runs = with_run(coded, ~(_follows(_VIEW, "view") & same), _VIEW).group_by(*_VIEW, "run")
    merged = runs.agg(
        pl.col("ts").min(),
        pl.col("until").max(),
        pl.col("view").min(),
        pl.col("view").max().alias("last_view"),
        pl.col("_list").first(),
    )
    return merged.with_columns(lists["queues"].gather(merged["_list"]))


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
    owner = pl.when("granted").then("client_id").forward_fill().over(GROUP_QUEUE)
    # A client that lost a lock cannot unlock a queue that another client holds.
    valid = events.filter(owner == pl.col("client_id")).with_columns(
        pl.col("ts").shift(-1).over(GROUP_QUEUE).alias("_next")
    )
    expires = pl.col("ts") + pl.duration(seconds=LOCKED_S)
    spans = within_session(valid.filter("granted"), members, pl.min_horizontal("_next", expires))
    goes_on = pl.col("until").shift(1).over(HELD) == pl.col("ts")
    runs = with_run(spans, ~goes_on, HELD).group_by(*HELD, "run")
    return runs.agg(pl.col("ts").min().alias("from_ts"), pl.col("until").max().alias("to_ts")).drop("run")


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
    queue, held = value_numbers(pull, GROUP_QUEUE, "_queue"), value_numbers(pull, HELD, "_held")
    pulls = pull.select(*HELD, *ends, queue, held).sort("ts", "client_id")
    silence_ms = ms("ts") - pl.col("ts").shift(1).over("_held").dt.epoch("ms")
    alone = pl.col("_held").shift(1).over("_queue") == pl.col("_held")
    goes_on = (silence_ms <= pull_gap_s * 1000) | (silence_ms.is_not_null() & alone)
    runs = with_run(pulls, ~goes_on, ["_held"]).group_by("_held", "run")
    extent = (pl.col("ts").min().alias("from_ts"), pl.col("until").max().alias("to_ts"))
    return runs.agg(pl.col(HELD).first(), *extent).drop("_held", "run")


def source_gaps(assignment: pl.DataFrame, rebalance: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return the gaps for time spans in which two sources disagree about an owner.

    ``members`` is the frame of `membership`. A source covers a client from its first view to its last.
    """
    views = {source: each for source, each in held_views(assignment, rebalance, members) if source in COMPARED}
    pairs = [(one, other) for i, one in enumerate(COMPARED) for other in COMPARED[i + 1 :]]
    found = [_between(one, views[one], other, views[other]) for one, other in pairs]
    return pl.concat([pl.DataFrame(schema=GAP), *found])


def _between(one: str, first: pl.DataFrame, other: str, second: pl.DataFrame) -> pl.DataFrame:
    member = HELD[:2]
    common = intersect(_spoken(first), _spoken(second), member)
    held = {
        name: intervals_of(views.join(common, member, how="semi")) for name, views in (("one", first), ("two", second))
    }
    queues = pl.concat([frame.select(HELD) for frame in held.values()]).unique()
    spans = held | {"common": queues.join(common, member)}
    counted = count_spans(spans, HELD)
    differs = (pl.col("common") > 0) & ((pl.col("one") > 0) != (pl.col("two") > 0))
    long = (ms("to_ts") - ms("from_ts")) > PRECISION_S * 1000
    own = {
        "day": pl.col("from_ts").dt.date(),
        "decision": pl.lit("gold.queue_owner"),
        "evidence": pl.lit("contradiction"),
        "decisions": pl.lit(1),
        "reason": pl.lit(f"{one} and {other} disagree about the owner of a queue; {one} counts"),
    }
    return typed(counted.filter(differs & long), GAP, **own)


def _spoken(views: pl.DataFrame) -> pl.DataFrame:
    return views.group_by(HELD[:2]).agg(pl.col("ts").min().alias("from_ts"), pl.col("ts").max().alias("to_ts"))


QUEUE_OWNER: Final = Decision(
    table="gold.queue_owner",
    instant="from_ts",
    one="queue owner",
    many="queue owners",
    importance=23,
    phrases=("held " + QUEUE_WORDS + " until {to_ts}", "source {source}"),
    until="to_ts",
    needs=(Need("assignments"), Need("heartbeats", or_polled=("consumer_lists",))),
    count=RowCount("gold.queue_owner"),
    rows=by_name(owned_from),
    steps={"owners": by_name(queue_owner, unshared="unshared_groups")},
)
