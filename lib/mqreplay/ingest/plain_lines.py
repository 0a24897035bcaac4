"""Read many JSONL lines of plain columns with polars' JSON reader: the fast twin of PlainColumns.take.

It accepts a block only if the decoder would accept every line: one object per line, no duplicate field, every field of
its type and within its bounds. polars refuses invalid JSON, and values that are not numbers or booleans in such
columns; is_proven proves the rest. In doubt the result is None, and the caller decodes the lines one by one, which
also gives the errors. Runs on the workers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from mqreplay.decode.columns import PlainColumns
from mqreplay.ingest.lines import BLOCK, CHUNK, Block, record_id
from mqreplay.ingest.repeats import Repeats

_TYPES: dict[str, type[pl.DataType]] = {
    "string": pl.String,
    "boolean": pl.Boolean,
    "int": pl.Int64,
    "bigint": pl.Int64,
    "timestamp_ms": pl.Int64,
}
# Type of an unknown field by the first byte of its first value: text, number or boolean. Lines with other or mixed
# types are left to the decoder.
_KINDS: dict[bytes, type[pl.DataType]] = {b'"': pl.String, b"n": pl.String, b"t": pl.Boolean, b"f": pl.Boolean}
_FIELD = re.compile(rb'"([^"\\]{1,100})": ?(["ntf0-9-])')
_NEW_NAMES = 64  # unknown fields in the records of a file
_LONGEST = BLOCK + CHUNK  # bytes of a block; only one with a very long line has more
_LEAST_LINE = 30  # average bytes of a line: a list of shorter ones takes several times their size in memory
_SLICE = 256 * 1024  # bytes of lines that are tried again together if a block is refused
Bytes = NDArray[np.uint8]
Places = NDArray[np.intp]
QUOTE, BACKSLASH, COLON, COMMA, BRACE, SPACE, LINE_END, N, U = (np.uint8(ord(sign)) for sign in '"\\:,} \nnu')
_HALF_PAIR: Final = tuple(np.uint8(ord(sign)) for sign in "dD")  # \ud800 to \udfff; a few letters go with them


class Plain(NamedTuple):
    """Lines without line breaks, and their columns: a row per line, times as epoch ms."""

    lines: list[bytes]
    frame: pl.DataFrame


class PlainLines:
    """A reader of blocks of lines of one kind and file."""

    def __init__(self, columns: PlainColumns) -> None:
        """Take ``columns`` of the kind, with types, bounds and required fields."""
        self.columns = columns
        self.schema = {name: _TYPES[kind] for name, kind in columns.types.items()}
        self._learned = False

    def parts(self, block: Block) -> Iterator[tuple[Block, Plain | None]]:
        """Yield the block, or smaller ones if it is refused, each with its rows; None: decode one by one."""
        if not block.whole:
            yield block, None
            return
        if not self._learned:
            self._learned = True
            self._learn(block.text[:_SLICE])
        # A carriage return is not part of the line.
        plain = self._read(block.text, block.lines) if b"\r" not in block.text else None
        if plain is not None:
            yield block, plain
            return
        for part in slices(block):
            yield part, self.read([line for _, line, _ in part.numbered()])

    def read(self, lines: list[bytes]) -> Plain | None:
        """Return the rows of some lines; None if they must be decoded one by one."""
        text = b"\n".join(lines)
        plain = self._read(text, len(lines))
        if plain is None and _is_usual(text, len(lines)) and self._learn(text):
            return self._read(text, len(lines))
        return plain

    def _read(self, text: bytes, lines: int) -> Plain | None:
        if not _is_usual(text, lines):
            return None
        try:
            frame = pl.read_ndjson(text, schema=self.schema)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return None
        if frame.height != lines or not is_proven(text, frame):
            return None
        frame = frame.select(list(self.columns.types))
        return Plain(text.split(b"\n"), frame) if self._fits(frame) else None

    def _learn(self, text: bytes) -> bool:
        """Add unknown fields of these lines; return False if there are none or too many."""
        found = {name.decode("ascii", "replace"): kind for name, kind in dict(_FIELD.findall(text)).items()}
        new = {name: _KINDS.get(kind, pl.Float64) for name, kind in found.items() if name not in self.schema}
        if not new or len(self.schema) + len(new) > len(self.columns.types) + _NEW_NAMES:
            return False
        self.schema |= new
        return True

    def _fits(self, frame: pl.DataFrame) -> bool:
        if any(frame[name].null_count() for name in self.columns.required):
            return False
        for names, low, high, _ in self.columns.bounded:
            ends = frame.select(pl.col(names).min().name.suffix("<"), pl.col(names).max().name.suffix(">")).row(0)
            if any(end is not None and not low <= end <= high for end in ends):
                return False
        return True


def _is_usual(text: bytes, lines: int) -> bool:
    return 0 < lines * _LEAST_LINE <= len(text) <= _LONGEST


def slices(block: Block) -> list[Block]:
    """Split the block, so that a refused line sends only few others to the decoder.

    >>> [len(one.text) for one in slices(Block(1, 7, b"\\n".join([b"x" * 99_999] * 7)))]
    [299999, 299999, 99999]
    """
    parts, begin, first = [], 0, block.first
    while begin <= len(block.text):
        end = block.text.find(b"\n", begin + _SLICE)
        end = len(block.text) if end < 0 else end
        text = block.text[begin:end]
        parts.append(Block(first, text.count(b"\n") + 1, text))
        first += parts[-1].lines
        begin = end + 1
    return parts


def as_batch(plain: Plain, digest: str, repeats: Repeats, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of a block with the columns of ``schema`` and the ids of record and file; others are null."""
    rows = len(plain.lines)
    ids = repeats.named([record_id(line) for line in plain.lines])
    columns = plain.frame.to_arrow(compat_level=pl.CompatLevel.newest())
    by_name = dict(zip(columns.column_names, columns.columns, strict=True)) | {
        "record_id": pa.array(ids, pa.string()),
        "source_digest": pa.repeat(pa.scalar(digest, pa.string()), rows),
    }
    arrays = [_cast(by_name[f.name], f.type) if f.name in by_name else pa.nulls(rows, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_timestamp(kind):
        whole = whole.cast(pa.timestamp("ms", kind.tz))
    return whole.cast(kind)


# polars accepts any line of JSON, and refuses non-integers in integer columns and non-booleans in boolean columns.
# Where the decoder refuses, polars writes numbers, lists and objects into text columns, keeps one of two fields of the
# same name, ignores fields that its schema lacks, and accepts half a surrogate pair.
#
# All of that shows in counts. Each string of a line ends with a quotation mark; it is a name if a colon follows. A name
# is a field of the line's object and has a value, so:
#
# * If there are as many names as values in the table, each name has its own value: no name is there twice, none is
#   unknown, and none is inside a field. A null value is not in the table: it is counted separately under its name.
# * If there are as many other strings as values in text columns, each of these values is a string: a string can be
#   nowhere else.
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
