"""What runs kernels over shards. Engines differ in how they map a function, and in nothing that a table shows."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from isal import isal_zlib

Item = TypeVar("Item")
Context = TypeVar("Context")
Result = TypeVar("Result")


class Engine(Protocol):
    """Maps a function over items, each in a process of a worker. Safe for threads."""

    def map(
        self, function: Callable[[Item, Context], Result], items: Sequence[Item], context: Context
    ) -> Iterator[Result]:
        """Call function(item, context) for each item; when all are done, yield what they returned, in their order.

        Results lie in memory packed, and are unpacked one by one: fold them if they are large.
        The function must be a module's own, and all that goes to it and comes from it must pickle. An item may be
        given to the function twice, when a worker dies: what it writes counts only when its result is used.
        """
        ...

    def progress(self) -> str:
        """Return the progress of the running calls as text."""
        ...

    def cancel(self) -> None:
        """Give up what runs now."""
        ...


def packed(value: Any) -> bytes:
    """Return a value as bytes that take little room: frames repeat names."""
    return isal_zlib.compress(pickle.dumps(value), 1)


def unpacked(data: bytes) -> Any:
    """Return what was packed."""
    return pickle.loads(isal_zlib.decompress(data))
