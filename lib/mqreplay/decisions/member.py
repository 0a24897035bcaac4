"""gold.member: the sessions of clients in consumer groups, by every sign of life of a client.

A session begins with a client's first sign, and ends when it unregisters, when a broker drops it, or with its last sign
before a silence (evidence/members/membership.py; ConsumerManager#scanNotActiveChannel drops it after 120 s).
"""

from __future__ import annotations

import datetime as dt
from typing import Final

import polars as pl

from mqreplay.decisions.decision import Decision, RowCount, by_name
from mqreplay.evidence.intervals import INSTANT

COLUMNS: Final = ("day", "consumer_group", "client_id", "from_ts", "to_ts", "ended", "shares_queues")
UNREGISTERED: Final = "unregistered"
SILENT: Final = "silent"


def member(members: pl.DataFrame, unshared: pl.DataFrame, begin: dt.datetime) -> pl.DataFrame:
    """Return gold.member: the sessions from an instant on, earlier parts cut off.

    ``members`` is the frame of `membership`, ``unshared`` that of `unshared_groups`. ``ended`` is how the session
    ended; of one that goes on it is 'silent' at the client's last sign of life.
    """
    start = pl.lit(begin, INSTANT)
    alone = unshared.select("consumer_group", pl.lit(value=False).alias("shares_queues"))
    how = pl.when("left").then(pl.lit(UNREGISTERED)).otherwise(pl.coalesce("dropped", pl.lit(SILENT)))
    cut = members.filter(pl.col("to_ts") >= start).with_columns(pl.max_horizontal("from_ts", start).alias("from_ts"))
    return (
        cut.join(alone, "consumer_group", how="left")
        .with_columns(
            pl.col("from_ts").dt.date().alias("day"),
            how.alias("ended"),
            pl.col("shares_queues").fill_null(value=True),
        )
        .select(COLUMNS)
    )


GROUP_MEMBER: Final = Decision(
    table="gold.member",
    instant="from_ts",
    one="member",
    many="members",
    importance=24,
    count=RowCount(
        "silver.heartbeat",
        number=pl.col("client_id").filter(pl.col("kind") == "HEART_BEAT").n_unique(),
        decision="finding consumer_lost",
    ),
    rows=by_name(member, unshared="unshared_groups"),
)
