"""Items of work as a DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mqreplay.engines.packing import packed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def item_frame(session: SparkSession, items: Sequence[Any]) -> DataFrame:
    """Return a DataFrame of the items: their number and packed value, each in a partition of its own."""
    rows = [(number, packed(item)) for number, item in enumerate(items)]
    frame = session.createDataFrame(rows, "number INT, item BINARY")
    return frame.repartition(len(items)) if len(items) > 1 else frame.coalesce(1)
