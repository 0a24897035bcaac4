"""Snapshots in time order: changes, refusals, and use of a .bak."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from mqreplay.ingest import diffs, offset_changes
from mqreplay.ingest.diffs import Source
from mqreplay.ingest.entries import Moves, SnapshotFile, decode
from mqreplay.ingest.offset_changes import change_batches

OFFSETS = ("previous_offset", "new_offset")
COLUMNS = ("topic", "queue_id", *OFFSETS, "from_ts", "to_ts", "source_digest")


def text(**queues: int) -> bytes:
    inner = ",".join(f"{name[1:]}:{offset}" for name, offset in queues.items())
    return b'{"offsetTable":{"T@g":{' + inner.encode() + b"}}}"


def changes(tmp_path, files):
    listed = []
    for i, (ts, name, data) in enumerate(files):
        path = tmp_path / f"{i}"
        path.write_bytes(data)
        listed.append(SnapshotFile(str(path), f"snapshots/b-0/{ts}/{name}", "consumer_offset", name, ts))
    source = Source("b-0", "b", 0, None)
    given = list(source.read_all(listed))
    rows = [row for row in given if not isinstance(row, Moves)]
    for row in rows:
        if row["out"] == "file":
            assert row["rows_in"] >= row["rows_out"] + row["rows_quarantined"]
    schema = pa.schema([("to_ts", pa.int64()), *[(name, pa.int64()) for name in ("queue_id", *OFFSETS)]])
    batches = change_batches(given, source, schema, [])
    moved = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
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


def test_what_a_broker_keeps_of_broadcasting_groups_is_no_groups_offset(tmp_path):
    def holding(first, noted):
        return b'{"offsetTable":{"T@g@broadcast":{0:%d},"T@g":{0:%d}}}' % (noted, first)

    # The third is read by the bytes that differ, and goes back: a member began anew.
    files = [(1, JSON, holding(5, 40)), (2, JSON, holding(6, 41)), (3, JSON, holding(7, 30)), (4, JSON, holding(7, 31))]
    moved, statuses, codes = changes(tmp_path, files)
    assert moved == [(1, 0, None, 5), (2, 0, 5, 6), (3, 0, 6, 7)]
    assert statuses == ["read"] * 4
    assert codes == []


def read_one(tmp_path, monkeypatch, files):
    """What a source tells of files (kind, name, data) a moment apart, and how often it decoded one."""
    decoded, listed = [], []
    monkeypatch.setattr(diffs, "decode", lambda data, file: decoded.append(data) or decode(data, file))
    for ts, (kind, name, data) in enumerate(files):
        (tmp_path / f"{ts}").write_bytes(data)
        listed.append(SnapshotFile(str(tmp_path / f"{ts}"), f"snapshots/b-0/{ts}/{name}", kind, name, ts))
    return list(Source("b-0", "b", 0, None).read_all(listed)), len(decoded)


TOPICS = b'{"dataVersion":{"counter":2},"topicConfigTable":{"t":{"topicName":"t","perm":6}}}'


def test_a_file_that_is_the_one_before_is_not_decoded_again(tmp_path, monkeypatch):
    files = [("topics", "topics.json", TOPICS)] * 3 + [("topics", "topics.json.bak", TOPICS)]
    given, decoded = read_one(tmp_path, monkeypatch, files)
    assert decoded == 1
    snapshots = [row for row in given if row["out"] == "snapshot"]
    assert [(r["ts"], r["entries"], r["changed"], r["counter"]) for r in snapshots] == [
        (0, 1, 1, 2),
        (1, 1, 0, 2),
        (2, 1, 0, 2),
    ]
    statuses = [(r["status"], r["rows_in"]) for r in given if r["out"] == "file"]
    assert statuses == [("read", 1)] * 3 + [("superseded", 0)]
    assert len({r["digest"] for r in given if r["out"] == "file"}) == 1


def test_what_is_known_from_earlier_runs_is_carried_on(tmp_path):
    path = tmp_path / "one"
    path.write_bytes(text(q0=5, q1=7))
    source = Source("b-0", "b", 0, None)
    source.entries["consumer_offset"] = {("T", "g", None, 0): 4, ("T", "g", None, 1): 7, ("U", "g", None, 0): 1}
    source.last_ts["consumer_offset"] = 3
    schema = pa.schema([(n, pa.string() if n in ("topic", "source_digest") else pa.int64()) for n in COLUMNS])
    beside = []
    files = [SnapshotFile(str(path), "p", "consumer_offset", JSON, 9)]
    (batch,) = change_batches(source.read_all(files), source, schema, beside)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:32]
    assert [tuple(row.values()) for row in batch.to_pylist()] == [
        ("T", 0, 4, 5, 3, 9, digest),
        ("U", 0, 1, None, 3, 9, digest),
    ]
    assert [row["out"] for row in beside] == ["snapshot", "file"]


def test_batches_have_the_columns_asked_for_and_are_of_a_size(monkeypatch):
    monkeypatch.setattr(offset_changes, "BATCH_ROWS", 4)
    rows = [0, 5, 0, 11, 3, 0]

    def given(source):
        for ts, count in enumerate(rows):
            entry = source.keys.of([("t", "g", f"b{i}", i) for i in range(count)])
            offset = entry.astype(np.int64)
            came = None if ts == 3 else entry % 2 == 0
            yield Moves(ts - 1 if ts else None, ts, f"d{ts}", entry, offset, offset + 1, came)
            yield {"out": "file", "ts": ts}

    instant = pa.timestamp("us", "UTC")
    columns = {
        "client_id": pa.string(),
        "to_ts": instant,
        "from_ts": instant,
        "broker_name": pa.string(),
        "x": pa.int8(),
    }
    schema = pa.schema([*columns.items(), *[(name, pa.int64()) for name in OFFSETS]])
    beside = []
    source = Source("client-c", None, None, "c")
    batches = list(change_batches(given(source), source, schema, beside))
    assert [batch.num_rows for batch in batches] == [5, 6, 5, 3]
    assert [row["ts"] for row in beside] == list(range(len(rows)))
    told = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    at = [datetime.fromtimestamp(ts / 1000, UTC) for ts in range(len(rows))]
    assert told == [
        ("c", at[ts], at[ts - 1], f"b{i}", None, None if ts != 3 and i % 2 == 0 else i, i + 1)
        for ts, count in enumerate(rows)
        for i in range(count)
    ]


LMQ = "lmqConsumerOffset.json"


def lmq_text(queue_0, **light):
    table = ",".join(f'"%LMQ%{name}@%LMQ%{name}":{offset}' for name, offset in light.items())
    return b'{\n\t"lmqOffsetTable":{%s},\n\t"offsetTable":{\n\t\t"T@g":{0:%d\n\t\t}\n\t}\n}' % (table.encode(), queue_0)


def test_an_lmq_brokers_file_has_the_offsets_of_all_groups(tmp_path):
    files = [(1, LMQ, lmq_text(5)), (2, LMQ, lmq_text(6)), (3, LMQ, lmq_text(6, a=1)), (4, LMQ, lmq_text(6, a=9))]
    moved, statuses, _ = changes(tmp_path, files)
    assert moved == [(1, 0, None, 5), (2, 0, 5, 6), (3, 0, None, 1), (4, 0, 1, 9)]
    assert statuses == ["read"] * 4


def test_the_old_file_beside_that_of_an_lmq_broker_is_not_used(tmp_path):
    old = [(1, JSON, text(q0=900)), (1, BAK, text(q0=900)), (3, JSON, text(q0=900))]
    moved, statuses, _ = changes(tmp_path, [*old, (1, LMQ, lmq_text(5)), (2, LMQ, lmq_text(6)), (3, LMQ, b"{")])
    assert moved == [(1, 0, None, 5), (2, 0, 5, 6)]
    assert sorted(statuses) == ["read", "read", "refused", "superseded", "superseded", "superseded"]
