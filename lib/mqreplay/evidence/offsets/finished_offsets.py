"""When the messages of a queue were finished, by the consumers' own logs: which of them a commit may pass.

A client commits the smallest offset that it pulled and has not finished, or after the last one (ProcessQueue
#removeMessage). So all messages below a commit had finished: the last of them to finish shows it.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.evidence.arrays.keys import KEY
from mqreplay.evidence.messages.deliveries import DONE

HELD: Final = (*KEY, "client_id")  # a queue of a group in a client


def finished_offsets(consume: pl.DataFrame) -> pl.DataFrame:
    """Return the messages that each client received, sorted by HELD and queue_offset.

    Columns: HELD, with the topic of the queue; queue_offset; deliveries to this client; is_orderly; store_ts; record_id
    of the first delivery; last_ts: when the client finished it the last time; and

    - finished_ts: when a client of the group finished it first. An orderly listener finishes a message by its success.
    - place: the number of the row; slowest: that of the message that finished last, of all up to this one

    ``consume`` is one shard, with queue_topic.
    """
    named = consume.with_columns(pl.col("queue_topic").alias("topic")).drop_nulls([*HELD, "queue_offset"])
    is_done = pl.col("status").is_in(DONE) | ~pl.col("orderly").fill_null(value=False)
    each = named.group_by(*HELD, "queue_offset").agg(
        pl.coalesce(pl.col("ts").filter(is_done).min(), pl.col("ts").max()).alias("own_ts"),
        pl.col("ts").max().alias("last_ts"),
        pl.len().alias("deliveries"),
        pl.col("orderly").fill_null(value=False).any().alias("is_orderly"),
        pl.col("store_ts").min(),
        pl.col("record_id").sort_by("ts", "record_id").first(),
    )
    finished = pl.col("own_ts").min().over(*KEY, "queue_offset").alias("finished_ts")
    in_order = each.with_columns(finished).drop("own_ts").sort(*HELD, "queue_offset").with_row_index("place")
    last = pl.col("finished_ts").cum_max().over(HELD)
    is_last = pl.when(pl.col("finished_ts") == last).then("place")
    return in_order.with_columns(is_last.forward_fill().over(HELD).alias("slowest"))
