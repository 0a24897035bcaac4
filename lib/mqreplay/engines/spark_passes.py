"""Passes on Spark: rows are read as DataFrames, shuffled once by the bucket of their key, and judged in mapInArrow.

Gold rows come back as rows too, and delta-spark writes them. The driver keeps small tables.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from mqreplay.engines.packing import packed, unpacked
from mqreplay.engines.passes import Input, Pass, PassTable, Result
from mqreplay.engines.rows import NamedRows, RowSource, file_rows
from mqreplay.engines.shards import Shard
from mqreplay.engines.spark_row_functions import with_answers, with_computed
from mqreplay.engines.spark_tables import FEW_ROWS, SparkTables, bucket, described, known_errors
from mqreplay.engines.spark_task import PACKED_SQL, RESULT, TASK, SparkTask, finishing_function, partition_function
from mqreplay.lake.buckets import BUCKETS
from mqreplay.lake.ipc_blobs import batches_of
from mqreplay.lake.row_filter import Days, RowFilter
from mqreplay.lake.storage import storage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WRITERS = 3
UNASSIGNED = -1  # of a bucket outside of the shards
NUMBERS = 32  # numbers tried for each partition


class SparkPassRunner:
    """Passes as jobs of Spark on the tables of a warehouse, for one day of a cluster."""

    def __init__(self, tables: SparkTables, cluster: str, day: dt.date, days: Mapping[str, Days]) -> None:
        """Take the tables, the cluster and day, and ``days``: which days of each table a replay reads."""
        self._tables, self._cluster, self._day, self._days = tables, cluster, day, days
        warehouse = tables.warehouse
        self.source: RowSource = (
            NamedRows(warehouse, cluster) if tables.by_name else file_rows(warehouse, cluster, days)
        )
        # By name, the number of rows is known only of tables that this run has written or copied.
        self._rows = {name: warehouse.known_rows(name, each.of_cluster(cluster)) for name, each in days.items()}
        self._steps: dict[str, tuple[str, ...]] = {}  # gold tables by pass
        self._gold: dict[str, bool] = {}  # whether a gold table has rows
        self._kept: dict[str, DataFrame] = {}  # packed results and gold rows by pass
        self._few: dict[str, list[pa.RecordBatch]] = {}  # gold rows of a table, if the pass has few
        self._numbers: dict[int, list[int]] = {}

    def run(self, step: Pass[Input, Result], shards: Sequence[Shard], inputs: Input) -> Iterator[Result]:
        """As PassRunner.run."""
        self._forget(step)
        dealt = [table for table in step.tables if table.key is not None or not step.is_dealt]
        filled = [table for table in dealt if self._has_rows(table)]
        task = self._task(step, inputs, [table for table in step.tables if table not in dealt])
        results = []
        if filled:
            what = f"{step.name.replace('_', ' ')} of {self._cluster}, {self._day}"
            with described(self._tables.session, what), known_errors():
                results = self._judged(step, task, filled, shards)
        if not results:  # no row is of these days
            results = [task.run()]
        for made in results:
            result, added = unpacked(made)
            for table, number in added.items():
                self._gold[table] = self._gold[table] or number > 0
            yield result

    def _judged(
        self, step: Pass[Any, Any], task: SparkTask, tables: Sequence[PassTable], shards: Sequence[Shard]
    ) -> list[bytes]:
        """Run the tasks; return their packed results, and keep their gold rows."""
        from pyspark import StorageLevel

        made = self._made(step, task, tables, shards)
        if self._has_few_rows(tables):
            found = made.collect()
            for row in found:
                if row["_table"] != RESULT:
                    self._few.setdefault(row["_table"], []).extend(batches_of(bytes(row.rows)))
            return [bytes(row.rows) for row in found if row["_table"] == RESULT]
        if step.gold:
            # In memory, large values would leave no heap for what reads them.
            made = self._kept[step.name] = made.persist(StorageLevel.DISK_ONLY)
        return [bytes(row.rows) for row in made.where(f"_table = '{RESULT}'").select("rows").collect()]

    def _made(
        self, step: Pass[Any, Any], task: SparkTask, tables: Sequence[PassTable], shards: Sequence[Shard]
    ) -> DataFrame:
        """Return the results and gold rows of all tasks, packed."""
        from pyspark.sql.pandas.types import from_arrow_schema

        numbers = self._task_numbers(shards)
        parts_of_tasks = {number: shard.part for shard, number in numbers.items() if shard.part}
        data = packed(replace(task, parts=parts_of_tasks))
        # Rows that are not dealt need no union: a task has those of one table.
        together = [tables] if step.is_dealt else [[table] for table in tables]
        rows = [self._union(each, shards if step.is_dealt else [], task.inputs, step.parts) for each in together]
        asked = from_arrow_schema(task.schema)
        parts = [each.mapInArrow(partition_function(data, step.name), asked) for each in rows]
        if step.finish is not None:
            finish = finishing_function(data, step.finish.__name__)
            parts = [with_answers(each, step.rules, task.inputs).mapInArrow(finish, PACKED_SQL) for each in parts]
        return reduce(lambda one, other: one.union(other), parts)

    def commit(self, replaced: RowFilter | None) -> None:
        """As PassRunner.commit: by Spark the tables that have rows."""
        steps = {table: name for name, tables in self._steps.items() for table in tables}
        try:
            with ThreadPoolExecutor(WRITERS) as pool:
                list(pool.map(lambda table: self._commit(table, self._kept.get(steps[table]), replaced), steps))
        finally:
            for rows in self._kept.values():
                rows.unpersist()
            self._kept.clear()

    def _commit(self, table: str, made: DataFrame | None, replaced: RowFilter | None) -> None:
        warehouse = self._tables.warehouse
        writer = warehouse.writer(table, {"cluster": self._cluster})
        if made is not None and self._gold[table]:
            of_day = RowFilter(self._cluster, days=frozenset({self._day}))
            self._tables.commit(table, made.where(f"_table = '{table}'").select("rows"), writer, of_day)
            return
        warehouse.commit_files(table, writer.write(self._few.get(table, [])), replaced)

    def _forget(self, step: Pass[Any, Any]) -> None:
        """Drop the gold rows of an earlier run of the pass."""
        self._steps[step.name] = step.gold
        self._gold |= dict.fromkeys(step.gold, False)
        for table in step.gold:
            self._few.pop(table, None)
        if step.name in self._kept:
            self._kept.pop(step.name).unpersist()

    def _has_rows(self, table: PassTable) -> bool:
        return self._rows[table.name] != 0

    def _has_few_rows(self, tables: Iterable[PassTable]) -> bool:
        """Return whether the driver may commit what tasks make of these tables."""
        if not self._tables.may_write(self._cluster):
            return True
        rows = [self._rows[table.name] for table in tables]
        return None not in rows and sum(number or 0 for number in rows) <= FEW_ROWS

    def _task(self, step: Pass[Any, Any], inputs: Any, whole: Sequence[PassTable]) -> SparkTask:
        """Return what all tasks share; ``whole`` are tables of which each task gets all rows."""
        contracts = self._tables.warehouse.contracts
        names = [*(table.name for table in step.tables), *step.gold]
        schemas = {name: _without_cluster(contracts[name].arrow_schema) for name in names}
        for table in step.tables:
            schema = schemas[table.name]
            schemas[table.name] = pa.schema([schema.field(name) for name in table.names(schema.names)])
            if (of_row := table.function) is not None:
                answers = contracts[of_row.table].arrow_schema
                schemas[table.name] = pa.schema(
                    [*schemas[table.name], *(answers.field(name) for name in of_row.columns)]
                )
        frames = {table.name: self.source.read(table.name, self._days[table.name], pl.lit(True)) for table in whole}
        return SparkTask(step, inputs, schemas, frames, storage())

    def _union(
        self,
        tables: Sequence[PassTable],
        shards: Sequence[Shard],
        inputs: Any,
        tables_of_part: Mapping[str, frozenset[str]],
    ) -> DataFrame:
        """Return the rows of the tables: each is a column of structs, null in rows of other tables."""
        from pyspark.sql import functions as F

        numbers = self._task_numbers(shards)
        parts, some_are_unassigned = [], False
        for table in tables:
            names = table.names(self._tables.columns(table.name))
            rows = self._tables.of_cluster(table.name, self._cluster, self._days[table.name], names)
            if table.function is not None:
                read, answers = (self._tables.warehouse.contracts[name] for name in (table.name, table.function.table))
                rows = with_computed(rows, table.function, inputs, read, answers)
            row = F.struct(*rows.columns).alias(table.name.replace(".", "__"))
            key = []
            if table.key is not None and numbers:
                doing = [part for part, names in tables_of_part.items() if table.name in names] or [""]
                lists = _numbers_of_buckets(numbers, doing)
                some_are_unassigned |= any(UNASSIGNED in each for each in lists)
                of_row = [_number(bucket(table.key), each) for each in lists]
                # Each part of the work that reads the table gets the row.
                task = of_row[0] if len(of_row) == 1 else F.explode(F.array_distinct(F.array(*of_row)))
                key = [task.alias(TASK)]
            parts.append(rows.select(*key, row))
        union = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
        if not numbers:
            return union
        mine = union.where(F.col(TASK) != UNASSIGNED) if some_are_unassigned else union
        dealt = mine.repartition(len(numbers), TASK)
        return dealt if any(shard.part for shard in numbers) else dealt.drop(TASK)

    def _task_numbers(self, shards: Sequence[Shard]) -> dict[Shard, int]:
        """Return a number for each shard, which Spark's hash puts into a partition of the shard's own.

        The largest shards are in the first partitions, which start first.
        """
        numbers = self._partition_numbers(len(shards)) if len(shards) > 1 else [0]
        return dict(zip(sorted(shards, key=lambda shard: -shard.rows), numbers, strict=False))

    def _partition_numbers(self, partitions: int) -> list[int]:
        """Return for each partition a number that `repartition` puts into it."""
        if partitions not in self._numbers:
            tried = self._tables.session.range(partitions * NUMBERS)
            placed = {
                row.place: row.id for row in tried.selectExpr("id", f"pmod(hash(id), {partitions}) AS place").collect()
            }
            # Without a number, shards share a partition: a task then has several of them.
            self._numbers[partitions] = [placed.get(place, place) for place in range(partitions)]
        return self._numbers[partitions]


def _numbers_of_buckets(numbers: Mapping[Shard, int], parts: Iterable[str]) -> list[list[int]]:
    """Return the number of the task for each bucket: a list for each part of the work, without repeats."""
    lists: list[list[int]] = []
    for part in parts:
        of_bucket = [UNASSIGNED] * BUCKETS
        for shard, number in numbers.items():
            if shard.does(part):
                of_bucket[shard.low : shard.high + 1] = [number] * (shard.high + 1 - shard.low)
        if of_bucket not in lists:
            lists.append(of_bucket)
    return lists


def _number(place: Column, numbers: Sequence[int]) -> Column:
    """Return the number of a bucket. The list is a constant: Spark makes it once for a query."""
    from pyspark.sql import functions as F

    listed = F.split(F.lit(",".join(map(str, numbers))), ",").cast("array<bigint>")
    return F.element_at(listed, (place + 1).cast("int"))


def _without_cluster(schema: pa.Schema) -> pa.Schema:
    return pa.schema([column for column in schema if column.name != "cluster"])
