"""Members of one group with different strategies or subscriptions, and topics that all members unsubscribed from."""

from __future__ import annotations

import polars as pl

from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.evidence.frames import columns, typed
from mqreplay.evidence.intervals import count_spans, intersect, merge, with_session
from mqreplay.evidence.members.membership import subscribed, subscriptions, within_session
from mqreplay.evidence.members.observed_clients import CLIENT_LOG, CONNECTION, RUNNING_INFO
from mqreplay.words.keys import BROKER, GROUP, GROUP_TOPIC, MEMBER

_TEXTS = pl.List(pl.String)
CONFLICTS: dict[str, pl.DataType] = {
    **columns("consumer_group", "from_ts", "to_ts"),
    "sides": _TEXTS,
    "topics": _TEXTS,
    "record_ids": _TEXTS,  # of the table that a conflict is of as a rule, or "table record_id"
}
ALTERNATIONS = CONFLICTS | {"returns": pl.Int64()}
RETURNS_S = 600  # between two subscriptions of a broker; a release of an application and its removal take longer
MOST_PAIRS = 1_000_000  # pairs of spans at a time: a group of 1,000 members has millions of them


def strategy_conflicts(
    rebalance: pl.DataFrame, members: pl.DataFrame, interval_s: int, polled: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Return the times in which members of a group allocated by different strategies (the sides).

    Columns: consumer_group, from_ts, to_ts, sides, topics, record_ids.

    ``polled`` is the frame of observed_clients.strategy_sides, of clients without hooks. ``members`` is the
    frame of `membership`, ``interval_s`` the rebalance interval.
    """
    named = rebalance.filter(pl.col("strategy").is_not_null())
    by_log = pl.col("source").eq_missing(CLIENT_LOG)
    parts = [named.filter(~by_log).with_columns(pl.col("ts").alias("until")), _logged(named.filter(by_log), members)]
    side = pl.col("strategy").alias("side")
    sides = pl.concat([part.select(*MEMBER, "topic", "ts", "until", side, "record_id") for part in parts])
    if polled is not None:
        others = polled.join(named, MEMBER, how="anti").with_columns(_of_table("silver.assignment"))
        sides = pl.concat([sides, others.select(sides.columns)])
    return _conflicts(sides, members, interval_s)


def _logged(rebalance: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return the rebalances of clients' logs with ``until``: a log has a rebalance only if its result changed.

    So each is valid until the next one of the topic, or to the end of the session.
    """
    in_order = rebalance.sort("ts").with_columns(pl.col("ts").shift(-1).over(*MEMBER, "topic").alias("_next"))
    return within_session(in_order, members, pl.col("_next")).drop("_next")


def _of_table(name: str) -> pl.Expr:
    return (pl.lit(f"{name} ") + pl.col("record_id")).alias("record_id")


def stated_subscriptions(heartbeat: pl.DataFrame) -> pl.DataFrame:
    """Return what members stated themselves, sorted by ts: columns as of `subscriptions`.

    What a broker knows of its group is no statement. The record_id of an answer of the client has its table before it.
    """
    own = heartbeat.filter(pl.col("source").ne_missing(CONNECTION))
    polled = own.filter((pl.col("source") == RUNNING_INFO).fill_null(False)).with_columns(
        _of_table("silver.assignment")
    )
    sent = own.filter(pl.col("source").ne_missing(RUNNING_INFO))
    return subscriptions(pl.concat([sent, polled])).sort("ts")


def subscription_conflicts(heartbeat: pl.DataFrame, members: pl.DataFrame, interval_s: int) -> pl.DataFrame:
    """Return the times in which members of a group had different subscriptions.

    Columns: consumer_group, from_ts, to_ts, sides, topics, record_ids. The sides are the subscriptions as text.

    A broker keeps one subscription for a group, that of the last heartbeat (ConsumerGroupInfo#updateSubscription), but
    members share queues as if all subscribed alike. ``interval_s`` is the heartbeat interval. ``heartbeat`` may hold
    rows of observed_clients.observed_heartbeats; a broker's knowledge is not a member's own statement. A heartbeat
    without subscriptions (useHeartbeatV2) confirms those that the member sent before.
    """
    stated = stated_subscriptions(heartbeat)
    listed = pl.when(pl.col("subscribed").is_not_null())
    side, record_id = (
        listed.then(name).forward_fill().over(MEMBER).alias(alias)
        for name, alias in (("subscribed", "side"), ("record_id", "record_id"))
    )
    sides = stated.select(*MEMBER, pl.lit("").alias("topic"), "ts", pl.col("ts").alias("until"), side, record_id)
    return _conflicts(sides.filter(pl.col("side").is_not_null()), members, interval_s)


def alternating_subscriptions(consumer_connection: pl.DataFrame) -> pl.DataFrame:
    """Return the times in which a broker's subscription of a group went to and fro: no member states its own there.

    Columns: those of ALTERNATIONS. ``returns``: how often it came back to one that it had before.

    Each heartbeat replaces what the broker keeps for the group (ConsumerGroupInfo#updateSubscription). So it alternates
    if members differ. A change while all connections stay is one, too (0 returns): a process keeps its subscription.
    """
    by = ["consumer_group", *BROKER]
    address = pl.element().struct.field("client_addr").drop_nulls().sort()
    addresses = pl.col("connections").list.eval(address).list.join(" ").alias("addresses")
    listed = consumer_connection.filter(pl.col("subscriptions").list.len() > 0)
    lists = listed.select(*by, "ts", "record_id", addresses, subscribed()).sort("ts", "record_id")
    near = with_session(lists, by, "ts", "ts", RETURNS_S)
    key = [*by, "session"]
    before = near.with_columns(pl.col("subscribed", "addresses", "ts").shift(1).over(key).name.suffix("_before"))
    known = before.with_columns(pl.col("subscribed").is_first_distinct().over(key).alias("is_new"))
    changes = known.filter(pl.col("subscribed") != pl.col("subscribed_before"))
    stays = (pl.col("addresses") != "") & (pl.col("addresses") == pl.col("addresses_before"))
    spans = changes.group_by(key).agg(
        pl.col("ts_before").min().alias("from_ts"),
        pl.col("ts").max().alias("to_ts"),
        pl.concat_list("subscribed_before", "subscribed").explode().unique().sort().alias("sides"),
        _of_table("silver.consumer_connection").sort().alias("record_ids"),
        (~pl.col("is_new")).sum().cast(pl.Int64).alias("returns"),
        stays.any().alias("stays"),
    )
    found = spans.filter((pl.col("returns") > 0) | pl.col("stays"))
    return typed(found.with_columns(pl.lit([], _TEXTS).alias("topics")), ALTERNATIONS)


def logged_conflicts(rebalance: pl.DataFrame, owners: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return the times in which the logs of two members of a group show that each rebalances a topic of its own.

    Columns: those of CONFLICTS. The sides are the topics as text.

    A member rebalances each topic that it subscribes to, and shares it with all members of the group
    (RebalanceImpl#doRebalance). A share without a queue leaves no line, so the topic must have a queue for each member.
    ``owners`` is gold.queue_owner: a log that began later shows the queues that the member commits.
    """
    own = ~pl.col("topic").str.starts_with(RETRY)
    is_wide = (pl.col("mq_all_size") >= pl.col("cid_all_size")).all().alias("is_wide")
    record_ids = _of_table("silver.rebalance").sort().alias("record_ids")
    key = [*MEMBER, "topic"]
    by_log = rebalance.filter(own & pl.col("source").eq_missing(CLIENT_LOG))
    stated = by_log.group_by(key).agg(pl.col("ts").min(), is_wide, record_ids)
    known = pl.concat([stated.select(key), owners.filter(own).select(key)]).unique()
    side = known.group_by(MEMBER).agg(pl.col("topic").sort().str.join("; ").alias("side"))
    clients = stated.select(MEMBER).unique()
    pairs = clients.join(clients, "consumer_group", suffix="_other").filter(
        pl.col("client_id") != pl.col("client_id_other")
    )
    topics = pairs.join(stated.filter("is_wide"), MEMBER)
    of_other = known.rename({"client_id": "client_id_other"})
    alone = topics.join(of_other, ["consumer_group", "client_id_other", "topic"], how="anti")
    pair = ["consumer_group", "client_id", "client_id_other"]
    lacks = alone.group_by(pair).agg(
        pl.col("ts").min(), pl.col("topic").sort().alias("topics"), pl.col("record_ids").explode()
    )
    swapped = lacks.rename({"client_id": "client_id_other", "client_id_other": "client_id"})
    both = lacks.filter(pl.col("client_id") < pl.col("client_id_other")).join(swapped, pair, suffix="_other")
    sessions = members.select(*MEMBER, "from_ts", "to_ts").join(side, MEMBER)
    others = sessions.rename({"client_id": "client_id_other"})
    met = both.join(sessions, MEMBER).join(others, ["consumer_group", "client_id_other"], suffix="_other")
    spans = met.select(
        "consumer_group",
        pl.max_horizontal("from_ts", "from_ts_other", "ts", "ts_other").alias("from_ts"),
        pl.min_horizontal("to_ts", "to_ts_other").alias("to_ts"),
        pl.concat_list("side", "side_other").alias("sides"),
        pl.concat_list("topics", "topics_other").alias("topics"),
        pl.concat_list("record_ids", "record_ids_other").alias("record_ids"),
    )
    return _merged(spans.filter(pl.col("to_ts") > pl.col("from_ts")), 0)


def _conflicts(sides: pl.DataFrame, members: pl.DataFrame, interval_s: int) -> pl.DataFrame:
    """Return the times in which different clients were on different sides of one group's topic.

    Columns: consumer_group, from_ts, to_ts, sides, topics, record_ids.

    ``sides`` has a row for each statement of a client: GROUP_TOPIC, client_id, ts, until, side, record_id.
    """
    several = sides.group_by(GROUP_TOPIC).agg(pl.col("side").drop_nulls().n_unique().alias("_sides"))
    disputed = sides.join(several.filter(pl.col("_sides") > 1), GROUP_TOPIC, how="semi")
    spans = _spans(disputed, members, interval_s)
    most = spans.group_by(GROUP_TOPIC).len()["len"].max()
    size = max(1, MOST_PAIRS // most) if isinstance(most, int) and most else 1
    # The pairs of a few spans at a time are merged, so that memory does not hold the pairs of all.
    found = [_merged(_overlaps(few, spans), interval_s) for few in spans.iter_slices(size)]
    return _merged(pl.concat([pl.DataFrame(schema=CONFLICTS), *found]), interval_s)


def _spans(sides: pl.DataFrame, members: pl.DataFrame, interval_s: int) -> pl.DataFrame:
    """Return the time spans of clients on a side.

    Columns: consumer_group, topic, client_id, side, from_ts, to_ts, record_id.

    A side is valid from one row to the next, and after the last one until the client left or the next row was due.
    """
    by = [*GROUP_TOPIC, "client_id", "side"]
    held = merge(sides, by, pl.col("record_id").min(), begin="ts", end="until", gap_s=3 * interval_s)
    spans = held.with_columns(pl.col("to_ts") + pl.duration(seconds=interval_s))
    left = members.filter("left").select(*MEMBER, pl.col("to_ts").alias("_left"))
    inside = (pl.col("_left") >= pl.col("from_ts")) & (pl.col("_left") < pl.col("to_ts"))
    ended = (
        spans.join(left, MEMBER, how="left")
        .group_by(spans.columns)
        .agg(pl.when(inside).then("_left").min().alias("_left"))
    )
    return ended.with_columns(pl.coalesce("_left", "to_ts").alias("to_ts")).drop("_left")


def _overlaps(few: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """Return the overlaps of some spans with all spans, of another client on another side.

    Columns: consumer_group, from_ts, to_ts, sides, topics, record_ids.
    """
    pairs = few.join(spans, GROUP_TOPIC, suffix="_other").filter(
        (pl.col("client_id") != pl.col("client_id_other"))
        & (pl.col("side") < pl.col("side_other"))
        & (pl.col("from_ts") <= pl.col("to_ts_other"))
        & (pl.col("from_ts_other") <= pl.col("to_ts"))
    )
    return pairs.select(
        "consumer_group",
        pl.max_horizontal("from_ts", "from_ts_other").alias("from_ts"),
        pl.min_horizontal("to_ts", "to_ts_other").alias("to_ts"),
        pl.concat_list("side", "side_other").alias("sides"),
        pl.concat_list("topic").alias("topics"),
        pl.concat_list("record_id", "record_id_other").alias("record_ids"),
    )


def _merged(conflicts: pl.DataFrame, interval_s: int) -> pl.DataFrame:
    """Return the conflicts; those of a group that are at most ``interval_s`` seconds apart are one.

    Columns: consumer_group, from_ts, to_ts, sides, topics, record_ids.
    """
    sets = [pl.col(name).explode().unique().sort() for name in ("sides", "topics", "record_ids")]
    merged = merge(conflicts, (GROUP,), *sets, gap_s=interval_s)
    return merged.select(list(CONFLICTS))


def unsubscribed_topics(heartbeat: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return the times in which all members of a group had stated lists without a topic that one had listed before.

    Columns: consumer_group, topic, from_ts, to_ts, record_ids (of the lists without it).

    A list is valid from one statement of the client to the next; a member without a statement may subscribe.
    ``members`` is the frame of `membership`.
    """
    lists = stated_subscriptions(heartbeat).filter(pl.col("topics").list.len() > 0)
    changes = lists.filter(pl.col("subscribed").ne_missing(pl.col("subscribed").shift().over(MEMBER)))
    topic = pl.col("topics").alias("topic")
    first = changes.explode("topics").group_by("consumer_group", topic).agg(pl.col("ts").min().alias("first_ts"))
    until = changes.with_columns(pl.col("ts").shift(-1).over(MEMBER).alias("until"))
    without = first.join(until, "consumer_group").filter(
        ~pl.col("topics").list.contains(pl.col("topic")) & (pl.col("ts") > pl.col("first_ts"))
    )
    sessions = members.select(*MEMBER, "from_ts", "to_ts")
    stated_spans = without.select(*MEMBER, "topic", "record_id", from_ts="ts", to_ts="until")
    dropped = intersect(stated_spans, sessions, MEMBER).select(*GROUP_TOPIC, "from_ts", "to_ts", "record_id")
    present = dropped.select(GROUP_TOPIC).unique().join(sessions, "consumer_group")
    counted = count_spans({"present": present, "dropped": dropped}, GROUP_TOPIC)
    by_all = counted.filter((pl.col("dropped") > 0) & (pl.col("dropped") == pl.col("present")))
    spans = merge(by_all, GROUP_TOPIC)
    stated = spans.join(dropped.select(*GROUP_TOPIC, "record_id", since="from_ts", until="to_ts"), GROUP_TOPIC)
    during = stated.filter((pl.col("since") < pl.col("to_ts")) & (pl.col("until") > pl.col("from_ts")))
    return during.group_by(*GROUP_TOPIC, "from_ts", "to_ts").agg(
        pl.col("record_id").unique().sort().alias("record_ids")
    )
