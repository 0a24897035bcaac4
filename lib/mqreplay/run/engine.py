"""What runs kernels over shards. Engines differ in how they map a function, and in nothing that a table shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Context = TypeVar("Context")
Result = TypeVar("Result")


class Engine(Protocol):
    """Maps a function over items, each in a process of a worker. Safe for threads."""

    def map(self, function: Callable[[Item, Context], Result], items: Sequence[Item], context: Context) -> list[Result]:
        """Return function(item, context) of each item, in their order.

        The function must be a module's own, and all that goes to it and comes from it must pickle. An item may be
        given to the function twice, when a worker dies: what it writes counts only when its result is used.
        """
        ...

    def progress(self) -> str:
        """Return how far the calls that run now have come, in words."""
        ...

    def cancel(self) -> None:
        """Give up what runs now."""
        ...
