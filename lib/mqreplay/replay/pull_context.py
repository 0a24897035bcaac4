"""What was known at each pull: the suggestion its client kept, the client's route, and the ends around its answer.

Everything a pull is judged by belongs to its broker name, so the pulls of a queue and all that tells of it come
together once, and are looked up there with numpy (nearest.py). As windows of Spark this was six sorts of wide rows.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from mqreplay.replay.as_of import group_shares, nullable
from mqreplay.replay.nearest import NOWHERE, Numbers, common_codes, nearest, numbers, ranks, taken
from mqreplay.replay.pull_places import places_elsewhere
from mqreplay.replay.route_changes import route_changes

NEEDED = [
    *("cluster", "day", "client_id", "consumer_group", "topic", "broker_name", "queue_id", "broker_id", "record_id"),
    *("request_ts", "response_ts", "opaque", "sub_version", "suggest_which_broker_id", "error"),
    *("queue_offset", "response_code", "remark", "next_begin_offset", "min_offset", "max_offset"),
    *("first_queue_offset", "first_commitlog_offset"),
    *("last_queue_offset", "last_commitlog_offset", "last_store_size"),
]
UNKNOWN = -1  # stands for an answer that came, or may have come, unseen; no broker id is negative
CLIENT_QUEUE = ("epoch", "client_id", "consumer_group", "topic", "queue_id")
QUEUE = ("topic", "queue_id")
# What tells something: of a route's change (kind 0), of a polled commit log's end (1), of a message's place (2).
ROUTE, POLL, PLACE = 0, 1, 2
TOLD = (
    "broker_name STRING, epoch TIMESTAMP, client_id STRING, broker_id BIGINT, topic STRING, queue_id INT, at BIGINT, "
    "value BIGINT, broker_addrs MAP<BIGINT, STRING>, before MAP<BIGINT, STRING>"
)
FOUND = (
    "told BIGINT, route STRUCT<broker_addrs: MAP<BIGINT, STRING>, before: MAP<BIGINT, STRING>, since: TIMESTAMP>, "
    "end_before BIGINT, end_after BIGINT, place_before BIGINT, place_after BIGINT, next_place BIGINT"
)


def with_context(
    pull: DataFrame,
    route: DataFrame,
    broker_runtime: DataFrame,
    consume: DataFrame,
    produce: DataFrame,
    starts: list[dt.datetime],
    poll_slack_ms: int,
) -> DataFrame:
    """The NEEDED columns of silver.pull, one row a pull, and what was known:

    pull_from_which_node   the suggestion the client then kept, 0 if none, null if not known
    route                  the addresses of the broker name in the client's route, those before, and since when
    end_before, end_after  ends of the broker's commit log (bytes) last polled before, first after
    place_before           place (bytes) of the last message at or before the last one looked at
    place_after            place of the first message at or after it; next_place: at or after next_begin_offset

    ``starts`` are the instants from which the recording has no gap before; ``poll_slack_ms`` is how far a poll's time
    may be off the moment the broker looked at its commit log.
    """
    shares = group_shares(pull)
    share = F.pmod(F.hash("topic", "queue_id"), F.lit(shares)).alias("share")
    every_share = F.explode(F.array(*map(F.lit, range(shares)))).alias("share")
    asked = _with_birth(with_epoch(pull.select(*NEEDED), "request_ts", starts)).select("*", share)
    told = [
        (
            ROUTE,
            every_share,
            route_changes(with_epoch(route, "ts", starts)).withColumn("at", F.unix_micros("known_ts")),
        ),
        (POLL, every_share, _polls(broker_runtime)),
        (PLACE, share, places_elsewhere(consume, produce)),
    ]
    known = reduce(DataFrame.unionByName, [_as_told(frame, kind, where) for kind, where, frame in told])
    shape = nullable(StructType(asked.schema.fields + StructType.fromDDL(FOUND).fields))
    look = _looker(to_arrow_schema(shape, timestamp_utc=True), poll_slack_ms * 1000)
    both = asked.groupBy("broker_name", "share").cogroup(known.groupBy("broker_name", "share"))
    return _with_node(both.applyInArrow(look, shape)).drop("share", "told", "born")


def with_epoch(frame: DataFrame, ts: str, starts: list[dt.datetime]) -> DataFrame:
    """Adds ``epoch``, the last start at or before ``ts``: what a client was told in another epoch says nothing."""
    epoch = F.lit(None).cast("timestamp")
    for start in sorted(starts):
        epoch = F.when(F.col(ts) >= F.lit(start), F.lit(start)).otherwise(epoch)
    return frame.withColumn("epoch", F.coalesce(epoch, F.lit(min(starts)) if starts else epoch))


def _with_birth(asked: DataFrame) -> DataFrame:
    """Adds ``born``: the client subscribed in this epoch, and so began it with an empty table of suggestions."""
    # subVersion is the moment the client subscribed.
    first = asked.groupBy(F.col("epoch").alias("_epoch"), F.col("client_id").alias("_client")).agg(
        (F.timestamp_millis(F.min("sub_version")) >= F.col("_epoch")).alias("born")
    )
    same = F.col("epoch").eqNullSafe(F.col("_epoch")) & F.col("client_id").eqNullSafe(F.col("_client"))
    return asked.join(F.broadcast(first), same, "left").drop("_epoch", "_client")


def _with_node(known: DataFrame) -> DataFrame:
    told = F.col("told")
    node = F.when(told == UNKNOWN, None).when(told.isNotNull(), told).when(F.col("born"), F.lit(0))
    return known.withColumn("pull_from_which_node", node.cast("bigint"))


def _as_told(frame: DataFrame, kind: int, share: Column) -> DataFrame:
    """The frame in the shape TOLD: null where it says nothing."""
    given = [
        (F.col(f.name) if f.name in frame.columns else F.lit(None)).cast(f.dataType).alias(f.name)
        for f in StructType.fromDDL(TOLD).fields
    ]
    return frame.select(*given, F.lit(kind).alias("kind"), share)


def _polls(broker_runtime: DataFrame) -> DataFrame:
    polled = broker_runtime.where("commit_log_max_offset IS NOT NULL")
    return polled.select(
        "broker_name", "broker_id", F.unix_micros("ts").alias("at"), F.col("commit_log_max_offset").alias("value")
    )


def _looker(schema: pa.Schema, slack_us: int) -> Callable[[pa.Table, pa.Table], pa.Table]:
    def look(asked: pa.Table, known: pa.Table) -> pa.Table:
        pulls, told = asked.combine_chunks(), known.combine_chunks()
        kinds, _ = numbers(told["kind"])
        found = {
            "told": _last_told(pulls),
            "route": _route(pulls, told.filter(pa.array(kinds == ROUTE))),
            **_ends(pulls, told.filter(pa.array(kinds == POLL)), slack_us),
            **_places(pulls, told.filter(pa.array(kinds == PLACE))),
        }
        columns = [found[f.name] if f.name in found else pulls[f.name].combine_chunks() for f in schema]
        arrays = [column.cast(f.type) for column, f in zip(columns, schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)

    return look


def _last_told(pulls: pa.Table) -> pa.Array:
    """What the client was last told for the queue before it asked; UNKNOWN where that may not have been seen."""
    (key,) = common_codes([pulls[name] for name in CLIENT_QUEUE])
    request, _ = numbers(pulls["request_ts"])
    response, answered = numbers(pulls["response_ts"])
    suggested, has = numbers(pulls["suggest_which_broker_id"])
    failed = pulls["error"].is_valid().to_numpy(zero_copy_only=False)
    told = np.where(~answered & ~failed, UNKNOWN, suggested)
    tells = np.flatnonzero((~answered & ~failed) | has)
    # Request ids rise within a client, so they order what happened in one and the same millisecond.
    turn, _ = numbers(pulls["opaque"])
    came = np.where(answered, response, request)
    order = ranks(np.concatenate([request, came[tells]]), np.concatenate([turn, turn[tells]]))
    asked, known = order[: len(request)], order[len(request) :]
    found = nearest(key, asked, key[tells], known, side="strictly_before")
    return taken(pa.array(told[tells]), found)


def _route(pulls: pa.Table, routes: pa.Table) -> pa.Array:
    key, of_route = common_codes([pulls["epoch"], pulls["client_id"]], [routes["epoch"], routes["client_id"]])
    found = nearest(key, numbers(pulls["request_ts"])[0], of_route, numbers(routes["at"])[0])
    since = routes["at"].cast(pa.timestamp("us", "UTC"))
    fields = [taken(column, found) for column in (routes["broker_addrs"], routes["before"], since)]
    return pa.StructArray.from_arrays(
        fields, names=["broker_addrs", "before", "since"], mask=pa.array(found == NOWHERE)
    )


def _ends(pulls: pa.Table, polls: pa.Table, slack_us: int) -> dict[str, pa.Array]:
    key, of_poll = common_codes([pulls["broker_id"]], [polls["broker_id"]])
    at, _ = numbers(polls["at"])
    request, _ = numbers(pulls["request_ts"])
    response, answered = numbers(pulls["response_ts"])
    before = nearest(key, request - slack_us, of_poll, at)
    after = np.where(answered, nearest(key, response + slack_us, of_poll, at, side="after"), NOWHERE)
    return {"end_before": taken(polls["value"], before), "end_after": taken(polls["value"], after)}


def _places(pulls: pa.Table, elsewhere: pa.Table) -> dict[str, pa.Array]:
    """Every message whose place in the commit log was seen is a mark; places rise with offsets within a queue."""
    key, of_mark = common_codes([pulls[name] for name in QUEUE], [elsewhere[name] for name in QUEUE])
    offsets, places = [numbers(elsewhere["at"])[0]], [numbers(elsewhere["value"])[0]]
    keys: list[Numbers] = [of_mark]
    for end in ("first", "last"):
        offset, has_offset = numbers(pulls[f"{end}_queue_offset"])
        place, has_place = numbers(pulls[f"{end}_commitlog_offset"])
        seen = has_offset & has_place
        keys.append(key[seen])
        offsets.append(offset[seen])
        places.append(place[seen])
    mark, offset, place = map(np.concatenate, (keys, offsets, places))
    begins, known = numbers(pulls["next_begin_offset"])
    found = {
        "place_before": nearest(key, begins - 1, mark, offset),
        "place_after": nearest(key, begins - 1, mark, offset, side="after"),
        "next_place": nearest(key, begins, mark, offset, side="after"),
    }
    return {name: taken(pa.array(place), np.where(known, rows, NOWHERE)) for name, rows in found.items()}
