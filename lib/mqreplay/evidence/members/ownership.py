"""Where ownership of queues was not one to one: queues that nobody held, or several clients at once; idle members.

Each member of a group allocates for itself (RebalanceImpl#rebalanceByTopic), so they agree only while they see the same
lists and use the same strategy on the same subscriptions. Seconds of disagreement after a change are normal; findings
have the limit.

A poll shows what a client holds at one instant. A queue that changed hands did so between two polls, often 20 s apart;
gold.queue_owner has their middle. A rule that asks who held a queue at one instant must allow for all of that time
(`possible_owners`).
"""

from __future__ import annotations

import datetime as dt

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.evidence.arrays.frame_arrays import slices
from mqreplay.evidence.intervals import INSTANT, count_spans, intersect, merge, subtract
from mqreplay.evidence.members.membership import subscriptions
from mqreplay.evidence.members.observed_clients import RUNNING_INFO, owner_views
from mqreplay.words.keys import CLIENT_QUEUE, GROUP_QUEUE, GROUP_TOPIC, MEMBER, QUEUE


def disputes(owners: pl.DataFrame, due: pl.DataFrame, duplicates: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the times in which a queue that was due to have an owner had none, or several.

    Columns: consumer_group, topic, broker_name, queue_id, from_ts, to_ts, owners (0, or the most at once).

    ``owners`` is gold.queue_owner, ``due`` the frame of `due_queues`. ``duplicates`` is the frame of
    duplicate_clients.py: each process of a client id owns the queues of that id.
    """
    if duplicates is not None:
        owners = pl.concat([owners.select(*GROUP_QUEUE, "from_ts", "to_ts"), _of_further_processes(owners, duplicates)])
    counted = count_spans({"owners": owners, "due": due}, GROUP_QUEUE)
    wrong = counted.filter((pl.col("due") > 0) & (pl.col("owners") != 1))
    marked = wrong.with_columns((pl.col("owners") == 0).alias("orphan"))
    return merge(marked, [*GROUP_QUEUE, "orphan"], pl.col("owners").max()).drop("orphan")


def _of_further_processes(owners: pl.DataFrame, duplicates: pl.DataFrame) -> pl.DataFrame:
    """Return the queues of the second process with a client id, and of each further one.

    Columns: consumer_group, topic, broker_name, queue_id, from_ts, to_ts.
    """
    certain = duplicates.filter("certain").select(
        *MEMBER, "from_ts", "to_ts", pl.int_ranges(1, "processes").alias("process")
    )
    both = intersect(owners.select(*CLIENT_QUEUE, "from_ts", "to_ts"), certain, MEMBER)
    return both.select(*GROUP_QUEUE, "from_ts", "to_ts", "process").explode("process").drop("process")


def pulled_queues_of_shard(pull: pl.DataFrame) -> pl.DataFrame:
    """Return from when to when any client pulled a queue.

    Columns: broker_name, topic, queue_id, first_ts, last_ts.
    """
    return pull.group_by(QUEUE).agg(
        pl.col("request_ts").min().alias("first_ts"),
        pl.coalesce("response_ts", "request_ts").max().alias("last_ts"),
    )


def due_queues(
    rebalance: pl.DataFrame,
    pulled: pl.DataFrame,
    subscribed: pl.DataFrame,
    owners: pl.DataFrame,
    unshared: pl.DataFrame,
    interval_s: int,
    routed: pl.DataFrame | None = None,
    unwatched: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return the times in which a queue existed and a member subscribed to its topic.

    Columns: consumer_group, topic, broker_name, queue_id, from_ts, to_ts.

    A queue is there while members see it in mq_all; where no rebalance of the group was recorded, while any group pulls
    it: ``pulled`` is the frame of pulled_queues_of_shard, of all shards; and while it is in the routes that the
    recorder asked for: ``routed`` is the frame of `routed_queues`. Pulls of other groups count only for topics of which
    the group holds queues: a group that consumes by POP does not pull. ``interval_s`` is the rebalance interval: what
    the last rebalance saw is valid until the next was due. ``subscribed`` is the frame of `subscribers`, ``owners``
    gold.queue_owner, ``unshared`` the frame of unshared_groups, ``unwatched`` that of observed_clients.unwatched: while
    it is not known what a member holds, no queue of its group is due.
    """
    seen = _queues_seen(rebalance).with_columns(pl.col("last_ts") + pl.duration(seconds=interval_s))
    active = merge(subscribed.join(unshared, "consumer_group", how="anti"), GROUP_TOPIC)
    if unwatched is not None:
        groups = active.select(GROUP_TOPIC).unique()
        unknown = groups.join(unwatched.select("consumer_group", "from_ts", "to_ts").unique(), "consumer_group")
        active = subtract(active, unknown, GROUP_TOPIC)
    unrecorded = active.join(seen, "consumer_group", how="anti").select(GROUP_TOPIC).unique()
    pulling = unrecorded.join(owners, GROUP_TOPIC, how="semi")
    by_pulls = [pulling.join(pulled, "topic")]
    if routed is not None:
        by_pulls.append(unrecorded.join(routed, "topic"))
    there = pl.concat([frame.select(*GROUP_QUEUE, from_ts="first_ts", to_ts="last_ts") for frame in (seen, *by_pulls)])
    return intersect(there, active, GROUP_TOPIC)


def routed_queues(queue_lists: pl.DataFrame, watched_until: dt.datetime | None, refresh_s: int) -> pl.DataFrame:
    """Return the times in which members may be expected to know a queue from its topic's route.

    Columns: broker_name, topic, queue_id, first_ts, last_ts.

    ``queue_lists`` is the frame of agreed_lists.queue_lists. Members ask for a route every ``refresh_s`` seconds: a
    queue that is added is known to all after that.
    """
    known = pl.col("from_ts") + pl.when(_is_first()).then(pl.duration(seconds=0)).otherwise(
        pl.duration(seconds=refresh_s)
    )
    each = (
        queue_lists.sort("from_ts")
        .with_columns(known.alias("first_ts"), pl.coalesce("to_ts", pl.lit(watched_until, INSTANT)).alias("last_ts"))
        .filter(pl.col("mq_all").list.len() > 0)
        .explode("mq_all")
        .unnest("mq_all")
    )
    # A list that changes elsewhere leaves the queue where it was.
    spans = merge(each, QUEUE, begin="first_ts", end="last_ts", gap_s=2 * refresh_s)
    return spans.rename({"from_ts": "first_ts", "to_ts": "last_ts"})


def _is_first() -> pl.Expr:
    return pl.int_range(pl.len()).over("topic") == 0


def _queues_seen(rebalance: pl.DataFrame) -> pl.DataFrame:
    """Return when members of the group first and last saw a queue in mq_all.

    Columns: consumer_group, topic, broker_name, queue_id, first_ts, last_ts.

    Members see the same list again and again: only distinct lists become rows.
    """
    extent = [pl.col("first_ts").min(), pl.col("last_ts").max()]
    lists = rebalance.select(*GROUP_TOPIC, "ts", "mq_all")
    # The empty frame first: a night may have no rebalance.
    parts = [lists.clear(), *(lists[rows] for rows in slices(lists, ["mq_all"], GROUP_TOPIC))]
    seen = [_extent_of_queues(part) for part in parts]
    return pl.concat(seen).group_by(GROUP_QUEUE).agg(extent)


def _extent_of_queues(rebalance: pl.DataFrame) -> pl.DataFrame:
    lists = (
        rebalance.filter(pl.col("mq_all").list.len() > 0)
        .group_by(*GROUP_TOPIC, "mq_all")
        .agg(pl.col("ts").min().alias("first_ts"), pl.col("ts").max().alias("last_ts"))
    )
    each = lists.explode("mq_all").unnest("mq_all")
    return each.group_by(GROUP_QUEUE).agg(pl.col("first_ts").min(), pl.col("last_ts").max())


def subscribers(
    members: pl.DataFrame, heartbeat: pl.DataFrame, rebalance: pl.DataFrame, owners: pl.DataFrame
) -> pl.DataFrame:
    """Return each session of a member once for each topic that the member subscribes to.

    Columns: those of `membership`, and topic.
    """
    listed = subscriptions(heartbeat).select(*MEMBER, "topics").unique().filter(pl.col("topics").list.len() > 0)
    by_heartbeat = listed.explode("topics").rename({"topics": "topic"})
    topics = [frame.select(*MEMBER, "topic").unique() for frame in (by_heartbeat, rebalance, owners)]
    return members.join(pl.concat(topics).unique(), MEMBER)


def idle_members(
    subscribed: pl.DataFrame,
    owners: pl.DataFrame,
    unshared: pl.DataFrame,
    rebalance: pl.DataFrame,
    interval_s: int,
    unwatched: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return the times in which a member that was watched held no queue except of retry topics.

    Columns: consumer_group, client_id, from_ts, to_ts, rebalances.

    ``rebalances`` counts those of that time in which it took no queue either, see `empty_rebalances`, and the one
    that took its last queue away: a client releases a queue up to one interval after it. ``interval_s`` is the
    rebalance interval, ``unwatched`` the frame of observed_clients.unwatched.
    """
    own_topics = ~pl.col("topic").str.starts_with(RETRY)
    sessions = subscribed.filter(own_topics & pl.col("watched")).select(*MEMBER, "from_ts", "to_ts").unique()
    present = sessions.join(unshared, "consumer_group", how="anti")
    spans = {"queues": owners.filter(own_topics), "present": present}
    if unwatched is not None:
        spans["unwatched"] = unwatched
    counted = count_spans(spans, MEMBER)
    idle = (pl.col("present") > 0) & (pl.sum_horizontal(name for name in spans if name != "present") == 0)
    merged = merge(counted.filter(idle), MEMBER)
    span = [*MEMBER, "from_ts", "to_ts"]
    during = pl.col("ts").is_between(pl.col("from_ts") - pl.duration(seconds=interval_s), pl.col("to_ts"))
    met = merged.join(empty_rebalances(rebalance, interval_s), MEMBER).filter(during)
    counts = met.group_by(span).agg(pl.len().cast(pl.Int64).alias("rebalances"))
    return (
        merged.join(counts, span, how="left")
        .with_columns(pl.col("rebalances").fill_null(0))
        .select(*span, "rebalances")
    )


def empty_rebalances(rebalance: pl.DataFrame, interval_s: int) -> pl.DataFrame:
    """Return the rebalances in which a member saw queues of its topics and took none of them.

    Columns: consumer_group, client_id, ts.

    A client rebalances every ``interval_s`` seconds, and several times at once when it starts or a member comes or
    goes: what is less than half an interval apart is one rebalance. It does not count if the member's share has a
    queue: an orderly listener waits until another client gives back its lock. Nor does a failed one, or one of a client
    that is not in the list of members yet: its share is empty.
    """
    queues, members = pl.col("mq_all").list.len(), pl.col("cid_all")
    listed = members.list.contains(pl.col("client_id")).fill_null(True)
    sees = pl.col("error").is_null() & (queues > 0) & listed & ~pl.col("topic").str.starts_with(RETRY)
    each = rebalance.filter(sees).select(*MEMBER, "ts", pl.col("mq_divided").list.len().alias("share"))
    rounds = merge(each, MEMBER, pl.col("share").sum(), at="ts", gap_s=interval_s // 2)
    return rounds.filter(pl.col("share") == 0).select(*MEMBER, ts="to_ts")


def possible_owners(owners: pl.DataFrame, assignment: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return the intervals of ``owners``, those that polls show as long as they may have been.

    Columns: those of ``owners`` (gold.queue_owner). ``assignment`` is silver.assignment, ``members`` the frame of
    membership.py. The interval of a client's last answer ends as before: with its session.
    """
    views = owner_views(assignment, members)
    begins = views.select(*MEMBER, "earliest_ts", from_ts="ts", source=pl.lit(RUNNING_INFO))
    ends = views.select(*MEMBER, "latest_ts", to_ts="until", source=pl.lit(RUNNING_INFO)).drop_nulls()
    begun = begins.group_by(*MEMBER, "from_ts", "source").agg(pl.col("earliest_ts").min())
    ended = ends.group_by(*MEMBER, "to_ts", "source").agg(pl.col("latest_ts").max())
    met = owners.join(begun, begun.columns[:-1], how="left", maintain_order="left")
    met = met.join(ended, ended.columns[:-1], how="left", maintain_order="left")
    return met.with_columns(
        pl.min_horizontal("from_ts", "earliest_ts").alias("from_ts"),
        pl.max_horizontal("to_ts", "latest_ts").alias("to_ts"),
    ).select(owners.columns)
