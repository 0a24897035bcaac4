"""Decoding: tasks turn recorded files into new rows of tables. Every engine runs the same decoders."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import polars as pl
import pyarrow as pa

from mqreplay.lake.row_filter import RowFilter

Item = TypeVar("Item")
Context = TypeVar("Context")
Result = TypeVar("Result")
# Called with an item, the columns of its rows, and the context: yields the rows, and returns a result.
Decoder = Callable[[Item, pa.Schema, Context], Generator[pa.RecordBatch, None, Result]]


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
