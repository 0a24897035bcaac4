"""Where ownership of queues was not one to one: queues that nobody held, or several clients at once; idle members.

Each member of a group allocates for itself (RebalanceImpl#rebalanceByTopic), so they agree only while they see the same
lists and use the same strategy on the same subscriptions. Seconds of disagreement after a change are normal; findings
have the limit.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.evidence.arrays.keys import KEY, QUEUE
from mqreplay.evidence.arrays.wide_rows import slices
from mqreplay.evidence.members.membership import MEMBER, subscriptions
from mqreplay.evidence.time_spans import INSTANT, with_session

GROUP_TOPIC = ["consumer_group", "topic"]


def disputes(owners: pl.DataFrame, due: pl.DataFrame, duplicates: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the times in which a queue that was due to have an owner had none, or several.

    Columns: consumer_group, topic, broker_name, queue_id, from_ts, to_ts, owners (0, or the most at once).

    ``owners`` is gold.queue_owner, ``due`` the frame of `due_queues`. ``duplicates`` is the frame of
    duplicate_clients.py: each process of a client id owns the queues of that id.
    """
    if duplicates is not None:
        owners = pl.concat([owners.select(*KEY, "from_ts", "to_ts"), _of_further_processes(owners, duplicates)])
    counted = counted_spans({"owners": owners, "due": due}, KEY)
    wrong = counted.filter((pl.col("due") > 0) & (pl.col("owners") != 1))
    by = [*KEY, "orphan"]
    together = with_session(wrong.with_columns((pl.col("owners") == 0).alias("orphan")), by, "from_ts", "to_ts", 0)
    spans = together.group_by(*by, "session").agg(
        pl.col("from_ts").min(), pl.col("to_ts").max(), pl.col("owners").max()
    )
    return spans.drop("orphan", "session")


def _of_further_processes(owners: pl.DataFrame, duplicates: pl.DataFrame) -> pl.DataFrame:
    """Return the queues of the second process with a client id, and of each further one.

    Columns: consumer_group, topic, broker_name, queue_id, from_ts, to_ts.
    """
    certain = duplicates.filter("certain").select(
        *MEMBER, pl.col("from_ts").alias("since"), pl.col("to_ts").alias("until"), "processes"
    )
    both = owners.join(certain, MEMBER).select(
        *KEY,
        pl.max_horizontal("from_ts", "since").alias("from_ts"),
        pl.min_horizontal("to_ts", "until").alias("to_ts"),
        pl.int_ranges(1, "processes").alias("process"),
    )
    return both.filter(pl.col("to_ts") > pl.col("from_ts")).explode("process").drop("process")


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
    active = merged_spans(subscribed.join(unshared, "consumer_group", how="anti"), GROUP_TOPIC)
    if unwatched is not None:
        active = _without(active, unwatched, GROUP_TOPIC)
    unrecorded = active.join(seen, "consumer_group", how="anti").select(GROUP_TOPIC).unique()
    pulling = unrecorded.join(owners, GROUP_TOPIC, how="semi")
    by_pulls = [pulling.join(pulled, "topic")]
    if routed is not None:
        by_pulls.append(unrecorded.join(routed, "topic"))
    there = pl.concat([frame.select(*KEY, "first_ts", "last_ts") for frame in (seen, *by_pulls)])
    spans = there.join(active, GROUP_TOPIC).select(
        *KEY,
        pl.max_horizontal("first_ts", "from_ts").alias("from_ts"),
        pl.min_horizontal("last_ts", "to_ts").alias("to_ts"),
    )
    return spans.filter(pl.col("to_ts") > pl.col("from_ts"))


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
    spans = with_session(each, QUEUE, "first_ts", "last_ts", 2 * refresh_s)
    return spans.group_by(*QUEUE, "session").agg(pl.col("first_ts").min(), pl.col("last_ts").max()).drop("session")


def _is_first() -> pl.Expr:
    return pl.int_range(pl.len()).over("topic") == 0


def _without(spans: pl.DataFrame, cuts: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return the spans without the times in which the group has a cut.

    Columns: ``by``, from_ts, to_ts.
    """
    groups = spans.select(by).unique()
    of_group = groups.join(cuts.select("consumer_group", "from_ts", "to_ts").unique(), "consumer_group")
    counted = counted_spans({"spans": spans, "cuts": of_group}, by)
    return merged_spans(counted.filter((pl.col("spans") > 0) & (pl.col("cuts") == 0)), by)


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
    return pl.concat(seen).group_by(KEY).agg(extent)


def _extent_of_queues(rebalance: pl.DataFrame) -> pl.DataFrame:
    lists = (
        rebalance.filter(pl.col("mq_all").list.len() > 0)
        .group_by(*GROUP_TOPIC, "mq_all")
        .agg(pl.col("ts").min().alias("first_ts"), pl.col("ts").max().alias("last_ts"))
    )
    each = lists.explode("mq_all").unnest("mq_all")
    return each.group_by(KEY).agg(pl.col("first_ts").min(), pl.col("last_ts").max())


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
    counted = counted_spans(spans, MEMBER)
    idle = (pl.col("present") > 0) & (pl.sum_horizontal(name for name in spans if name != "present") == 0)
    merged = merged_spans(counted.filter(idle), MEMBER)
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
    together = with_session(each, MEMBER, "ts", "ts", interval_s // 2)
    rounds = together.group_by(*MEMBER, "session").agg(pl.col("ts").max(), pl.col("share").sum())
    return rounds.filter(pl.col("share") == 0).select(*MEMBER, "ts")


def merged_spans(spans: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return the spans; those that touch or overlap become one.

    Columns: ``by``, from_ts, to_ts.
    """
    together = with_session(spans, by, "from_ts", "to_ts", 0)
    return together.group_by(*by, "session").agg(pl.col("from_ts").min(), pl.col("to_ts").max()).drop("session")


def counted_spans(spans: Mapping[str, pl.DataFrame], by: Sequence[str]) -> pl.DataFrame:
    """Return for each time how many spans of each named frame cover it.

    Columns: ``by``, from_ts, to_ts, and one count per name.
    """
    edges = [
        frame.select(
            *by,
            pl.col(edge).alias("from_ts"),
            *[pl.lit(step if name == column else 0, pl.Int64).alias(column) for column in spans],
        )
        for name, frame in spans.items()
        for edge, step in (("from_ts", 1), ("to_ts", -1))
    ]
    changes = pl.concat(edges).group_by(*by, "from_ts").agg(pl.col(column).sum() for column in spans)
    counted = changes.sort("from_ts").with_columns(
        pl.col("from_ts").shift(-1).over(by).alias("to_ts"),
        *[pl.col(column).cum_sum().over(by) for column in spans],
    )
    return counted.filter(pl.col("to_ts").is_not_null()).select(*by, "from_ts", "to_ts", *spans)
