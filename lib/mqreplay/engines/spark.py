"""The engine that runs on Spark: passes on DataFrames, and calls of a function as tasks of a job."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from mqreplay.engines.engine import Context, Item, Result
from mqreplay.engines.packing import item_frame, packed, unpacked
from mqreplay.engines.spark_decoding import SparkDecoderRunner
from mqreplay.engines.spark_passes import SparkPassRunner
from mqreplay.engines.spark_tables import SparkTables, known_errors
from mqreplay.lake.row_filter import Days
from mqreplay.lake.storage import storage, use_storage
from mqreplay.lake.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL_BYTES = 50_000_000  # of recordings, as they are in their files


class SparkEngine:
    """An engine on the session's master. A night without work does not start Spark."""

    def __init__(self, start: Callable[[bool], SparkSession], clusters_at_once: int = 1) -> None:
        """Take ``start``, which returns the session for a small night, or any. It is called when there is work."""
        self.clusters_at_once = clusters_at_once
        self._start, self._is_small = start, False
        self._session: SparkSession | None = None
        self._lock = threading.Lock()

    @property
    def session(self) -> SparkSession:
        """Return the session; start it if needed."""
        with self._lock:
            if self._session is None:
                self._session = self._start(self._is_small)
            return self._session

    def map(
        self, function: Callable[[Item, Context], Result], items: Sequence[Item], context: Context
    ) -> Iterator[Result]:
        """As Engine.map: a DataFrame of the items goes through mapInArrow, each in a partition of its own."""
        if not items:
            return iter(())
        task = packed((function, context, storage()))

        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            function, context, how = unpacked(task)
            use_storage(how)
            for batch in batches:
                for row in batch.to_pylist():
                    made = packed(function(unpacked(row["item"]), context))
                    yield pa.RecordBatch.from_pylist([{"number": row["number"], "made": made}])

        rows = item_frame(self.session, items).mapInArrow(run, "number BIGINT, made BINARY")
        with known_errors():
            made = {row.number: bytes(row.made) for row in rows.collect()}
        return (unpacked(made.pop(number)) for number in range(len(items)))

    def decoders(self, warehouse: Warehouse, cluster: str) -> SparkDecoderRunner:
        """As Engine.decoders: rows are those of DataFrames."""
        return SparkDecoderRunner(SparkTables(self.session, warehouse), cluster)

    def pass_runner(
        self, warehouse: Warehouse, cluster: str, day: dt.date, days: Mapping[str, Days]
    ) -> SparkPassRunner:
        """As Engine.pass_runner."""
        return SparkPassRunner(SparkTables(self.session, warehouse), cluster, day, days)

    def expect(self, size: int) -> None:
        """As Engine.expect: a small night ends before Java's and Spark's compilers pay off."""
        self._is_small = size <= SMALL_BYTES
        if self._session is not None:  # tables with names were looked up before the files were listed
            from mqreplay.lake.session import fit_plans, is_fitted

            if is_fitted(self._session):
                fit_plans(self._session, small=self._is_small)

    def progress(self) -> str:
        """As Engine.progress. The tasks are in Spark's own UI."""
        return "starting Spark" if self._session is None else "Spark is working"

    def cancel(self) -> None:
        """As Engine.cancel."""
        # PySpark 3.5 has it for Spark Connect alone: there, running jobs end by themselves.
        interrupt = getattr(self._session, "interruptAll", None)
        if interrupt is not None:
            interrupt()

    def restart(self) -> None:
        """As Engine.restart: tasks that still run write nothing that a later commit could use."""
