"""Consumer offsets at an instant: silver.offset_change holds only changes, so the last one counts.

silver.offset_checkpoint holds the last changes before a day, so that a night reads only one earlier night.
"""

from __future__ import annotations

import datetime as dt

import polars as pl

CHAIN = ["source_name", "topic", "consumer_group", "broker_name", "queue_id", "broker_id", "client_id"]
VALUES = ["previous_offset", "new_offset", "from_ts"]


def offsets_at(checkpoint: pl.DataFrame, changes: pl.DataFrame, instant: dt.datetime) -> pl.DataFrame:
    """Return each offset at ``instant``; ``new_offset`` is the offset.

    Columns: source_name, topic, consumer_group, broker_name, queue_id, broker_id, client_id, previous_offset,
    new_offset, from_ts, to_ts.

    ``checkpoint`` holds the last changes before the next midnight, ``changes`` those of the day of ``instant``. Changes
    from the instant to midnight are undone.
    """
    first = _ends(changes.filter(pl.col("to_ts") >= instant)).group_by(CHAIN, maintain_order=True).first()
    undone = first.with_columns(new_offset=pl.col("previous_offset"), to_ts=pl.coalesce("from_ts", "to_ts"))
    before = checkpoint.filter(pl.col("to_ts") < instant)
    return pl.concat([before.select(*CHAIN, *VALUES, "to_ts"), undone])


def _ends(changes: pl.DataFrame) -> pl.DataFrame:
    return changes.select(*CHAIN, *VALUES, "to_ts").sort("to_ts", maintain_order=True)
