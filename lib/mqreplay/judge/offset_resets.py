"""Deliberate moves of offsets: resets that a broker pushed to clients, or sent as the answer to a pull."""

from __future__ import annotations

import polars as pl

GROUP_QUEUE = ["consumer_group", "broker_name", "topic", "queue_id"]
OFFSET_MOVED = 21  # ResponseCode.PULL_OFFSET_MOVED
PUSHED, ANSWERED = "silver.server_request", "silver.pull"


def offset_resets(server_request: pl.DataFrame, pull: pl.DataFrame) -> pl.DataFrame:
    """Return resets as clients received them: GROUP_QUEUE, offset (messages), since, ts, table_name, record_id.

    A pull that waited is answered later than the offset was set: ``since`` is the instant of its request.

    With the pulls of one shard the result holds all resets of the shard's queues, and those pushed for other queues
    too. To cover several shards, concatenate `moved_resets_of_shard` of each of them and add `pushed_resets` once.
    """
    return pl.concat([pushed_resets(server_request), moved_resets_of_shard(pull)])


def pushed_resets(server_request: pl.DataFrame) -> pl.DataFrame:
    """Return the resets that brokers pushed, of all queues: 4.9 sends RESET_CONSUMER_CLIENT_OFFSET to clients."""
    reset = pl.col("reset_offsets").struct.field
    return (
        server_request.filter(pl.col("reset_offsets").list.len() > 0)
        .select("consumer_group", "ts", "record_id", "reset_offsets")
        .explode("reset_offsets")
        .select(
            "consumer_group",
            *(reset(name) for name in ("broker_name", "topic", "queue_id", "offset")),
            pl.col("ts").alias("since"),
            "ts",
            pl.lit(PUSHED).alias("table_name"),
            "record_id",
        )
    )


def moved_resets_of_shard(pull: pl.DataFrame) -> pl.DataFrame:
    """Return the resets that brokers sent as answers to the pulls of a shard.

    A 5.x broker sets the offset itself (ConsumerOffsetManager#assignResetOffset), and answers the next pull inside the
    queue's range with PULL_OFFSET_MOVED.
    """
    in_range = pl.col("queue_offset").is_between("min_offset", "max_offset")
    return pull.filter((pl.col("response_code") == OFFSET_MOVED) & in_range).select(
        *GROUP_QUEUE,
        pl.col("next_begin_offset").alias("offset"),
        pl.col("request_ts").alias("since"),
        pl.coalesce("response_ts", "request_ts").alias("ts"),
        pl.lit(ANSWERED).alias("table_name"),
        "record_id",
    )
