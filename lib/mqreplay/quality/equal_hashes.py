"""Whether rows may be equal, by one number of each. Workers load this, and none of Great Expectations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def equal_hashes(rows: DataFrame) -> bool:
    """Whether two rows have the same hash of all columns: rows that are equal do, and others hardly ever."""
    hashes = rows.select(F.xxhash64(*rows.columns).alias("hash")).repartition("hash")
    return not hashes.mapInArrow(_twice, "hash BIGINT").isEmpty()


def _twice(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The numbers that come more than once."""
    numbers = np.sort(np.concatenate([np.zeros(0, np.int64), *(batch.column(0).to_numpy() for batch in batches)]))
    yield pa.RecordBatch.from_arrays([pa.array(numbers[1:][numbers[1:] == numbers[:-1]])], ["hash"])
