"""Engines, which run kernels over shards. All engines give the same tables."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import polars as pl
import pyarrow as pa

from mqreplay.engines.passes import PassRunner
from mqreplay.lake.row_filter import Days, RowFilter
from mqreplay.lake.warehouse import Warehouse

Item = TypeVar("Item")
Context = TypeVar("Context")
Result = TypeVar("Result")
# Called with an item, the columns of its rows, and the context: yields the rows, and returns a result.
Decoder = Callable[[Item, pa.Schema, Context], Generator[pa.RecordBatch, None, Result]]


class Engine(Protocol):
    """An engine maps a function over items in worker processes. It is thread-safe."""

    @property
    def clusters_at_once(self) -> int:
        """Return how many clusters may be replayed at the same time, each by its thread."""
        ...

    def map(
        self, function: Callable[[Item, Context], Result], items: Sequence[Item], context: Context
    ) -> Iterator[Result]:
        """Call function(item, context) for each item, and yield the results in order; the first error is raised.

        Results are packed until they are yielded, and not kept: fold them if they are large.
        The function must be defined at module level; its arguments and result must be picklable. If a worker dies, the
        function may be called twice for an item: its files count only if its result is used.
        """
        ...

    def decoders(self, warehouse: Warehouse, cluster: str) -> DecoderRunner:
        """Return what runs decoders for a cluster, and writes their rows into the warehouse."""
        ...

    def pass_runner(self, warehouse: Warehouse, cluster: str, day: dt.date, days: Mapping[str, Days]) -> PassRunner:
        """Return what runs the passes of a day of a cluster, which read these ``days`` of each table."""
        ...

    def expect(self, size: int) -> None:
        """Take the number of bytes in the recordings of a run, before any work is done."""
        ...

    def progress(self) -> str:
        """Return the progress of the running calls as text."""
        ...

    def cancel(self) -> None:
        """Cancel running tasks. Until ``restart`` there must be no new calls."""
        ...

    def restart(self) -> None:
        """Wait until cancelled tasks have ended, and accept new ones."""
        ...


@dataclass(frozen=True)
class DecodedTable:
    """A table of decoded rows: ``day_of`` is the instant whose date (UTC) is the row's day."""

    name: str
    day_of: str


class NewRows(Protocol):
    """Decoded rows of one table. Readers see them after ``commit``."""

    @property
    def count(self) -> int:
        """Return the number of rows."""
        ...

    def scan(self) -> pl.LazyFrame:
        """Return the rows with all columns of the table."""
        ...

    def without(self, gone: pl.Expr) -> NewRows:
        """Return the rows for which ``gone`` is not true."""
        ...

    def commit(self, replaced: RowFilter | None) -> None:
        """Replace the rows ``replaced`` of the table, if any, by these. Raises ContractError."""
        ...


@dataclass(frozen=True)
class Decoded(Generic[Result]):
    """The results of a decoder, in the order of its items, and the new rows by table."""

    results: list[Result]
    rows: Mapping[str, NewRows]


class DecoderRunner(Protocol):
    """Runs decoders for one cluster. Leave its ``with`` block after all commits."""

    def run(
        self,
        decode: Decoder[Item, Context, Result],
        items: Sequence[tuple[DecodedTable, Item]],
        context: Context,
    ) -> Decoded[Result]:
        """Call the decoder for each item, whose rows are of the table beside it.

        The function must be defined at module level; items, context and results must be picklable. If a worker dies, it
        may be called twice for an item: rows count only if its result is used.
        """
        ...

    def none(self, table: DecodedTable) -> NewRows:
        """Return new rows without any row."""
        ...

    def __enter__(self) -> DecoderRunner:
        """Return the runner."""
        ...

    def __exit__(self, *_: Any) -> None:
        """Free what decoded rows need."""
        ...
