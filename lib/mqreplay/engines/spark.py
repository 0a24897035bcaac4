"""The engine that runs on Spark: passes on DataFrames, and calls of a function as tasks of a job."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from mqreplay.engines.engine import Context, Item, Result, packed, unpacked
from mqreplay.engines.rows import Days, FileRows
from mqreplay.engines.spark_errors import named_errors
from mqreplay.engines.spark_passes import SparkPassRunner
from mqreplay.engines.spark_tables import SparkTables
from mqreplay.lake.registration import CatalogNames
from mqreplay.lake.storage import storage, use_storage
from mqreplay.lake.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS_END_S = 60  # after that, files of a task that still runs are left until maintain removes them


class SparkEngine:
    """An engine on the session's master. A night without work does not start Spark."""

    def __init__(self, start: Callable[[], SparkSession], names: CatalogNames | None = None) -> None:
        """Take ``start``, which returns the session. It is called once, when there is work.

        With ``names``, passes read and write tables by their names in a catalog.
        """
        self._start, self._names = start, names
        self._session: SparkSession | None = None
        self._lock = threading.Lock()

    @property
    def session(self) -> SparkSession:
        """Return the session; start it if needed."""
        with self._lock:
            if self._session is None:
                self._session = self._start()
            return self._session

    def map(
        self, function: Callable[[Item, Context], Result], items: Sequence[Item], context: Context
    ) -> Iterator[Result]:
        """As Engine.map: one job with a task for each item. Ingest and compaction use it; passes do not."""
        if not items:
            return iter(())
        shared = self.session.sparkContext.broadcast((context, [packed(item) for item in items], storage()))

        def run(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
            context, packed_items, how = shared.value  # a worker reads it once for all of its tasks
            use_storage(how)
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    made = packed(function(unpacked(packed_items[number]), context))
                    yield pa.RecordBatch.from_pydict({"number": [number], "made": [made]})

        numbers = self.session.range(0, len(items), 1, len(items))
        try:
            with named_errors():
                rows = numbers.mapInArrow(run, "number BIGINT, made BINARY").collect()
        finally:
            shared.destroy()
        made = {row.number: row.made for row in rows}
        return (unpacked(made.pop(number)) for number in range(len(items)))

    def pass_runner(
        self, warehouse: Warehouse, day: dt.date, days: Mapping[str, Days], files: FileRows
    ) -> SparkPassRunner:
        """As Engine.pass_runner."""
        return SparkPassRunner(SparkTables(self.session, warehouse, self._names), day, days, files)

    def progress(self) -> str:
        """As Engine.progress: how many tasks of the running stages are done."""
        if self._session is None:
            return "starting Spark"
        tracker = self._session.sparkContext.statusTracker()
        # A stage may end between the two calls.
        found = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        done = sum(stage.numCompletedTasks for stage in found if stage is not None)
        tasks = sum(stage.numTasks for stage in found if stage is not None)
        return f"{done} of {tasks} tasks done" if tasks else "planning"

    def cancel(self) -> None:
        """As Engine.cancel."""
        if self._session is not None:
            self._session.sparkContext.cancelAllJobs()

    def restart(self) -> None:
        """As Engine.restart. Tasks in Python may run for a while after their job was cancelled."""
        if self._session is None:
            return
        tracker = self._session.sparkContext._jsc.sc().statusTracker()  # the one of PySpark lacks the executors
        deadline = time.monotonic() + TASKS_END_S
        while any(each.numRunningTasks() for each in tracker.getExecutorInfos()) and time.monotonic() < deadline:
            time.sleep(0.1)
