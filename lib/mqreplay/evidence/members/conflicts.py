"""Members of one group with different strategies or subscriptions."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.members.membership import MEMBER, subscriptions, within_session
from mqreplay.evidence.members.observed_clients import CLIENT_LOG, CONNECTION, RUNNING_INFO
from mqreplay.evidence.time_spans import INSTANT, with_session

GROUP = ["consumer_group"]
_GROUP_TOPIC = ["consumer_group", "topic"]
_TEXTS = pl.List(pl.String)
CONFLICTS: dict[str, pl.DataType] = {
    "consumer_group": pl.String(),
    "from_ts": INSTANT,
    "to_ts": INSTANT,
    "sides": _TEXTS,
    "topics": _TEXTS,
    "record_ids": _TEXTS,  # of the table that a conflict is of as a rule, or "table record_id"
}
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


def _conflicts(sides: pl.DataFrame, members: pl.DataFrame, interval_s: int) -> pl.DataFrame:
    """Return the times in which different clients were on different sides of one group's topic.

    Columns: consumer_group, from_ts, to_ts, sides, topics, record_ids.

    ``sides`` has a row for each statement of a client: _GROUP_TOPIC, client_id, ts, until, side, record_id.
    """
    several = sides.group_by(_GROUP_TOPIC).agg(pl.col("side").drop_nulls().n_unique().alias("_sides"))
    disputed = sides.join(several.filter(pl.col("_sides") > 1), _GROUP_TOPIC, how="semi")
    spans = _spans(disputed, members, interval_s)
    most = spans.group_by(_GROUP_TOPIC).len()["len"].max()
    size = max(1, MOST_PAIRS // most) if isinstance(most, int) and most else 1
    # The pairs of a few spans at a time are merged, so that memory does not hold the pairs of all.
    found = [_merged(_overlaps(few, spans), interval_s) for few in spans.iter_slices(size)]
    return _merged(pl.concat([pl.DataFrame(schema=CONFLICTS), *found]), interval_s)


def _spans(sides: pl.DataFrame, members: pl.DataFrame, interval_s: int) -> pl.DataFrame:
    """Return the time spans of clients on a side.

    Columns: consumer_group, topic, client_id, side, from_ts, to_ts, record_id.

    A side is valid from one row to the next, and after the last one until the client left or the next row was due.
    """
    by = [*_GROUP_TOPIC, "client_id", "side"]
    held = with_session(sides, by, "ts", "until", 3 * interval_s)
    spans = held.group_by(*by, "session").agg(
        pl.col("ts").min().alias("from_ts"),
        (pl.col("until").max() + pl.duration(seconds=interval_s)).alias("to_ts"),
        pl.col("record_id").min(),
    )
    left = members.filter("left").select(*MEMBER, pl.col("to_ts").alias("_left"))
    inside = (pl.col("_left") >= pl.col("from_ts")) & (pl.col("_left") < pl.col("to_ts"))
    ended = (
        spans.join(left, MEMBER, how="left")
        .group_by(spans.columns)
        .agg(pl.when(inside).then("_left").min().alias("_left"))
    )
    return ended.with_columns(pl.coalesce("_left", "to_ts").alias("to_ts")).drop("_left", "session")


def _overlaps(few: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """Return the overlaps of some spans with all spans, of another client on another side.

    Columns: consumer_group, from_ts, to_ts, sides, topics, record_ids.
    """
    pairs = few.join(spans, _GROUP_TOPIC, suffix="_other").filter(
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
    together = with_session(conflicts, GROUP, "from_ts", "to_ts", interval_s)
    sets = [pl.col(name).explode().unique().sort() for name in ("sides", "topics", "record_ids")]
    merged = together.group_by(*GROUP, "session").agg(pl.col("from_ts").min(), pl.col("to_ts").max(), *sets)
    return merged.select(list(CONFLICTS))
