"""Changes of a group: members that join or leave, queues that get another owner, and rounds of such changes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from typing import Final

import polars as pl

from mqreplay.core.rebalance_lock_manager import REBALANCE_LOCK_INTERVAL, REBALANCE_LOCK_MAX_LIVE_TIME
from mqreplay.evidence.intervals import INSTANT, with_session, with_state
from mqreplay.words.keys import GROUP, GROUP_QUEUE

# The lock of an orderly client that died blocks a queue for 60 s; a client rebalances every 20 s.
ORDERLY_S: Final = (REBALANCE_LOCK_MAX_LIVE_TIME + REBALANCE_LOCK_INTERVAL) // 1000
BEFORE_NEXT: Final = dt.timedelta(seconds=10)  # a client that leaves releases its queues a little before
HOURLY: Final = "1h"
JOIN, LEAVE, MOVE = "join", "leave", "move"  # kinds of changes


def member_changes(members: pl.DataFrame, unsure: pl.DataFrame, until: pl.Expr, silent_s: int) -> pl.DataFrame:
    """Return each join and leave outside of `unsure_spans`. Columns: consumer_group, ts, kind, cycles."""
    reach = dt.timedelta(seconds=silent_s)
    place = pl.col("client_id").str.split("@").list.first().alias("place")
    sessions = members.select(
        GROUP, place, "from_ts", "to_ts", "left", pl.col("dropped").is_not_null().alias("dropped")
    )
    joins = sessions.select(GROUP, "place", pl.col("from_ts").alias("ts"), pl.lit(JOIN).alias("kind"))
    # Without a request or a line that shows it, a client that is silent to the end may still be there.
    gone = pl.col("left") | pl.col("dropped") | (pl.col("to_ts") < until - reach)
    leaves = sessions.filter(gone).select(GROUP, "place", pl.col("to_ts").alias("ts"), pl.lit(LEAVE).alias("kind"))
    both = pl.concat([joins, leaves]).sort("ts", "kind")
    most = _processes(sessions)
    changed = _sure(both, unsure)
    joined = changed.filter(pl.col("kind") == JOIN).sort("ts")
    within = joined.rolling("ts", period=HOURLY, group_by=[GROUP, "place"]).agg(pl.len().alias("joins"))
    cycles = within.join(most, [GROUP, "place"]).select(
        GROUP,
        "ts",
        pl.lit(JOIN).alias("kind"),
        (pl.col("joins") // pl.col("processes")).cast(pl.Int64).alias("cycles"),
    )
    left = changed.filter(pl.col("kind") == LEAVE).select(GROUP, "ts", "kind", pl.lit(0, pl.Int64).alias("cycles"))
    return pl.concat([cycles, left])


def _processes(sessions: pl.DataFrame) -> pl.DataFrame:
    """Return how many processes of a host were in the group at once. Columns: consumer_group, place, processes.

    A session lasts until its last sign, whether or not the client is known to be gone.
    """
    steps = pl.concat(
        [
            sessions.select(GROUP, "place", pl.col("from_ts").alias("ts"), pl.lit(1).alias("step")),
            sessions.select(GROUP, "place", pl.col("to_ts").alias("ts"), pl.lit(-1).alias("step")),
        ]
    ).sort("ts", "step")
    there = steps.with_columns(pl.col("step").cum_sum().over(GROUP, "place").alias("processes"))
    return there.group_by(GROUP, "place").agg(pl.col("processes").max().clip(lower_bound=1))


def moves(owners: pl.DataFrame, unsure: pl.DataFrame) -> pl.DataFrame:
    """Return each instant at which a queue got another owner, outside of `unsure_spans`.

    Columns: consumer_group, ts, kind, cycles. Pulls alone do not show it: an application may choose its queues.
    """
    other = pl.col("client_id") != pl.col("client_id").shift(1).over(GROUP_QUEUE)
    moved = owners.filter(pl.col("source") != "pull").sort("from_ts", "to_ts").filter(other)
    at = moved.select(
        GROUP, pl.col("from_ts").alias("ts"), pl.lit(MOVE).alias("kind"), pl.lit(0, pl.Int64).alias("cycles")
    )
    return _sure(at.unique(), unsure)


def unsure_spans(begun: Collection[dt.datetime], holes: pl.DataFrame, silent_s: int) -> pl.DataFrame:
    """Return when a sign of life may be a client's first only in the recording, or its last: columns since, until.

    ``begun`` are the starts of the recording, ``holes`` the frame of `recorder_holes`.
    """
    reach = dt.timedelta(seconds=silent_s)
    starts = pl.DataFrame({"since": list(begun)}, {"since": INSTANT})
    unseen = holes.select((pl.col("from_ts") - reach).alias("since"), (pl.col("to_ts") + reach).alias("until"))
    spans = pl.concat([starts.with_columns((pl.col("since") + reach).alias("until")), unseen]).sort("since")
    return spans.with_columns(pl.col("until").cum_max())


def _sure(changes: pl.DataFrame, unsure: pl.DataFrame) -> pl.DataFrame:
    """Return the changes outside of the spans of `unsure_spans`, in the order of their times."""
    met = with_state(changes, unsure, (), "ts", "since")
    return met.filter((pl.col("until") < pl.col("ts")).fill_null(value=True)).select(changes.columns)


def rounds_of(changes: pl.DataFrame, orderly: pl.DataFrame, interval_s: int, until: pl.Expr) -> pl.DataFrame:
    """Return the rounds; at_ts is the instant at which the group should have settled.

    ``orderly`` has the groups that lock their queues. Others have settled two rebalances after the last change.
    """
    locking, others = (changes.join(orderly, GROUP, how=how) for how in ("semi", "anti"))
    return pl.concat(
        [_rounds(locking, ORDERLY_S, interval_s, until), _rounds(others, 2 * interval_s, interval_s, until)]
    )


def _rounds(changes: pl.DataFrame, settled_s: int, interval_s: int, until: pl.Expr) -> pl.DataFrame:
    bursts = (
        with_session(changes, [GROUP], "ts", "ts", interval_s)
        .group_by(GROUP, "session")
        .agg(
            pl.col("ts").min().alias("from_ts"),
            pl.col("ts").max().alias("to_ts"),
            *((pl.col("kind") == kind).sum().cast(pl.Int64).alias(f"{kind}s") for kind in (JOIN, LEAVE)),
            pl.col("cycles").max(),
        )
        .drop("session")
        .sort("from_ts")
    )
    alone = bursts.filter(pl.col("joins") + pl.col("leaves") == 0)
    within = alone.rolling("from_ts", period=HOURLY, group_by=GROUP).agg(pl.len().cast(pl.Int64).alias("alone"))
    found = (
        with_session(bursts.join(within, [GROUP, "from_ts"], how="left"), [GROUP], "from_ts", "to_ts", settled_s)
        .group_by(GROUP, pl.col("session").alias("round"))
        .agg(
            pl.col("from_ts").min(),
            pl.col("to_ts").max(),
            pl.col("joins", "leaves").sum(),
            pl.max_horizontal(pl.col("cycles").max(), pl.col("alone").max()).alias("cycles"),
        )
        .sort("from_ts")
    )
    settled = dt.timedelta(seconds=settled_s)
    following = pl.col("from_ts").shift(-1).over(GROUP) - BEFORE_NEXT
    at_ts = pl.min_horizontal(following, pl.col("to_ts") + settled, until)
    return found.with_columns(
        pl.col("from_ts").dt.date().alias("day"),
        pl.max_horizontal(at_ts, "to_ts").alias("at_ts"),
        (at_ts < pl.col("to_ts") + settled - BEFORE_NEXT).alias("is_cut"),
    )
