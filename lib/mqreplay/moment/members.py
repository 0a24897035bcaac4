"""The members of groups at an instant, with how they share queues."""

from __future__ import annotations

import datetime as dt
from typing import Final

import polars as pl

from mqreplay.decisions.member import SILENT
from mqreplay.evidence.members.membership import MEMBER, consumer_groups
from mqreplay.moment.instant import Recorded

LAST_SIGN: Final = dt.timedelta(seconds=60)  # two heartbeats: the last sign of life of a client that goes on
COLUMNS: Final = (
    *(
        *MEMBER,
        "member_since",
        "shares_queues",
        "message_model",
        "consume_from_where",
        "strategy",
        "queues",
        "computed_ts",
    ),
)


def members_at(recorded: Recorded, at: dt.datetime, group: str | None = None) -> pl.DataFrame:
    """Return one row for each client that was a member of a group: COLUMNS.

    ``strategy`` is that of the client's last rebalance, ``queues`` the number of queues that it computed for itself
    then, of all its topics, at ``computed_ts``; null where none was recorded.
    """
    held = pl.col("to_ts") >= at
    sessions = recorded.begun("gold.member", at).filter(held | goes_on(recorded))
    chosen = (sessions if group is None else sessions.filter(pl.col("consumer_group") == group)).collect()
    since = chosen.group_by(MEMBER).agg(pl.col("from_ts").min().alias("member_since"), pl.col("shares_queues").all())
    known = since.join(_stated(recorded, at), MEMBER, how="left").join(_computed(recorded, at), MEMBER, how="left")
    return known.select(COLUMNS).sort(MEMBER)


def goes_on(recorded: Recorded) -> pl.Expr:
    """Return whether a session of gold.member ends only because the recording does."""
    return (pl.col("ended") == SILENT) & (pl.col("to_ts") >= recorded.last - LAST_SIGN)


def _stated(recorded: Recorded, at: dt.datetime) -> pl.DataFrame:
    """Return what the last heartbeat of each member states: message_model, consume_from_where."""
    beats = recorded.before("silver.heartbeat", "ts", at, dt.timedelta(days=1))
    groups = consumer_groups(beats.filter(pl.col("consumer_data_set").is_not_null()).collect())
    last = groups.sort("ts", "record_id").group_by(MEMBER).last()
    return last.select(*MEMBER, "message_model", "consume_from_where")


def _computed(recorded: Recorded, at: dt.datetime) -> pl.DataFrame:
    """Return the shares that each member computed last, of all its topics: strategy, queues, computed_ts."""
    computed = recorded.before("silver.rebalance", "ts", at, dt.timedelta(days=1)).filter(
        pl.col("mq_divided").is_not_null()
    )
    last = computed.sort("ts", "record_id").group_by(*MEMBER, "topic").last()
    shares = last.group_by(MEMBER).agg(
        pl.col("strategy").sort_by("ts").last(),
        pl.col("mq_divided").list.len().sum().cast(pl.Int64).alias("queues"),
        pl.col("ts").max().alias("computed_ts"),
    )
    return shares.collect()
