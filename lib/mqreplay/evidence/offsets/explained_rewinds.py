"""Rewinds that no commit, reset or log explains, and a restart of the broker or a change of the queue's owner does."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from mqreplay.evidence.arrays.keys import KEY
from mqreplay.evidence.arrays.nearest import as_of

HANDOVER, RESTART, UNKNOWN = "handover", "restart", "unknown"


def with_explained_rewinds(
    breaks: pl.DataFrame, owners: pl.DataFrame, outages: pl.DataFrame, handover_s: int
) -> pl.DataFrame:
    """Return the breaks; the cause of a rewind is RESTART or HANDOVER where it was unknown and one of these happened.

    ``breaks`` are rows of gold.offset_continuity. A broker that is killed comes back with the offsets that it saved
    last: ``outages`` has broker_name, broker_id and from_ts of each. While a queue goes from one client to another, for
    up to ``handover_s`` seconds, both commit; ``owners`` is the frame of possible_owners.py.
    """
    return with_handovers(_with_restarts(breaks, outages), owners, handover_s, [UNKNOWN])


def with_handovers(breaks: pl.DataFrame, owners: pl.DataFrame, handover_s: int, of: Sequence[str]) -> pl.DataFrame:
    """Return the breaks; the cause is HANDOVER where two clients held the queue just before, or while, it went back.

    ``of``: causes that this explains; ``owners`` is the frame of possible_owners.py. Both clients commit what they have
    consumed (RebalanceImpl#updateProcessQueueTableInRebalance persists on removal), and
    ConsumerOffsetManager takes what comes last. Where no commits were recorded, owners alone show it.
    """
    seconds = _second_holders(owners)
    held = as_of(breaks, seconds, KEY, "to_ts", {"second_until": "second_until"}, right_at="from_ts")
    went_back = pl.col("cause").is_in(of) & (pl.col("kind") == "rewind")
    by_two = pl.col("second_until") >= pl.col("from_ts") - pl.duration(seconds=handover_s)
    cause = pl.when(went_back & by_two).then(pl.lit(HANDOVER)).otherwise("cause")
    return held.with_columns(cause=cause).drop("second_until")


def _with_restarts(breaks: pl.DataFrame, outages: pl.DataFrame) -> pl.DataFrame:
    """Return the breaks; the cause is RESTART where none is known and the broker was down between the two copies."""
    down = outages.select("broker_name", "broker_id", pl.col("from_ts").alias("down_ts")).sort("down_ts")
    by = ["broker_name", "broker_id"]
    met = breaks.sort("to_ts").join_asof(
        down, left_on="to_ts", right_on="down_ts", by=by, strategy="backward", check_sortedness=False
    )
    between = (pl.col("down_ts") >= pl.col("from_ts")) & (pl.col("cause") == UNKNOWN)
    cause = pl.when(between & (pl.col("kind") == "rewind")).then(pl.lit(RESTART)).otherwise("cause")
    return met.with_columns(cause=cause).drop("down_ts")


def _second_holders(owners: pl.DataFrame) -> pl.DataFrame:
    """Return the owners' spans, oldest first, with ``second_until``.

    Of all spans of the queue up to this one, let the leader be the client that held it longest. ``second_until`` is
    until when any other client held it: so at least two clients held the queue at or after an instant if, and only if,
    ``second_until`` is not before it.
    """
    spans = owners.select(*KEY, "client_id", "from_ts", "to_ts").sort("from_ts")
    spans = spans.with_columns(longest=pl.col("to_ts").cum_max().shift(1).over(KEY))
    leads = pl.col("longest").is_null() | (pl.col("to_ts") > pl.col("longest"))
    leader = pl.when(leads).then("client_id").forward_fill().shift(1).over(KEY)
    other = pl.when(pl.col("client_id") != leader).then(pl.min_horizontal("to_ts", "longest"))
    return spans.with_columns(second_until=other).with_columns(pl.col("second_until").cum_max().over(KEY))
