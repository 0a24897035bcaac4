"""The Parquet files of a Delta table, listed by Delta Kernel, for Spark to read as they are.

Spark's own scan of a Delta table learns them by two queries over the log: 0.6 s for a table of one file, as planned
and compiled for the first time, and there are a hundred such plans in a night. Of many files Delta's scan passes over
those of other days by their bounds, and is the one to take.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

FEW = 32  # from one more on, Spark has a job of its own look at them
PLAIN = 1  # the protocol's reader version without deletion vectors or renamed columns: rows are what the files hold
SPECIAL = re.compile(r"([{}\[\]*?\\])")  # in patterns of paths


def read_files(spark: SparkSession, paths: Sequence[str], schema: StructType) -> DataFrame:
    """The rows of Parquet files, at least one."""
    reader = spark.read.schema(schema)
    if any(SPECIAL.search(path) and ":" in path.removeprefix("file:") for path in paths):
        # Hadoop knows no pattern with a colon. Without patterns, Spark reads each of several paths several times.
        literal = reader.option("__globPaths__", "false")
        return reduce(DataFrame.unionAll, [literal.parquet(path) for path in paths])
    # Spark takes paths for patterns.
    return reader.parquet(*[SPECIAL.sub(r"\\\1", path) for path in paths])


def few_files(spark: SparkSession, location: str) -> list[str] | None:
    """Their paths; None where they are more than FEW, or where the table is not what its files hold."""
    try:
        return _listed(spark, location)
    except Py4JError:
        return None  # what is wrong with the table, Delta's own reader says in words for users


def _listed(spark: SparkSession, location: str) -> list[str] | None:
    kernel: Any = spark.sparkContext._jvm.io.delta.kernel  # type: ignore[union-attr]
    engine = kernel.defaults.engine.DefaultEngine.create(spark.sparkContext._jsc.hadoopConfiguration())
    snapshot = kernel.Table.forPath(engine, location).getLatestSnapshot(engine)
    if snapshot.getProtocol().getMinReaderVersion() != PLAIN:
        return None
    paths: list[str] = []
    batches = snapshot.getScanBuilder().build().getScanFiles(engine)
    try:
        while batches.hasNext():
            rows = batches.next().getRows()
            while rows.hasNext():
                if len(paths) == FEW:
                    return None
                paths.append(kernel.internal.InternalScanFileUtils.getAddFileStatus(rows.next()).getPath())
    finally:
        batches.close()
    return paths
