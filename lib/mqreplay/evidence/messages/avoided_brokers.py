"""Spans in which a producer sent to the other brokers of a topic, but not to one of them.

A producer avoids a broker for as long as MQFaultStrategy isolates it (sendLatencyFaultEnable), or while its route of
the topic lacks the broker. A span counts only with such a cause: an application may choose its queues.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.core.fault_strategy import default_settings
from mqreplay.core.version import CLIENT_4
from mqreplay.evidence.messages.send_outcomes import TURN, failed
from mqreplay.evidence.time_spans import INSTANT

TURNS: Final = 2  # whole turns past the broker, at least
ISOLATED, NOT_IN_ROUTE = "isolated", "not_in_route"
# The longest isolation by default, of 4.x.
LONGEST_S: Final = default_settings(CLIENT_4).not_available_duration[-1] // 1000
AVOIDED: Final[dict[str, pl.DataType]] = {
    "client_id": pl.String(),
    "topic": pl.String(),
    "broker_name": pl.String(),
    "from_ts": INSTANT,
    "to_ts": INSTANT,
    "cause": pl.String(),
    "passed": pl.Int64(),  # sends to other brokers meanwhile
    "record_id": pl.String(),  # of the send to the broker that ended the span
}


def avoided_brokers(tries: pl.DataFrame, changes: pl.DataFrame, queues: pl.DataFrame, least_s: int) -> pl.DataFrame:
    """Return the spans of at least ``least_s`` seconds; columns AVOIDED.

    ``tries`` are those of `send_tries`, ``changes`` and ``queues`` those of `publish_routes`. A span ends with the next
    send to the broker.
    """
    known = tries.filter(pl.col("client_id").is_not_null() & ~pl.col("is_logged") & pl.col("queues").is_not_null())
    placed = known.sort("began_ts", "ts", "msg_id", "record_id").with_columns(
        pl.int_range(pl.len()).over(TURN).alias("place")
    )
    by = [*TURN, "broker_name"]
    before = placed.with_columns(
        pl.col("place").shift(1).over(by).alias("last_place"),
        pl.coalesce("response_ts", "ts").shift(1).over(by).alias("from_ts"),
        failed().shift(1).over(by).alias("last_failed"),
    ).with_columns((pl.col("place") - pl.col("last_place") - 1).cast(pl.Int64).alias("passed"))
    long = (pl.col("ts") - pl.col("from_ts")) >= pl.duration(seconds=least_s)
    spans = before.filter(long & (pl.col("passed") >= TURNS * pl.col("queues")))
    short = (pl.col("ts") - pl.col("from_ts")) <= pl.duration(seconds=LONGEST_S)
    lacking = _lacking(spans, changes, queues)
    cause = (
        pl.when(pl.col("record_id").is_in(lacking.implode()))
        .then(pl.lit(NOT_IN_ROUTE))
        .when(pl.col("last_failed") & short)
        .then(pl.lit(ISOLATED))
    )
    found = spans.with_columns(cause.alias("cause"), pl.col("ts").alias("to_ts")).filter(pl.col("cause").is_not_null())
    return found.select([pl.col(name).cast(kind) for name, kind in AVOIDED.items()])


def _lacking(spans: pl.DataFrame, changes: pl.DataFrame, queues: pl.DataFrame) -> pl.Series:
    """Return record_id of the spans during which a route of the topic lacked the broker."""
    routes = spans.select("topic", "broker_name", "from_ts", "ts", "record_id").join(changes, "topic")
    during = routes.filter(pl.col("known_ts").is_between("from_ts", "ts"))
    has = queues.select("route_id", "broker_name").unique()
    return during.join(has, ["route_id", "broker_name"], how="anti")["record_id"].unique()
