"""A day read in pieces gives the same changes and rows as a day read as a whole."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mqreplay.ingest.diffs import Source
from mqreplay.ingest.entries import Moves, SnapshotFile
from mqreplay.ingest.pieces import LEAD, catch_up, joined, pieces

TEXTS = st.one_of(
    st.dictionaries(
        st.sampled_from(["t@g", "u@g", "u@g@broadcast", "strange", "odd"]), st.integers(0, 120), min_size=1, max_size=4
    ).map(
        lambda d: '{\n\t"offsetTable":{\n' + ",\n".join(f'\t\t"{k}":{{0:{v}\n\t\t}}' for k, v in d.items()) + "\n\t}\n}"
    ),
    st.sampled_from(["", '{\n\t"offsetTable":{\n\t\t"t@g":{0:']),
)
LMQ_TEXTS = TEXTS.map(lambda text: text.replace("{\n", '{\n\t"lmqOffsetTable":{"%LMQ%a@%LMQ%a":7},\n', 1))
TOPICS = st.sampled_from(['{"dataVersion":{"counter":1,"timestamp":1},"topicConfigTable":{}}', '{"dataVersion":', "[]"])
MOMENTS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "consumerOffset.json": TEXTS,
            "consumerOffset.json.bak": TEXTS,
            "lmqConsumerOffset.json": LMQ_TEXTS,
            "lmqConsumerOffset.json.bak": LMQ_TEXTS,
            "topics.json": TOPICS,
        },
    ),
    max_size=12,
)
KINDS = {"topics.json": "topics"}


def lay(folder: Path, moments: list[dict[str, str]]) -> list[SnapshotFile]:
    files = []
    for moment, given_files in enumerate(moments):
        for name, text in given_files.items():
            path = f"{moment}-{name}"
            (folder / path).write_text(text)
            kind = KINDS.get(name, "consumer_offset")
            files.append(SnapshotFile(str(folder / path), path, kind, name, 1000 + moment))
    return files


def told_of(source: Source, files: list[SnapshotFile]) -> tuple[list[tuple], list[dict]]:
    moved, rows = [], []
    for item in source.read_all(files):
        if isinstance(item, Moves):
            for i, entry in enumerate(item.entry.tolist()):
                old = None if item.came is not None and item.came[i] else int(item.previous[i])
                new = None if item.gone is not None and item.gone[i] else int(item.new[i])
                moved.append((item.from_ts, item.ts, item.digest, source.keys.keys[entry], old, new))
        else:
            rows.append(item)
    return moved, rows


def in_order(rows: list[dict]) -> list[str]:
    return sorted(str(sorted(row.items(), key=str)) for row in rows)


@given(MOMENTS, st.integers(1, 400))
def test_the_pieces_join_exactly(moments, most_bytes):
    with tempfile.TemporaryDirectory() as folder:
        files = lay(Path(folder), moments)
        whole_moved, whole_rows = told_of(Source("b-0", "b", 0, None), files)
        moved, rows = [], []
        for piece in pieces(files, {f.full_path: 40 for f in files}, most_bytes):
            source = Source("b-0", "b", 0, None)
            assert catch_up(source, piece)
            some_moved, some_rows = told_of(source, piece.own)
            moved += some_moved
            rows.append(some_rows)
        assert sorted(moved, key=str) == sorted(whole_moved, key=str)
        assert in_order(joined(rows)) == in_order(whole_rows)


def test_a_piece_that_cannot_catch_up_says_so(tmp_path):
    torn = [{"consumerOffset.json": "{"}] * (LEAD + 1)
    files = lay(tmp_path, [*torn, {"consumerOffset.json": '{"offsetTable":{"t@g":{0:5}}}'}])
    *_, last = pieces(files, {f.full_path: 1 for f in files}, LEAD + 1)
    assert not catch_up(Source("b-0", "b", 0, None), last)
    *_, last = pieces(files[1:], {f.full_path: 1 for f in files}, LEAD)
    assert catch_up(Source("b-0", "b", 0, None), last)


def test_pieces_are_of_a_size_and_cut_between_moments(tmp_path):
    moments = [{"consumerOffset.json": "{}", "topics.json": "{}"}] * 6
    files = lay(tmp_path, moments)
    cut = pieces(files, {f.full_path: 10 for f in files}, 30)
    assert [len(piece.own) for piece in cut] == [4, 4, 4]
    assert [f for piece in cut for f in piece.own] == sorted(files, key=lambda f: (f.ts_ms, f.path))
    assert pieces([], {}, 30)[0].own == []
