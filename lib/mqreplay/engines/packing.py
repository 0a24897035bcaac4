"""Values as bytes between the driver and tasks, and items of work as a DataFrame."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from isal import isal_zlib

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def packed(value: Any) -> bytes:
    """Return a value as compressed bytes: frames repeat names."""
    return isal_zlib.compress(pickle.dumps(value), 1)


def unpacked(data: bytes) -> Any:
    """Return a packed value."""
    return pickle.loads(isal_zlib.decompress(data))


def item_frame(session: SparkSession, items: Sequence[Any]) -> DataFrame:
    """Return a DataFrame of the items: their number and packed value, each in a partition of its own."""
    rows = [(number, packed(item)) for number, item in enumerate(items)]
    frame = session.createDataFrame(rows, "number INT, item BINARY")
    return frame.repartition(len(items)) if len(items) > 1 else frame.coalesce(1)
