"""Snapshots in time order: what changed, what was refused, and when a .bak is believed."""

from __future__ import annotations

from mqreplay.ingest.diffs import Moves, Source
from mqreplay.ingest.entries import SnapshotFile


def text(**queues: int) -> bytes:
    inner = ",".join(f"{name[1:]}:{offset}" for name, offset in queues.items())
    return b'{"offsetTable":{"T@g":{' + inner.encode() + b"}}}"


def changes(tmp_path, files):
    listed = []
    for i, (ts, name, data) in enumerate(files):
        path = tmp_path / f"{i}"
        path.write_bytes(data)
        listed.append(SnapshotFile(str(path), f"snapshots/b-0/{ts}/{name}", "consumer_offset", name, ts))
    given = list(Source("b-0", "b", 0, None).read_all(listed))
    rows = [row for row in given if not isinstance(row, Moves)]
    for row in rows:
        if row["out"] == "file":
            assert row["rows_in"] >= row["rows_out"] + row["rows_quarantined"]
    moved = [
        (m.ts, *each)
        for m in given
        if isinstance(m, Moves)
        for each in zip(m.queue_id, m.previous_offset, m.new_offset, strict=True)
    ]
    return (
        moved,
        [r["status"] for r in rows if r["out"] == "file"],
        [r["code"] for r in rows if r["out"] == "quarantine"],
    )


JSON, BAK = "consumerOffset.json", "consumerOffset.json.bak"


def test_only_what_changed_is_a_row(tmp_path):
    files = [(1, JSON, text(q0=5, q1=7)), (2, JSON, text(q0=5, q1=7)), (3, JSON, text(q0=6))]
    moved, statuses, _ = changes(tmp_path, files)
    assert moved == [(1, 0, None, 5), (1, 1, None, 7), (3, 0, 5, 6), (3, 1, 7, None)]
    assert statuses == ["read"] * 3


def test_the_order_of_files_does_not_matter(tmp_path):
    files = [(3, JSON, text(q0=6)), (1, JSON, text(q0=5)), (2, JSON, text(q0=4))]
    assert changes(tmp_path, files)[0] == [(1, 0, None, 5), (2, 0, 5, 4), (3, 0, 4, 6)]


def test_a_torn_file_is_refused_and_its_newer_bak_believed(tmp_path):
    files = [(1, JSON, text(q0=5)), (2, JSON, text(q0=9)[:-4]), (2, BAK, text(q0=8)), (3, JSON, text(q0=9))]
    moved, statuses, codes = changes(tmp_path, files)
    assert moved == [(1, 0, None, 5), (2, 0, 5, 8), (3, 0, 8, 9)]
    assert statuses == ["read", "refused", "read", "read"]
    assert codes == ["torn"]


def test_an_older_bak_is_no_rewind(tmp_path):
    files = [(1, JSON, text(q0=5)), (2, JSON, b""), (2, BAK, text(q0=4)), (3, BAK, text(q0=3))]
    moved, statuses, codes = changes(tmp_path, files)
    assert moved == [(1, 0, None, 5)]
    assert statuses == ["read", "refused", "superseded", "superseded"]
    assert codes == ["empty"]


def test_a_bak_beside_a_whole_file_is_passed_over(tmp_path):
    moved, statuses, _ = changes(tmp_path, [(1, JSON, text(q0=5)), (1, BAK, text(q0=4))])
    assert moved == [(1, 0, None, 5)]
    assert statuses == ["read", "superseded"]


def test_a_key_that_names_no_group_is_told_once(tmp_path):
    strange = b'{"offsetTable":{"nogroup":{0:1},"T@g":{0:5}}}'
    moved, _, codes = changes(tmp_path, [(1, JSON, strange), (2, JSON, strange)])
    assert moved == [(1, 0, None, 5)]
    assert codes == ["orphan_key"]
