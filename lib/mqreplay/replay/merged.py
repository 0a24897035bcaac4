"""The results of a pass's tasks as one result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import polars as pl

AT_ONCE = 8  # frames merged at a time
Frames = TypeVar("Frames")  # a frozen dataclass whose fields are frames, or such dataclasses


def merged(parts: Sequence[Frames]) -> Frames:
    """Return the results with the frames of all parts, field by field; there is at least one part.

    >>> from mqreplay.replay.judged_rows import JudgedRows
    >>> one, other = (JudgedRows(pl.DataFrame({"n": [n]}), pl.DataFrame()) for n in (1, 2))
    >>> merged([one, other]).judgements["n"].to_list()
    [1, 2]
    """
    kind: Any = type(parts[0])
    values = {each.name: [getattr(part, each.name) for part in parts] for each in fields(kind)}
    made: Frames = kind(**{name: _merged_field(found) for name, found in values.items()})
    return made


def _merged_field(found: Sequence[Any]) -> Any:
    if is_dataclass(found[0]):
        return merged(found)
    return pl.concat(found)


class MergedEarly:
    """A frame of each task as one, by a function that may be used on its own results. Few frames are kept."""

    def __init__(self, merge: Callable[[Sequence[pl.DataFrame]], pl.DataFrame]) -> None:
        """Take no frame yet."""
        self._merge = merge
        self._kept: list[pl.DataFrame] = []

    def add(self, frame: pl.DataFrame) -> None:
        """Add the frame of one task."""
        self._kept.append(frame)
        if len(self._kept) == AT_ONCE:
            self._kept = [self.rows()]

    def rows(self) -> pl.DataFrame:
        """Return the frames of all tasks so far, merged."""
        return self._merge(self._kept)
