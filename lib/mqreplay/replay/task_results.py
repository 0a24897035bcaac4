"""What tasks return: frames by name, merged to one result, and the counts of judged rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar

import polars as pl

from mqreplay.decisions.decision import Decision
from mqreplay.decisions.judgement import judgements_of_shard, undetermined_of_shard
from mqreplay.engines.passes import GoldRows

FRAMES_AT_ONCE = 8  # frames merged at a time
Frames = TypeVar("Frames")  # a frozen dataclass whose fields are frames, or such dataclasses


@dataclass(frozen=True)
class JudgedRows:
    """The number of decisions by judgement and reason, and the gaps of undetermined ones."""

    judgements: pl.DataFrame
    gaps: pl.DataFrame


def add_judged(gold: GoldRows, decision: Decision, rows: pl.DataFrame) -> JudgedRows:
    """Add the rows to the table of a decision, and return what they count."""
    gold.add(decision.table, rows)
    return counted_rows(decision, rows)


def counted_rows(decision: Decision, rows: pl.DataFrame) -> JudgedRows:
    """Return what the rows of a decision's table count."""
    return JudgedRows(judgements_of_shard(decision, rows), undetermined_of_shard(decision, rows))


def judged_in(result: Any) -> Iterator[JudgedRows]:
    """Yield all counts in the result of a pass."""
    if isinstance(result, JudgedRows):
        yield result
    elif is_dataclass(result):
        for each in fields(result):
            yield from judged_in(getattr(result, each.name))


def merged(parts: Sequence[Frames]) -> Frames:
    """Return the results with the frames of all parts, field by field; there is at least one part.

    >>> one, other = (JudgedRows(pl.DataFrame({"n": [n]}), pl.DataFrame()) for n in (1, 2))
    >>> merged([one, other]).judgements["n"].to_list()
    [1, 2]
    """
    kind: Any = type(parts[0])
    values = {each.name: [getattr(part, each.name) for part in parts] for each in fields(kind)}
    whole: Frames = kind(**{name: _merged_field(each) for name, each in values.items()})
    return whole


def _merged_field(parts: Sequence[Any]) -> Any:
    if is_dataclass(parts[0]):
        return merged(parts)
    return pl.concat(parts)


def compacted(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows without what they share with others: texts in lists keep the buffers of all rows, also packed."""
    # Arrow's oldest form has only their own.
    return pl.DataFrame(pl.from_arrow(rows.to_arrow(compat_level=pl.CompatLevel.oldest())), rows.schema)


class MergedEarly:
    """A frame of each task as one, by a function that may be used on its own results. Few frames are kept."""

    def __init__(self, merge: Callable[[Sequence[pl.DataFrame]], pl.DataFrame]) -> None:
        """Take no frame yet."""
        self._merge = merge
        self._kept: list[pl.DataFrame] = []

    def add(self, frame: pl.DataFrame) -> None:
        """Add the frame of one task."""
        self._kept.append(frame)
        if len(self._kept) == FRAMES_AT_ONCE:
            self._kept = [self.rows()]

    def rows(self) -> pl.DataFrame:
        """Return the frames of all tasks so far, merged."""
        return self._merge(self._kept)
