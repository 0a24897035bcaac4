"""Clients that a broker removed from a group although they did not unregister, by its log.

ConsumerGroupInfo#doChannelCloseEvent removes a client whose connection closed; the line names its last heartbeat.
ConsumerManager#scanNotActiveChannel removes one that sent no heartbeat for 120 s, every 10 s; the line has no times.
A broker that stops closes all connections, and a client that lost one connects again with its next heartbeat. So the
log must go on after it.
"""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.frames import ms, typed
from mqreplay.evidence.gap_rows import gap_rows
from mqreplay.evidence.intervals import merge, with_state
from mqreplay.evidence.members.member_gaps import BROKER_LOG
from mqreplay.evidence.members.membership import CLOSED, EXPIRED, SIGNS
from mqreplay.evidence.members.observed_clients import polled
from mqreplay.words.keys import BROKER, MEMBER

EXPIRED_S = 120  # ConsumerManager#CHANNEL_EXPIRED_TIMEOUT
PAUSE_S = 120  # a running broker writes a line at least every 60 s
STOPS_S = 60  # of a broker that stops: from the first closed connection to the last line
DECISION = "finding consumer_lost"
HEARTBEATS_KIND = "heartbeats"
REASON = (
    "{} of the group did not unregister, and the log of {} does not show who came back: the log ends, or the broker"
    " stopped. Next time: import the whole broker.log of each broker, or rocketmq_client.log of each client"
)


def dropped_clients(heartbeat: pl.DataFrame, broker_runtime: pl.DataFrame, lost_s: int) -> pl.DataFrame:
    """Return each client that a broker dropped, at ``ts``.

    Columns: consumer_group, client_id, broker_name, broker_id, heard_ts (the last heartbeat, null: not known), ts,
    proven.

    ``proven``: the log went on for ``lost_s`` seconds, and the broker did not stop. The frames are silver's.
    """
    closes = heartbeat.filter(pl.col("closed_consumer_group").is_not_null()).select(
        pl.col("closed_consumer_group").alias("consumer_group"), "client_id", *BROKER, "heard_ts", "ts"
    )
    logged = polled(broker_runtime, BROKER_LOG)
    lines = logged.filter(pl.col("error").is_null())
    runs = merge(lines, BROKER, at="ts", gap_s=PAUSE_S).rename({"from_ts": "run_ts", "to_ts": "end_ts"})
    stops = logged.filter(pl.col("error").is_not_null()).select(*BROKER, "ts", pl.col("ts").alias("stop_ts"))
    # A line of the same second may be later than the record of it.
    placed = closes.with_columns((pl.col("ts") + pl.duration(seconds=1)).alias("_ts"), ts_ms=ms("ts"))
    near = with_state(placed, runs, BROKER, "_ts", "run_ts")
    at = near.sort("ts").join_asof(stops.sort("ts"), on="ts", by=BROKER, strategy="nearest", check_sortedness=False)
    went_on = pl.col("end_ts") - pl.col("ts") > pl.duration(seconds=lost_s)
    stopped = (pl.col("stop_ts") - pl.col("ts")).abs() <= pl.duration(seconds=STOPS_S)
    proven = went_on.fill_null(False) & ~stopped.fill_null(False)
    return at.select(*MEMBER, *BROKER, "heard_ts", "ts", proven.alias("proven"))


def dropped_signs(dropped: pl.DataFrame) -> pl.DataFrame:
    """Return the proven rows of `dropped_clients` as signs, each from the last heartbeat to the broker's drop.

    Columns: consumer_group, client_id, from_ts, to_ts, sign.
    """
    last = pl.coalesce("heard_ts", pl.col("ts") - pl.duration(seconds=EXPIRED_S))
    sign = pl.when(pl.col("heard_ts").is_null()).then(pl.lit(EXPIRED)).otherwise(pl.lit(CLOSED))
    rows = dropped.filter("proven").select(
        *MEMBER, pl.min_horizontal(last, "ts").alias("from_ts"), pl.col("ts").alias("to_ts"), sign.alias("sign")
    )
    return typed(rows, SIGNS)


def dropped_gaps(dropped: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return the gaps of clients that a broker dropped as its log ended, and that nothing shows later.

    ``members`` is the frame of `membership`. A client that unregistered, or whose session went on, has none.
    """
    sessions = members.select(*MEMBER, pl.col("from_ts"), pl.col("to_ts"), "left")
    doubtful = dropped.filter(~pl.col("proven")).with_row_index("_row")
    met = doubtful.join(sessions, MEMBER)
    shown = (pl.col("to_ts") > pl.col("ts")) | (
        pl.col("left") & (pl.col("to_ts") >= pl.coalesce("heard_ts", "ts") - pl.duration(seconds=EXPIRED_S))
    )
    unknown = doubtful.join(met.filter(shown), "_row", how="anti")
    count = pl.col("client_id").n_unique().cast(pl.Int64)
    day = pl.col("ts").dt.date().alias("day")
    of_group = unknown.group_by(day, "consumer_group", "broker_name").agg(
        pl.col("ts").min().alias("from_ts"), pl.col("ts").max().alias("to_ts"), count.alias("decisions")
    )
    number = pl.col("decisions")
    text = pl.when(number == 1).then(pl.lit("1 member")).otherwise(pl.format("{} members", number))
    gaps = of_group.with_columns(
        pl.lit(DECISION).alias("decision"),
        pl.lit(HEARTBEATS_KIND).alias("evidence"),
        pl.format(REASON, text, "broker_name").alias("reason"),
    )
    return gap_rows(gaps)
