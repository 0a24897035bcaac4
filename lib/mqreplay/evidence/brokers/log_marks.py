"""Bounds of a broker's state at each pull: ends of its commit log, and places of messages next to the last one read.

The ends come from polls, the places (bytes in the commit log) from every recorded message: in a pull's answer, or in
the log of a consumer or producer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from mqreplay.evidence.arrays.distinct import key_codes
from mqreplay.evidence.arrays.frame_arrays import NOWHERE, Mask, Numbers, column_numbers, int64_series, runs, starts
from mqreplay.evidence.arrays.nearest import nearest
from mqreplay.evidence.frames import columns, typed
from mqreplay.words.keys import BROKER, QUEUE

LOG_MARK: dict[str, pl.DataType] = {**columns("broker_name", "topic", "queue_id", "queue_offset"), "place": pl.Int64()}
# MessageDecoder#createMessageId: address and port, then the place in 16 hexadecimal digits; 56 digits with IPv6.
OFFSET_MSG_ID = "^([0-9A-Fa-f]{32}|[0-9A-Fa-f]{56})$"


def with_marks(
    pull: pl.DataFrame,
    is_asked: pl.Expr,
    broker_runtime: pl.DataFrame,
    consume: pl.DataFrame,
    produce: pl.DataFrame,
    slack_ms: int,
) -> pl.DataFrame:
    """Return the pulls of a shard that match ``is_asked``, in order, with (all in bytes of the commit log):

    end_before, end_after  the end last polled before the request, and first after the answer
    place_before           the place of the last message at or before the last one that the broker read
    place_after            that of the first message at or after it; next_place: at or after next_begin_offset

    A mark is null if there is no observation. The last message read is the one before next_begin_offset. ``consume``
    and ``produce`` are those of the shard's queues, ``broker_runtime`` is the whole table. ``slack_ms`` is the largest
    difference between the time of a poll and the time at which the broker read the end of its commit log.
    """
    questions = pull.filter(is_asked)
    found = _ends_around_answer(questions, broker_runtime, slack_ms * 1000)
    found |= _places_around_last(questions, _places(pull, consume, produce))
    return questions.with_columns(column.alias(name) for name, column in found.items())


class Marks(NamedTuple):
    """Marks by key and position; of several at a position the least and the greatest.

    The last mark before a position is a lower bound and the first after it an upper bound, so each uses the wider one.
    """

    key: Numbers
    at: Numbers
    least: Numbers
    greatest: Numbers

    def before(self, key: Numbers, at: Numbers) -> pl.Series:
        """Return the last mark of the key at or before each position."""
        return _at_rows(self.least, nearest(key, at, self.key, self.at))

    def after(self, key: Numbers, at: Numbers) -> pl.Series:
        """Return the first mark of the key at or after each position."""
        return _at_rows(self.greatest, nearest(key, at, self.key, self.at, side="after"))


def _marks(key: Numbers, at: Numbers, value: Numbers) -> Marks:
    order = np.lexsort((at, key))
    key, at, value = key[order], at[order], value[order]
    first = starts(key, at)
    return Marks(key[first], at[first], runs(np.minimum, value, first), runs(np.maximum, value, first))


def _at_rows(values: Numbers, rows: Numbers) -> pl.Series:
    return int64_series(np.append(values, 0)[rows], rows != NOWHERE)  # NOWHERE is -1, the last value


def _ends_around_answer(pull: pl.DataFrame, broker_runtime: pl.DataFrame, slack_us: int) -> dict[str, pl.Series]:
    ends = broker_runtime.drop_nulls("commit_log_max_offset")
    key, of_end = key_codes(BROKER, pull, ends)
    polled, end = column_numbers(ends, "ts")[0], column_numbers(ends, "commit_log_max_offset")[0]
    marks = _marks(of_end, polled, end)
    request, response = column_numbers(pull, "request_ts")[0], column_numbers(pull, "response_ts")[0]
    return {"end_before": marks.before(key, request - slack_us), "end_after": marks.after(key, response + slack_us)}


def _places(pull: pl.DataFrame, consume: pl.DataFrame, produce: pl.DataFrame) -> pl.DataFrame:
    """Return the messages of a shard with known places in the commit log.

    Columns: broker_name, topic, queue_id, queue_offset, place (bytes).
    """
    of_id = pl.col("offset_msg_id").str.tail(16).str.to_integer(base=16, dtype=pl.Int64, strict=False)
    with_id = produce.filter(pl.col("offset_msg_id").str.contains(OFFSET_MSG_ID))
    listed = [
        pull.select(*QUEUE, queue_offset="first_queue_offset", place="first_commitlog_offset"),
        pull.select(*QUEUE, queue_offset="last_queue_offset", place="last_commitlog_offset"),
        consume.select(
            "broker_name",
            pl.coalesce("queue_topic", "topic").alias("topic"),
            "queue_id",
            "queue_offset",
            place="commitlog_offset",
        ),
        with_id.select(*QUEUE, "queue_offset", place=of_id),
    ]
    return pl.concat([typed(frame, LOG_MARK) for frame in listed]).drop_nulls()


def _places_around_last(pull: pl.DataFrame, places: pl.DataFrame) -> dict[str, pl.Series]:
    """Return the known places around the last message read: within a queue, places rise with offsets."""
    key, of_place = key_codes(QUEUE, pull, places)
    marks = _marks(of_place, column_numbers(places, "queue_offset")[0], column_numbers(places, "place")[0])
    begins, is_known = column_numbers(pull, "next_begin_offset")
    found = {
        "place_before": marks.before(key, begins - 1),
        "place_after": marks.after(key, begins - 1),
        "next_place": marks.after(key, begins),
    }
    return {name: _where(column, is_known) for name, column in found.items()}


def _where(column: pl.Series, is_known: Mask) -> pl.Series:
    return column if is_known.all() else column.set(pl.Series(~is_known), None)
