"""Ends of queues over the night, from pulls, topic_stats and consume_stats."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from mqreplay.report.pictures.night import PictureData


def ends_of_queues(view: PictureData, topics: Sequence[str], slots: int) -> pl.LazyFrame:
    """Return the end (the next offset to be written) of each queue in each time slot in which it was seen."""
    queue = ["topic", "broker_name", "queue_id"]
    wanted = pl.col("topic").is_in(topics)
    pulls = view.rows("silver.pull", "response_ts").filter(wanted)
    by_pull = pulls.select(*queue, ts="response_ts", end="max_offset")
    stats = view.rows("silver.topic_stats", "ts").filter(wanted).select("ts", "offsets")
    by_stats = stats.explode("offsets").select(*_fields(*queue), "ts", end=pl.col("offsets").struct.field("max_offset"))
    consumed = view.rows("silver.consume_stats", "ts").select("ts", "offsets").explode("offsets")
    by_consumer = consumed.select(*_fields(*queue), "ts", end=pl.col("offsets").struct.field("broker_offset")).filter(
        wanted
    )
    seen = pl.concat([by_pull, by_stats, by_consumer]).filter(pl.col("end") >= 0)
    return seen.group_by(*queue, slot=view.bucket("ts", slots)).agg(pl.col("end").max())


def _fields(*names: str) -> list[pl.Expr]:
    return [pl.col("offsets").struct.field(name).alias(name) for name in names]
