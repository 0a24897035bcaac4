"""A pass: a function over rows that are dealt to tasks. Passes are declared once, and every engine runs them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import polars as pl
import pyarrow as pa

from mqreplay.engines.rows import CountedRows, RowSource
from mqreplay.engines.shards import Shard
from mqreplay.lake.buckets import Key
from mqreplay.lake.row_filter import RowFilter

PIECE_ROWS = 1_000_000  # rows that a task without a shard has at a time
Input = TypeVar("Input")
Result = TypeVar("Result")
Setting = TypeVar("Setting")


class GoldRows(Protocol):
    """Takes the rows of gold tables from a task."""

    def add(self, table: str, rows: pl.DataFrame) -> None:
        """Write the rows, which have all columns except the cluster. They count if the task's result is used."""
        ...


@dataclass(frozen=True)
class RowBefore(Generic[Input]):
    """A column ``name`` with the last value, not null, of the rows before: a window on Spark.

    Rows are those with the same ``by``, in the order of the instant ``at``, and of the values at one instant.
    ``value``, ``by`` and ``at`` are SQL expressions over the table. Only rows whose column ``ts`` lies in the ``span``
    of the input (begin, end) count, and are read: the task must read just these.
    """

    name: str
    value: str
    by: tuple[str, ...]
    at: str
    ts: str
    span: Callable[[Input], tuple[dt.datetime, dt.datetime]]

    def of(self, rows: pl.DataFrame) -> pl.Series:
        """Return the column for the rows of whole keys ``by``."""
        value, at, by = pl.sql_expr(self.value), pl.sql_expr(self.at), [pl.sql_expr(each) for each in self.by]
        before = value.forward_fill().shift(1).over(by, order_by=[at, value])
        return rows.select(before.alias(self.name)).to_series()


@dataclass(frozen=True)
class RowFunction(Generic[Input, Setting]):
    """Columns that a function computes for each row of a table, of columns of the row: a UDF on Spark.

    ``function`` takes a frame with the columns ``reads``, and the ``settings`` made of the pass's input; it returns a
    frame of as many rows, with the columns ``gives``, whose types are those of the same columns of ``table``. Both
    functions must be defined at module level. Rows of one shard may be in different calls: no task has to have all rows
    of a large group for it. With ``before``, ``reads`` may name its column, which the rows then have, too.
    ``is_pandas``: on Spark it is a pandas UDF, not an Arrow UDF.
    """

    function: Callable[[pl.DataFrame, Setting], pl.DataFrame]
    settings: Callable[[Input], Setting]
    reads: tuple[str, ...]
    table: str
    gives: tuple[str, ...]
    before: RowBefore[Input] | None = None
    is_pandas: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Return all columns that the rows get, in order."""
        return self.gives if self.before is None else (self.before.name, *self.gives)


def no_settings(_: Any) -> None:
    """Return None: the rule has no settings."""


@dataclass(frozen=True)
class CaseRule(Generic[Input, Setting]):
    """A rule that is asked once for each distinct case of a task, between the halves of a pass: a UDF on Spark.

    ``function`` takes a frame with the columns ``reads``, and the ``settings`` made of the pass's input; it returns a
    frame of as many rows, with the columns ``gives``. Both functions must be defined at module level.
    """

    function: Callable[[pl.DataFrame, Setting], pl.DataFrame]
    settings: Callable[[Input], Setting]
    reads: pa.Schema
    gives: pa.Schema

    @property
    def name(self) -> str:
        """Return the function's name."""
        return self.function.__name__


class Asked(NamedTuple):
    """The result of a first half: the cases of each rule, in the order of the rules, and the ``rest``, picklable."""

    cases: Sequence[pl.DataFrame]
    rest: Any


@dataclass(frozen=True)
class PassTable:
    """A table that a pass reads. Rows with the same ``key`` go to the same task; without a key, to any task.

    ``columns`` None: all except the cluster and ``unread``. The columns of ``function`` follow them.
    """

    name: str
    key: Key | None = None
    columns: tuple[str, ...] | None = None
    function: RowFunction[Any, Any] | None = None
    unread: tuple[str, ...] = ()

    def names(self, schema: Iterable[str]) -> list[str]:
        """Return which columns of the table's schema a pass gets, without those of ``function``."""
        read = schema if self.columns is None else self.columns
        return [name for name in read if name != "cluster" and name not in self.unread]


@dataclass(frozen=True)
class Pass(Generic[Input, Result]):
    """A function, the tables that it reads of its shard, and the ``gold`` tables that it writes.

    The function must be defined at module level; its input and its result must be picklable. If a worker dies, it may
    be called twice for a shard. With ``rules`` it is the first half, and returns Asked; ``finish`` takes the rest and
    the answers of the rules, a row for each case, and returns the result. With ``parts`` (of the work, each with the
    tables that it reads), shards may have a part: the function then does the work of this part alone, and gets no rows
    of other tables that have a key.
    """

    function: Callable[[CountedRows, Shard, Input, GoldRows], Result | Asked]
    tables: tuple[PassTable, ...]
    gold: tuple[str, ...] = ()
    rules: tuple[CaseRule[Input, Any], ...] = ()
    finish: Callable[[Any, Sequence[pl.DataFrame], Input, GoldRows], Result] | None = None
    parts: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def run(self, source: Any, shard: Shard, inputs: Input, gold: GoldRows) -> Result:
        """Call the function, the rules and ``finish`` in this process."""
        result = self.function(source, shard, inputs, gold)
        if not isinstance(result, Asked):
            return result
        assert self.finish is not None
        pairs = zip(self.rules, result.cases, strict=True)
        answers = [rule.function(cases, rule.settings(inputs)) for rule, cases in pairs]
        return self.finish(result.rest, answers, inputs, gold)

    @property
    def name(self) -> str:
        """Return the function's name."""
        return self.function.__name__

    @property
    def is_dealt(self) -> bool:
        """Return whether the tasks have whole shards. Without a key, they have any part of the rows."""
        return any(table.key is not None for table in self.tables)


class PassRunner(Protocol):
    """Runs the passes of one day of a cluster, and writes the gold rows of their tasks."""

    @property
    def source(self) -> RowSource:
        """Return the rows for the driver: of small tables."""
        ...

    def run(self, step: Pass[Input, Result], shards: Sequence[Shard], inputs: Input) -> Iterator[Result]:
        """Call the pass for each shard, or for parts of all rows if it has no key; yield the results in any order.

        Results are packed in memory, and unpacked one by one. There is at least one. Gold rows of an earlier run of the
        same pass are dropped.
        """
        ...

    def commit(self, replaced: RowFilter | None) -> None:
        """Replace the rows ``replaced`` of the gold tables of all passes by those that the tasks added."""
        ...
