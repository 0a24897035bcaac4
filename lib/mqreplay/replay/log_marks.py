"""What bounds a broker's view at each pull: ends of its commit log around it, and places of messages around its last.

The ends come from polls, the places from every message that was seen: by a pull's answer, a consumer's or a producer's
log. A broker name's pulls and marks come together once and are looked up there with numpy (nearest.py).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from mqreplay.replay.as_of import KNOWN, apart, as_known, completed, group_shares, nullable
from mqreplay.replay.nearest import NOWHERE, common_codes, nearest, numbers, taken
from mqreplay.replay.queue_ends import QUEUE

SHARES = 8  # a broker name's queues go to so many groups, or more: a worker has fewer rows at a time
BROKER = ("broker_name", "broker_id")
MARK = ["share", "broker_name", "broker_id", "topic", "queue_id", "at", "value"]
FOUND = ("end_before", "end_after", "place_before", "place_after", "next_place")


def with_marks(
    pull: DataFrame, others: DataFrame, broker_runtime: DataFrame, consume: DataFrame, produce: DataFrame, slack_ms: int
) -> DataFrame:
    """The pulls, and of each (all in bytes of the commit log; null where nothing was seen):

    end_before, end_after  the end last polled before the request, and first after the answer
    place_before           the place of the last message at or before the last one looked at
    place_after            that of the first message at or after it; next_place: at or after next_begin_offset

    The answers of ``others``, pulls not asked about, are marks too. ``slack_ms`` is how far a poll's time may be off
    the moment the broker looked at its commit log.
    """
    # One number, for Spark sorts by it without comparing rows; a broker name's groups are next to each other.
    shares = _shares(broker_runtime)
    first = F.pmod(F.hash("broker_name"), F.lit(group_shares(pull))) * shares
    share = (first + F.pmod(F.hash(*QUEUE), F.lit(shares))).alias("share")
    asked = pull.select("*", share)
    places = _places(others, consume, produce).select("*", F.lit(None).cast("bigint").alias("broker_id"), share)
    known = apart(places.select(*MARK).unionByName(_ends(broker_runtime, first, shares).select(*MARK)))
    shape = nullable(StructType(asked.schema.fields + [StructField(name, LongType()) for name in FOUND]))
    look = _looker(to_arrow_schema(shape, timestamp_utc=True), slack_ms * 1000)
    both = asked.groupBy("share").cogroup(known.groupBy(KNOWN + "share"))
    return both.applyInArrow(look, shape).drop("share")


def _shares(broker_runtime: DataFrame) -> int:
    """Into how many groups a broker name's queues go: the longer the night and the fewer the names, the more.

    Every group of a broker is given its ends, so there are no more than memory asks for.
    """
    # A third of what others are dealt into: some 150,000 pulls each.
    groups = group_shares(broker_runtime) // 3
    if groups <= SHARES:
        return SHARES
    names = broker_runtime.select("broker_name").distinct().count()
    return max(SHARES, groups // max(names, 1))


def _ends(broker_runtime: DataFrame, first: Column, shares: int) -> DataFrame:
    """MARK of polled ends: ``at`` in microseconds; a queue is none of theirs, so all groups of the broker get them."""
    return broker_runtime.where("commit_log_max_offset IS NOT NULL").select(
        "broker_name",
        F.explode(F.sequence(first, first + (shares - 1))).alias("share"),
        "broker_id",
        F.lit(None).cast("string").alias("topic"),
        F.lit(None).cast("int").alias("queue_id"),
        F.unix_micros("ts").alias("at"),
        F.col("commit_log_max_offset").alias("value"),
    )


def _places(pull: DataFrame, consume: DataFrame, produce: DataFrame) -> DataFrame:
    """broker_name, QUEUE, ``at`` (queue offset), ``value`` (place): messages whose places were seen.

    An offset message id ends with the place, as 16 hex digits (MessageDecoder#createMessageId).
    """

    def places(frame: DataFrame, topic: Column | str, offset: str, place: Column | str) -> DataFrame:
        at, value = F.col(offset).alias("at"), (F.col(place) if isinstance(place, str) else place).alias("value")
        named = (F.col(topic) if isinstance(topic, str) else topic).alias("topic")
        return frame.select("broker_name", named, "queue_id", at, value).dropna()

    of_id = F.conv(F.right("offset_msg_id", F.lit(16)), 16, 10).try_cast("bigint")
    with_id = produce.where(F.col("offset_msg_id").rlike("^([0-9A-Fa-f]{32}|[0-9A-Fa-f]{56})$"))
    return (
        places(pull, "topic", "first_queue_offset", "first_commitlog_offset")
        .unionByName(places(pull, "topic", "last_queue_offset", "last_commitlog_offset"))
        .unionByName(places(consume, F.coalesce("queue_topic", "topic"), "queue_offset", "commitlog_offset"))
        .unionByName(places(with_id, "topic", "queue_offset", of_id))
    )


def _looker(schema: pa.Schema, slack_us: int) -> Callable[[pa.Table, pa.Table], pa.Table]:
    def look(asked: pa.Table, known: pa.Table) -> pa.Table:
        pulls, marks = asked.combine_chunks(), as_known(known)
        is_end = marks["topic"].is_null()
        found = _around_answer(pulls, marks.filter(is_end), slack_us)
        found |= _around_last(pulls, marks.filter(marks["topic"].is_valid()))
        return completed(pulls, found, schema)

    return look


def _around_answer(pulls: pa.Table, ends: pa.Table, slack_us: int) -> dict[str, pa.Array]:
    key, of_end = common_codes([pulls[name] for name in BROKER], [ends[name] for name in BROKER])
    at, _ = numbers(ends["at"])
    request, _ = numbers(pulls["request_ts"])
    response, answered = numbers(pulls["response_ts"])
    before = nearest(key, request - slack_us, of_end, at)
    after = np.where(answered, nearest(key, response + slack_us, of_end, at, side="after"), NOWHERE)
    return {"end_before": taken(ends["value"], before), "end_after": taken(ends["value"], after)}


def _around_last(pulls: pa.Table, places: pa.Table) -> dict[str, pa.Array]:
    """Places rise with offsets within a queue, so a message not seen lies between its neighbours that were."""
    key, of_place = common_codes([pulls[name] for name in QUEUE], [places[name] for name in QUEUE])
    of_mark, at, value = [of_place], [numbers(places["at"])[0]], [numbers(places["value"])[0]]
    for end in ("first", "last"):
        offset, has_offset = numbers(pulls[f"{end}_queue_offset"])
        place, has_place = numbers(pulls[f"{end}_commitlog_offset"])
        both = has_offset & has_place
        of_mark.append(key[both])
        at.append(offset[both])
        value.append(place[both])
    marks = (np.concatenate(of_mark), np.concatenate(at))
    begins, known = numbers(pulls["next_begin_offset"])
    found = {
        "place_before": nearest(key, begins - 1, *marks),
        "place_after": nearest(key, begins - 1, *marks, side="after"),
        "next_place": nearest(key, begins, *marks, side="after"),
    }
    places_of = pa.array(np.concatenate(value))
    return {name: taken(places_of, np.where(known, rows, NOWHERE)) for name, rows in found.items()}
