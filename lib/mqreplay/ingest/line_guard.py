"""Prove that polars read JSONL lines like their decoder, by counting strings, names and values.

polars accepts any line of JSON, and refuses non-integers in integer columns and non-booleans in boolean columns. Where
the decoder refuses, polars writes numbers, lists and objects into text columns, keeps one of two fields of the same
name, ignores fields that its schema lacks, and accepts half a surrogate pair.

All of that shows in counts. Each string of a line ends with a quotation mark; it is a name if a colon follows. A name
is a field of the line's object and has a value, so:

* If there are as many names as values in the table, each name has its own value: no name is there twice, none is
  unknown, and none is inside a field. A null value is not in the table: it is counted separately under its name.
* If there are as many other strings as values in text columns, each of these values is a string: a string can be
  nowhere else.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Places = NDArray[np.intp]

QUOTE, BACKSLASH, COLON, COMMA, BRACE, SPACE, LINE_END, N, U = (np.uint8(ord(sign)) for sign in '"\\:,} \nnu')
_HALF_PAIR: Final = tuple(np.uint8(ord(sign)) for sign in "dD")  # \ud800 to \udfff; a few letters go with them


def is_proven(text: bytes, frame: pl.DataFrame) -> bool:
    """Return whether each row of ``frame``, read from ``text`` by polars, equals the decoder's result for its line.

    The frame has a row for each line, and a column for each field that is read.

    >>> schema = {"a": pl.Int64, "s": pl.String}
    >>> lines = b'{"a":1,"s":"x"}', b'{"a":1,"s":2}', b'{"a":1,"a":2}', b'{"a":1,"b":2}', b'{"a":null}'
    >>> [is_proven(line, pl.read_ndjson(line, schema=schema)) for line in lines]
    [True, False, False, False, True]
    """
    raw = np.frombuffer(text, np.uint8)
    every = np.flatnonzero(raw == QUOTE)
    quotes = _without_escaped(raw, every) if b"\\" in text else every
    if quotes is None or len(quotes) % 2:
        return False
    opened, closed = quotes[0::2], quotes[1::2]
    after = raw[closed + 1]
    is_name = after == COLON
    names = int(np.count_nonzero(is_name))
    # Spaces before a colon would hide a name.
    if names + np.count_nonzero(after == COMMA) + np.count_nonzero(after == BRACE) != len(closed):
        return False
    values = {column.name: column.len() - column.null_count() for column in frame}
    words = sum(values[name] for name, kind in frame.schema.items() if kind == pl.String)
    if len(closed) - names != words:
        return False
    missing = names - sum(values.values())
    return missing == 0 or (missing > 0 and _are_nulls(raw, opened[is_name], closed[is_name], missing, frame))


def _without_escaped(raw: Bytes, quotes: Places) -> Places | None:
    """Return the text without escaped quotation marks; None if there may be half a surrogate pair."""
    slashes = np.flatnonzero(raw == BACKSLASH)
    # In a run of them each second one is escaped itself.
    begins = np.concatenate([[True], np.diff(slashes) != 1])
    first = np.maximum.accumulate(np.where(begins, np.arange(len(slashes)), 0))
    escaped = slashes[(np.arange(len(slashes)) - first) % 2 == 0] + 1
    unicode = escaped[raw[escaped] == U] + 1
    if np.isin(raw[unicode], _HALF_PAIR).any():
        return None
    found: Places = np.setdiff1d(quotes, escaped, assume_unique=True)
    return found


def _are_nulls(raw: Bytes, opened: Places, closed: Places, missing: int, frame: pl.DataFrame) -> bool:
    """Return whether exactly ``missing`` names have the value null, all distinct within a line, as in the frame."""
    value = raw[closed + 2]
    value = np.where(value == SPACE, raw[closed + 3], value)
    null = np.flatnonzero(value == N)
    if len(null) != missing:
        return False
    rows = np.searchsorted(np.flatnonzero(raw == LINE_END), opened[null])
    text = raw.tobytes()
    by_name: defaultdict[bytes, list[int]] = defaultdict(list)
    for row, begin, end in zip(rows.tolist(), (opened[null] + 1).tolist(), closed[null].tolist(), strict=True):
        by_name[text[begin:end]].append(row)
    columns = {name.encode(): name for name in frame.columns}
    for name, places in by_name.items():
        if name not in columns or len(set(places)) < len(places):
            return False
        if not frame[columns[name]].is_null().gather(places).all():
            return False
    return True
