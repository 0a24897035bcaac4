"""Offsets that no queue has: negative, or past the end, by other evidence than copies of a broker's offsets.

gold.offset_continuity compares copies of consumerOffset.json with the ends of queues that the master stated. Here are:
  of answers  one answer to GET_CONSUME_STATS has the offset of a group and the end of the queue
  of clients  a broadcasting client keeps its offsets in a file of its own (LocalFileOffsetStore)
  any file    an offset that is negative, or larger than the end of any queue
"""

from __future__ import annotations

import polars as pl

from mqreplay.decode.consumer_offset import LARGEST_OFFSET
from mqreplay.evidence.arrays.frame_arrays import less
from mqreplay.evidence.arrays.nearest import as_of
from mqreplay.evidence.frames import columns, first_of, typed
from mqreplay.evidence.offsets.queue_ends import polled_ends, stated_offsets
from mqreplay.words.keys import GROUP_QUEUE, QUEUE

NEGATIVE, PAST_END, UNSURE = "negative", "past_end", "unsure"
ODD: dict[str, pl.DataType] = {
    "odd": pl.String(),
    **columns("consumer_group", "topic", "broker_name", "queue_id"),
    "client_id": pl.String(),  # of a client's file
    **columns("offset", "queue_max_offset", "from_ts", "to_ts", "table_name"),
    "source_name": pl.String(),  # of a row of silver.offset_change
    "record_id": pl.String(),  # of a row of silver.consume_stats
}
# The broker reads the end of the queue before the offset of the group (AdminBrokerProcessor#getConsumeStats): messages
# may be written and consumed in between, but fewer than these.
MEANWHILE = 1000  # messages


def odd_offsets_of_shard(offset_change: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Return the odd offsets in the changes of brokers' and clients' files (schema ODD).

    ``ends`` is the frame of offset_continuity.queue_ends. Offsets of brokers past a known end are in
    gold.offset_continuity.
    """
    highs = ends.filter(pl.col("queue_max_offset").is_not_null())
    changes = offset_change.filter(pl.col("new_offset").is_not_null())
    of_client = pl.col("broker_id").is_null()
    new, end = pl.col("new_offset"), pl.col("queue_max_offset")
    judged = changes.filter(of_client | (new < 0) | (new > LARGEST_OFFSET))
    placed = as_of(
        judged, highs, QUEUE, "to_ts", {"queue_max_offset": "queue_max_offset"}, right_at="asked_at", after=True
    )
    past_end = pl.when(end.is_null()).then(new > LARGEST_OFFSET).otherwise(of_client & (new > end))
    odd = pl.when(new < 0).then(pl.lit(NEGATIVE)).when(past_end).then(pl.lit(PAST_END))
    found = placed.with_columns(odd.alias("odd")).filter(pl.col("odd").is_not_null())
    return _odd(
        found.with_columns(
            new.alias("offset"),
            pl.col("to_ts").alias("from_ts"),
            pl.lit("silver.offset_change").alias("table_name"),
            pl.lit(None, pl.String).alias("record_id"),
        )
    )


def odd_offsets_of_answers(consume_stats: pl.DataFrame, topic_stats: pl.DataFrame) -> pl.DataFrame:
    """Return the odd offsets in masters' answers to GET_CONSUME_STATS (schema ODD).

    An offset that several answers in a row repeat has one row.

    mqadmin asks the master if there is one, so an unknown id is the master's. A slave copies the group's offset before
    it has the messages. The difference may be of messages written meanwhile, unless it is too large, the broker has no
    message at the offset, or the queue ended before the offset later, too: then the row is UNSURE, and there is no row
    if the queue reached the offset later. -1 is an entry that does not exist (ConsumerOffsetManager#queryOffset).
    """
    rows = stated_offsets(consume_stats)
    ends = pl.concat(
        [
            polled_ends(topic_stats).select(*QUEUE, "at", "queue_max_offset"),
            rows.select(*QUEUE, pl.col("ts").alias("at"), "queue_max_offset"),
        ]
    )
    offset, end = pl.col("offset"), pl.col("queue_max_offset")
    past = rows.filter((offset < -1) | (offset > end)).with_columns(
        (pl.col("ts") + pl.duration(milliseconds=1)).alias("_later")
    )
    asked = as_of(past, ends, QUEUE, "_later", {"end_later": "queue_max_offset"}, right_at="at", after=True)
    # Output of mqadmin has no code, and lacks times that are not plausible.
    answered = pl.col("response_code").is_not_null()
    has_message = pl.col("last_timestamp").is_not_null()
    sure = (~answered & (less(offset, end) >= MEANWHILE)) | (pl.col("end_later") < offset) | (answered & ~has_message)
    reached = (answered & has_message) | (pl.col("end_later") >= offset)
    odd = first_of((offset < 0, NEGATIVE), (sure, PAST_END), (~reached.fill_null(False), UNSURE))
    judged = asked.with_columns(odd.alias("odd")).filter(pl.col("odd").is_not_null())
    runs = judged.group_by(*GROUP_QUEUE, "offset").agg(
        pl.col("odd").sort_by(pl.col("odd") == UNSURE).first(),
        pl.col("queue_max_offset", "record_id").sort_by("ts", "record_id").first(),
        pl.col("ts").min().alias("from_ts"),
        pl.col("ts").max().alias("to_ts"),
    )
    return _odd(
        runs.with_columns(
            pl.lit(None, pl.String).alias("client_id"),
            pl.lit(None, pl.String).alias("source_name"),
            pl.lit("silver.consume_stats").alias("table_name"),
        )
    )


def _odd(rows: pl.DataFrame) -> pl.DataFrame:
    return typed(rows, ODD)
