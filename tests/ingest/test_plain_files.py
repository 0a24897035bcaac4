"""A file of lines that are read many at a time: the rows, counts and refused lines are the decoder's."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.arrow_schemas import schema_of
from mqreplay.decode.kinds import KINDS
from mqreplay.ingest import plain_lines
from mqreplay.ingest.lines import LineReader, Refusals
from mqreplay.ingest.plain_lines import PlainLines
from mqreplay.ingest.records import FileStats, decode_lines

SAMPLE = Path(__file__).parents[2] / "data" / "sample"
WHOLE = {"request_ts": 1795228808477, "client_id": "c", "consumer_group": "g", "topic": "t", "queue_id": 0}
LINE = json.dumps(WHOLE | {"broker_name": "b", "queue_offset": 7}).encode()


def read(path: Path) -> tuple:
    """All that ingest keeps of a file of pulls."""
    told, reader = FileStats(), LineReader(str(path), KINDS["pull_log"].decode, refused=Refusals(1000))
    rows = [
        row for batch in decode_lines(reader, "d", "pull_log", schema_of("pull_log"), told) for row in batch.to_pylist()
    ]
    return rows, told.lines, told.quarantined, told.refused, told.reason


PARTS = [
    b"\n",
    b"\r\n",
    b" \n",
    b"\n\r\n",
    LINE + b"\n",
    LINE + b"\r\n",
    LINE * 2 + b"\n",
    LINE[:30] + b"\n",
    b"{}\n",
    LINE,
]
PARTS += [LINE.replace(b'"c"', b'"%d"' % n) + b"\n" for n in range(3)]
PARTS += [LINE.replace(b"}", b', "x_%d": "1"}' % n) + b"\n" for n in range(3)]


@given(st.lists(st.sampled_from(PARTS), max_size=40), st.booleans(), st.integers(1, 3000), st.integers(1, 2000))
def test_a_file_gives_the_rows_and_refused_lines_that_the_decoder_gives(
    tmp_path_factory, parts: list[bytes], zipped: bool, block: int, small: int
) -> None:
    path = tmp_path_factory.mktemp("file") / "pull_log.jsonl"
    path.write_bytes(gzip.compress(b"".join(parts)) if zipped else b"".join(parts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mqreplay.ingest.lines.BLOCK", block)
        patch.setattr(plain_lines, "_SLICE", small)
        found = read(path)
        patch.setitem(KINDS, "pull_log", replace(KINDS["pull_log"], plain=None))
        assert found == read(path)


def test_one_bad_line_sends_few_others_to_the_decoder(tmp_path) -> None:
    with gzip.open(SAMPLE / "orders-4.9.7" / "pull_log.jsonl.gz") as stream:
        lines = stream.read().splitlines()
    lines = [*lines[:4000], b"bad", *lines[4000:8000]]
    (tmp_path / "pull_log.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    fast = PlainLines(KINDS["pull_log"].plain)
    reader = LineReader(str(tmp_path / "pull_log.jsonl"), KINDS["pull_log"].decode)
    left = sum(part.lines for block in reader.blocks() for part, plain in fast.parts(block) if plain is None)
    assert 1 <= left < 1000
