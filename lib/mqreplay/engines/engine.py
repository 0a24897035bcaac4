"""Engines, which run kernels over shards. All engines give the same tables."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from mqreplay.engines.decoding import DecoderRunner
from mqreplay.engines.passes import PassRunner
from mqreplay.lake.row_filter import Days
from mqreplay.lake.warehouse import Warehouse

Item = TypeVar("Item")
Context = TypeVar("Context")
Result = TypeVar("Result")


class Engine(Protocol):
    """An engine maps a function over items in worker processes. It is thread-safe."""

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
