"""Many JSONL lines of plain columns at once, by Arrow's own JSON reader: the fast twin of PlainColumns.take.

It takes a block only where every line is what the decoder of its kind would take: one object a line, no field twice,
every field of its type and within its bounds. Where Arrow refuses the block, or would read it otherwise, the answer is
None, and the caller decodes it line by line, which also says what is wrong and where. Runs on the workers.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from mqreplay.decode.columns import PlainColumns
from mqreplay.ingest.lines import record_id
from mqreplay.ingest.repeats import Repeats

_TYPES = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "int": pa.int64(),
    "bigint": pa.int64(),
    "timestamp_ms": pa.int64(),
}
# What Arrow takes in a field that it does not know, and the line decoder does not: words for numbers, and integers of
# more digits than Python reads.
_NO_NUMBER = re.compile(rb"[:,\[]\s*-?(?:NaN|Inf)")
_MOST_DIGITS = sys.int_info.default_max_str_digits
_LONG_INTEGER = re.compile(rb"[0-9]{%d}" % (_MOST_DIGITS + 1))
# Containers in containers: Arrow's reader goes down by calling itself, and from some ten thousand on the process dies.
_DEEPEST = 100
SLICE = 1_000  # lines that Arrow reads at once
# Arrow makes a column of each name that it meets, and in each a place for every line it reads: of names that are all
# different, as where a recorder made names of ids, some thousand lines would take gigabytes.
_COLONS = 16  # of a line on an average, beyond one for each column of its kind
_NEW_NAMES = 256  # that a kind of record may have besides its columns
JSON_BLOCK = 1 << 22  # bytes
Columns = dict[str, pa.Array]


class PlainLines:
    """Reads blocks of lines of one kind, all of one file."""

    def __init__(self, columns: PlainColumns) -> None:
        """``columns`` is the kind's: its types, bounds and required fields are the law here too."""
        self.columns = columns
        self._schema = pa.schema([(name, _TYPES[kind]) for name, kind in columns.types.items()])
        self._hopeless = False  # too many names: the rest of the file is not tried
        self._seen: pa.Schema | None = None
        self._floats = False

    def read(self, lines: Sequence[bytes]) -> Columns | None:
        """The columns of lines (no line feeds, none blank), times as epoch ms; None to have them read one by one."""
        tables = []
        for begin in range(0, len(lines), SLICE):
            table = self._read(lines[begin : begin + SLICE])
            if table is None:
                return None
            tables.append(table)
        whole = pa.concat_tables(tables)
        found = {name: whole.column(name).combine_chunks() for name in self.columns.types}
        return found if self._fits(found) else None

    def _read(self, lines: Sequence[bytes]) -> pa.Table | None:
        block = b"\n".join(lines)
        if self._hopeless or _doubtful(block, len(lines), len(self.columns.types)):
            return None
        try:
            block.decode("utf-8")
            table = pj.read_json(
                io.BytesIO(block),
                read_options=pj.ReadOptions(use_threads=False, block_size=JSON_BLOCK),
                parse_options=pj.ParseOptions(explicit_schema=self._schema, unexpected_field_behavior="infer"),
            )
        except (UnicodeDecodeError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        if table.schema != self._seen:
            self._seen, self._floats = table.schema, _has_floats(table.schema)
            self._hopeless = _names(pa.struct(table.schema)) > len(self._schema) + _NEW_NAMES
        if self._hopeless or table.num_rows != len(lines) or (self._floats and _NO_NUMBER.search(block)):
            return None
        return table.select(self._schema.names)

    def _fits(self, found: Columns) -> bool:
        if any(found[name].null_count for name in self.columns.required):
            return False
        for names, low, high, _ in self.columns.bounded:
            for name in names:
                ends = pc.min_max(found[name])
                if ends["min"].is_valid and not low <= ends["min"].as_py() <= ends["max"].as_py() <= high:
                    return False
        return True


def _doubtful(block: bytes, lines: int, columns: int) -> bool:
    """Whether it may be anything but an object a line, of about so many columns, without too much in each other."""
    text = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    # Between a line that ends an object and one that begins one, no object can go on.
    if block[:1] + block[-1:] != b"{}" or (text[ends - 1] != ord("}")).any() or (text[ends + 1] != ord("{")).any():
        return True
    # Each name has its colon.
    if np.count_nonzero(text == ord(":")) > lines * (columns + _COLONS):
        return True
    # One bit tells [ from {. A line opens one container at least, and hardly ever many.
    opened = np.count_nonzero(text | 32 == ord("{"))
    if opened - lines >= _DEEPEST and any(
        line.count(b"{") + line.count(b"[") > _DEEPEST for line in block.split(b"\n")
    ):
        return True
    longest = int(np.diff(ends, prepend=-1, append=len(block)).max())
    return longest > _MOST_DIGITS and _LONG_INTEGER.search(block) is not None


def _names(kind: pa.DataType) -> int:
    """How many names of fields are in the type, at any depth."""
    if pa.types.is_list(kind):
        return _names(kind.value_type)
    if pa.types.is_struct(kind):
        return sum(1 + _names(field.type) for field in kind)
    return 0


def _has_floats(schema: pa.Schema) -> bool:
    """Whether Arrow took anything for a number with a point; the names of nested types tell what is in them."""
    return any("double" in str(field.type) or "float" in str(field.type) for field in schema)


def as_batch(
    columns: Columns, lines: Sequence[bytes], digest: str, repeats: Repeats, schema: pa.Schema
) -> pa.RecordBatch:
    """The rows of a block in the shape of ``schema``, with their identity and their file's; other columns are null."""
    rows = len(lines)
    ids = repeats.named([record_id(line) for line in lines])
    beside = {
        "record_id": pa.array(ids, pa.string()),
        "source_digest": pa.repeat(pa.scalar(digest, pa.string()), rows),
    }
    given = columns | beside
    arrays = [_cast(given[f.name], f.type) if f.name in given else pa.nulls(rows, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("ms", kind.tz)).cast(kind)
    return column.cast(kind)
