"""When the messages of a queue were finished, by the consumers' own logs: which of them a commit may pass.

A client commits the smallest offset that it pulled and has not finished, or after the last one (ProcessQueue
#removeMessage). So all messages below a commit had finished: the last of them to finish shows it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from mqreplay.evidence.arrays.distinct import key_codes
from mqreplay.evidence.arrays.frame_arrays import Numbers
from mqreplay.evidence.arrays.keys import KEY
from mqreplay.evidence.messages.deliveries import DONE

HELD: Final = (*KEY, "client_id")  # a queue of a group in a client


def logged_queues(consume: pl.DataFrame, commits: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the deliveries with the numbers ``held`` and ``queue``, and the commits with ``held``.

    ``held`` is equal where HELD is, in both frames, and ``queue`` where KEY is; the topic is that of the queue. Numbers
    are sorted and joined much faster than names. ``consume`` has queue_topic.
    """
    named = consume.with_columns(pl.col("queue_topic").alias("topic")).drop_nulls([*HELD, "queue_offset"])
    of_log, of_commits = key_codes(HELD, named, commits)
    held, first, place = np.unique(of_log, return_index=True, return_inverse=True)
    (queues,) = key_codes(KEY, named[first]) if len(held) else (held,)
    log = named.with_columns(_number("held", of_log), _number("queue", queues[place]))
    return log, commits.with_columns(_number("held", of_commits))


def _number(name: str, codes: Numbers) -> pl.Series:
    return pl.Series(name, codes, pl.Int64)


def finished_offsets(log: pl.DataFrame) -> pl.DataFrame:
    """Return the messages that each client received, sorted by held and queue_offset.

    Columns: held; queue_offset; deliveries to this client; is_orderly; store_ts; record_id of the first delivery;
    last_ts: when the client finished it the last time; and

    - logged_ts: when the client first finished a message of the queue, so the log lacks no delivery of later messages
    - finished_ts: when a client of the group finished it first. An orderly listener finishes a message by its success.
    - place: the number of the row; slowest: that of the message that finished last, of all up to this one

    ``log`` is the first frame of `logged_queues`.
    """
    is_done = pl.col("status").is_in(DONE) | ~pl.col("orderly").fill_null(value=False)
    each = log.group_by("held", "queue", "queue_offset").agg(
        pl.coalesce(pl.col("ts").filter(is_done).min(), pl.col("ts").max()).alias("own_ts"),
        pl.col("ts").max().alias("last_ts"),
        pl.len().alias("deliveries"),
        pl.col("orderly").fill_null(value=False).any().alias("is_orderly"),
        pl.col("store_ts").min(),
        pl.col("record_id").get(pl.col("ts").arg_min()),
    )
    finished = pl.col("own_ts").min().over("queue", "queue_offset").alias("finished_ts")
    logged = pl.col("own_ts").min().over("held").alias("logged_ts")
    in_order = (
        each.with_columns(finished, logged).drop("own_ts", "queue").sort("held", "queue_offset").with_row_index("place")
    )
    last = pl.col("finished_ts").cum_max().over("held")
    is_last = pl.when(pl.col("finished_ts") == last).then("place")
    return in_order.with_columns(is_last.forward_fill().over("held").alias("slowest"))
