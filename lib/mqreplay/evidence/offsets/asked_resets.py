"""Resets of consumer offsets of which only the request is known: who asked a broker for it, and what it answered.

A broker logs the address that asked (AdminBrokerProcessor#resetOffset) and the clients that it sent it to
(Broker2Client#resetOffset), but not the offsets.
"""

from __future__ import annotations

import polars as pl

from mqreplay.decode.server_requests import INVOKE_BROKER_TO_RESET_OFFSET, RESET_CONSUMER_CLIENT_OFFSET
from mqreplay.evidence.arrays.nearest import as_of
from mqreplay.evidence.time_spans import INSTANT

PLACE = ["consumer_group", "topic", "broker_name"]
# ``is_sent``: the broker sent it to a client, or set the offsets itself. ``to_ms``: the time to go back to (epoch ms).
ASKED: dict[str, pl.DataType] = {
    "consumer_group": pl.String(),
    "topic": pl.String(),
    "broker_name": pl.String(),
    "ts": INSTANT,
    "record_id": pl.String(),
    "client_addr": pl.String(),
    "is_sent": pl.Boolean(),
    "error": pl.String(),
    "to_ms": pl.Int64(),
}


def asked_resets(server_request: pl.DataFrame) -> pl.DataFrame:
    """Return the requests to reset offsets that brokers received, and those that they sent without offsets.

    Columns: consumer_group, topic, broker_name, ts, record_id, client_addr, is_sent, error, to_ms.
    """
    offsets = pl.col("reset_offsets").list.len().fill_null(0) > 0
    code = pl.col("request_code")
    is_asked = code == INVOKE_BROKER_TO_RESET_OFFSET
    found = server_request.filter(is_asked | ((code == RESET_CONSUMER_CLIENT_OFFSET) & ~offsets))
    timestamp = pl.col("ext").map.get("timestamp")
    named = found.with_columns(is_sent=~is_asked | offsets, to_ms=timestamp.cast(pl.Int64, strict=False))
    return named.select(pl.col(name).cast(kind) for name, kind in ASKED.items())


def with_asked_resets(breaks: pl.DataFrame, asked: pl.DataFrame, resets: pl.DataFrame, reach_s: int) -> pl.DataFrame:
    """Return the breaks; the cause is reset where an offset went back up to ``reach_s`` seconds after a request.

    ``breaks`` are rows of gold.offset_continuity, ``asked`` is the frame of `asked_resets`, ``resets`` that of
    offset_causes.offset_resets. Only requests count of which no offsets are known: the group, topic and broker decide.
    A reset to the end of the queues lowers no offset.
    """
    back = asked.filter(pl.col("error").is_null() & (pl.col("to_ms").fill_null(0) >= 0))
    near = as_of(back, resets, PLACE, "ts", {"_offsets": "ts"}, right_at="ts", after=True)
    known = (pl.col("_offsets") <= pl.col("ts") + pl.duration(seconds=reach_s)).fill_null(False)
    accepted = near.filter(~known)
    met = as_of(breaks, accepted, PLACE, "to_ts", {"_asked": "ts"}, right_at="ts")
    open_causes = pl.col("cause").is_in(["unknown", "set_from_outside", "client_commit"])
    went_back = (pl.col("kind") == "rewind") & open_causes & (pl.col("broker_id") == 0)
    in_reach = pl.col("_asked") >= pl.col("from_ts") - pl.duration(seconds=reach_s)
    cause = pl.when(went_back & in_reach).then(pl.lit("reset")).otherwise("cause")
    return met.with_columns(cause=cause).drop("_asked")


def wide_resets(asked: pl.DataFrame) -> pl.DataFrame:
    """Return accepted requests with the columns of offset_causes.offset_resets; queue and offsets are null."""
    none = {"queue_id": pl.Int32, "asked": pl.Int64, "delivered_to": pl.Int64, "offset": pl.Int64}
    accepted = asked.filter(pl.col("error").is_null()).sort("ts", "record_id")
    return accepted.select(
        "consumer_group",
        pl.lit(None, pl.String).alias("broker_name"),
        "topic",
        *(pl.lit(None, kind).alias(name) for name, kind in none.items()),
        pl.col("ts").alias("since"),
        "ts",
        pl.lit("silver.server_request").alias("table_name"),
        "record_id",
    )
