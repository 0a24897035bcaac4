"""The results of a pass's tasks as one result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import polars as pl

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
