"""What a client had in mind when it pulled: the suggestion it kept for the queue, and the broker's addresses it knew.

Both were told to this very client before, so its pulls of a broker name and what it was told come together once and
are looked up there with numpy (nearest.py); as windows of Spark this was three sorts of wide rows.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from mqreplay.replay.as_of import KNOWN, apart, as_known, completed, group_shares, nullable
from mqreplay.replay.nearest import common_codes, nearest, numbers, ranks, taken
from mqreplay.replay.route_changes import NAME

UNKNOWN = -1  # stands for an answer that came, or may have come, unseen; no broker id is negative
QUEUE = ("epoch", "client_id", "consumer_group", "topic", "broker_name", "queue_id")
FOUND = [StructField("told", LongType()), StructField("route_id", LongType()), StructField("since", TimestampType())]


def with_memory(pull: DataFrame, changes: DataFrame, starts: Mapping[dt.datetime, dt.datetime]) -> DataFrame:
    """The pulls, and what their clients had in mind:

    pull_from_which_node   the suggestion then kept, 0 if none, null if not known
    route_id, since        which route of the broker name the client had (null: none was recorded), and since when

    ``pull`` needs QUEUE but for the epoch, its times, opaque, sub_version, suggest_which_broker_id and error.
    ``changes`` is route_changes' frame; ``starts`` are the instants from which the recording has no gap before, each
    with the one from which on it surely told of every client.
    """
    share = F.pmod(F.hash("client_id", "broker_name"), F.lit(group_shares(pull))).alias("share")
    asked = _with_birth(with_epoch(pull, "request_ts", starts), starts).select("*", share)
    known = apart(changes.select(*NAME, F.col("known_ts").alias("since"), "route_id", share))
    shape = nullable(StructType(asked.schema.fields + FOUND))
    look = _looker(to_arrow_schema(shape, timestamp_utc=True))
    found = asked.groupBy("share").cogroup(known.groupBy(KNOWN + "share")).applyInArrow(look, shape)
    told = F.col("told")
    node = F.when(told == UNKNOWN, None).when(told.isNotNull(), told).when(F.col("born"), F.lit(0))
    return found.withColumn("pull_from_which_node", node.cast("bigint")).drop("share", "told", "born", "epoch")


def with_epoch(frame: DataFrame, ts: str, starts: Collection[dt.datetime]) -> DataFrame:
    """Adds ``epoch``, the last start at or before ``ts``: what a client was told in another epoch says nothing."""
    epoch = F.lit(None).cast("timestamp")
    for start in sorted(starts):
        epoch = F.when(F.col(ts) >= F.lit(start), F.lit(start)).otherwise(epoch)
    return frame.withColumn("epoch", F.coalesce(epoch, F.lit(min(starts)) if starts else epoch))


def _with_birth(asked: DataFrame, starts: Mapping[dt.datetime, dt.datetime]) -> DataFrame:
    """Adds ``born``: the client subscribed in this epoch, and so began it with an empty table of suggestions."""
    told_from = F.col("_epoch")
    for start, certain in starts.items():
        told_from = F.when(F.col("_epoch") == F.lit(start), F.lit(certain)).otherwise(told_from)
    # subVersion is the moment the client subscribed.
    first = asked.groupBy(F.col("epoch").alias("_epoch"), F.col("client_id").alias("_client")).agg(
        (F.min("sub_version") >= F.unix_millis(told_from)).alias("born")
    )
    same = F.col("epoch").eqNullSafe(F.col("_epoch")) & F.col("client_id").eqNullSafe(F.col("_client"))
    return asked.join(F.broadcast(first), same, "left").drop("_epoch", "_client")


def _looker(schema: pa.Schema) -> Callable[[pa.Table, pa.Table], pa.Table]:
    def look(asked: pa.Table, known: pa.Table) -> pa.Table:
        pulls, routes = asked.combine_chunks(), as_known(known)
        key, of_route = common_codes([pulls[name] for name in NAME], [routes[name] for name in NAME])
        row = nearest(key, numbers(pulls["request_ts"])[0], of_route, numbers(routes["since"])[0])
        found = {
            "told": _last_told(pulls),
            "route_id": taken(routes["route_id"], row),
            "since": taken(routes["since"], row),
        }
        return completed(pulls, found, schema)

    return look


def _last_told(pulls: pa.Table) -> pa.Array:
    """What the client was last told for the queue before it asked; UNKNOWN where that may not have been seen."""
    (key,) = common_codes([pulls[name] for name in QUEUE])
    request, _ = numbers(pulls["request_ts"])
    response, answered = numbers(pulls["response_ts"])
    suggested, suggests = numbers(pulls["suggest_which_broker_id"])
    unseen = ~answered & ~pulls["error"].is_valid().to_numpy(zero_copy_only=False)
    told = np.where(unseen, UNKNOWN, suggested)
    tells = np.flatnonzero(unseen | suggests)
    # Request ids rise within a client, so they order what happened in one and the same millisecond.
    turn, _ = numbers(pulls["opaque"])
    came = np.where(answered, response, request)
    order = ranks(np.concatenate([request, came[tells]]), np.concatenate([turn, turn[tells]]))
    asked, known = order[: len(request)], order[len(request) :]
    return taken(pa.array(told[tells]), nearest(key, asked, key[tells], known, side="strictly_before"))
