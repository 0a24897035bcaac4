"""Kernels as tasks of one Spark job: each item is a partition, and its task calls the function once."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

Item = TypeVar("Item")
Context = TypeVar("Context")
Result = TypeVar("Result")


class SparkEngine:
    """Runs on whatever master the session has."""

    def __init__(self, spark: SparkSession) -> None:
        """``spark``: the session whose executors run the tasks."""
        self._spark = spark

    def map(self, function: Callable[[Item, Context], Result], items: Sequence[Item], context: Context) -> list[Result]:
        """As Engine.map: one job of as many tasks as there are items."""
        if not items:
            return []
        shared = self._spark.sparkContext.broadcast(context)
        given = [pickle.dumps(item) for item in items]

        def run(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    made = pickle.dumps(function(pickle.loads(given[number]), shared.value))
                    yield pa.RecordBatch.from_pydict({"number": [number], "made": [made]})

        numbers = self._spark.range(0, len(items), 1, len(items))
        try:
            rows = numbers.mapInArrow(run, "number BIGINT, made BINARY").collect()
        finally:
            shared.destroy()
        made = {row.number: row.made for row in rows}
        return [pickle.loads(made[number]) for number in range(len(items))]
