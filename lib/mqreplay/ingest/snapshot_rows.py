"""Rows of snapshots other than changed offsets: of the ledger, the quarantine, silver.snapshot and configurations.

Tasks make plain rows with ``out``; the driver completes those of tables.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from mqreplay.ingest.entries import CONFIGS, KEY_MARK, SnapshotFile
from mqreplay.ingest.lines import ADVICE as LINE_ADVICE
from mqreplay.ingest.lines import KEPT_OF_LINE, LONGEST_REASON, and_more
from mqreplay.words.errors import DecodeError
from mqreplay.words.time_span import EPOCH

Row = dict[str, Any]
NUMBER_PARTS = ("queue_id", "delay_level")  # parts of a key that are whole numbers
SNAPSHOT = "silver.snapshot"
LONGEST_KEY = 255  # characters of an invalid key: names in RocketMQ have at most 255
ADVICE = {
    "empty": "copy it again, or the .bak beside it; brokers rewrite the file in place",
    "torn": "copy it again, or the .bak beside it; brokers rewrite the file in place",
    "unreadable": LINE_ADVICE["unreadable"],
    "too_large": "[ingest] snapshot_mb sets the largest size, at most 256 MB; check what the recorder copied",
    "utf_16": "copy the file itself, or convert it to UTF-8; the shell or editor that saved it changed its encoding",
    "foreign": "its content does not match its name; check what the recorder copied",
}
USUAL_ADVICE = "copy it again from the broker; the other snapshots were read"


def beside_rows(rows: Iterable[Row], cluster: str) -> dict[str, list[Row]]:
    """Return by table rows by column name; ``rows`` are the rows of a source's reading other than changes."""
    tables: dict[str, list[Row]] = {SNAPSHOT: [], **{kind.table: [] for kind in CONFIGS.values()}}
    for row in rows:
        if row["out"] == "snapshot":
            own = {"data_version_counter": row["counter"]}
            tables[SNAPSHOT].append(_dated(row, cluster) | own)
        elif row["out"] == "config":
            kind = CONFIGS[row["kind"]]
            values = {} if row["payload"] is None else json.loads(row["payload"])
            key: Row = dict(zip(kind.key, row["topic"].rsplit(KEY_MARK, len(kind.key) - 1), strict=True))
            key |= {name: int(key[name]) for name in NUMBER_PARTS if name in key}
            tables[kind.table].append(_dated(row, cluster) | key | values)
    return tables


def _dated(row: Row, cluster: str) -> Row:
    ts = instant(row["ts"] * 1000)
    return row | {"cluster": cluster, "ts": ts, "day": ts.date(), "source_digest": row["digest"]}


def instant(micros: int) -> dt.datetime:
    """Return epoch microseconds as an instant."""
    return EPOCH + dt.timedelta(microseconds=micros)


def refuse(file: SnapshotFile, data: bytes, digest: str, error: DecodeError) -> Iterator[Row]:
    """Yield the rows of quarantine and ledger for a file that is refused as a whole."""
    reason, advice = str(error)[:LONGEST_REASON], ADVICE.get(error.code, USUAL_ADVICE)
    yield quarantine_row(file, digest, "", error.code, reason, advice, data[:KEPT_OF_LINE])
    yield file_row(file, "refused", reason, digest, 1, 0, 1)


def quarantine_row(
    file: SnapshotFile,
    digest: str,
    detail_key: str,
    code: str,
    reason: str,
    advice: str,
    content: bytes | None,
    line_number: int = 0,
) -> Row:
    """Return the row of bronze.quarantine for a refused file (``line_number`` 0), line, or key of a file."""
    return {
        "out": "quarantine",
        "path": file.path,
        "kind": file.kind,
        "digest": digest,
        "line_number": line_number,
        "detail_key": detail_key,
        "code": code,
        "reason": reason,
        "advice": advice,
        "content": content,
    }


def snapshot_row(ts_ms: int, file_name: str, digest: str, entries: int, changed: int, counter: int | None) -> Row:
    """Return the row of silver.snapshot for an accepted file: its number of entries, and how many changed."""
    return {
        "out": "snapshot",
        "ts": ts_ms,
        "file_name": file_name,
        "digest": digest,
        "entries": entries,
        "changed": changed,
        "counter": counter,
    }


def config_row(file: SnapshotFile, key: object, old: object, new: object) -> Row:
    """Return the row of a topic or group that changed."""
    change = "first" if old is None else "removed" if new is None else "changed"
    return {"out": "config", "kind": file.kind, "topic": key, "change": change, "payload": new}


def strange_rows(file: SnapshotFile, digest: str, keys: Collection[str], others: int) -> Iterator[Row]:
    """Yield rows of the quarantine for invalid keys: one for each of ``keys``, and one that counts the ``others``."""
    advice = "find the client that made it; ConsumerOffsetManager ignores such keys"
    for key in keys:
        reason = f"the key {key!r} is not topic@group, so no consumer can commit to it or read it"
        yield quarantine_row(file, digest, key, "orphan_key", reason, advice, key.encode()[:KEPT_OF_LINE])
    if others:
        # detail_key distinguishes it from a file that is refused as a whole.
        yield quarantine_row(file, digest, "more", "more", and_more(others, "key"), LINE_ADVICE["more"], None)


def short_key(key: str) -> str:
    """Return the key, or the beginning and the digest of a long one."""
    if len(key) <= LONGEST_KEY:
        return key
    return f"{key[:LONGEST_KEY]}… {hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def file_row(
    file: SnapshotFile,
    status: str,
    reason: str | None,
    digest: str | None = None,
    rows_in: int = 0,
    rows_out: int = 0,
    quarantined: int = 0,
) -> Row:
    """Return the row of the ledger for a file: its status and how many rows it gave."""
    return {
        "out": "file",
        "path": file.path,
        "kind": file.kind,
        "digest": digest,
        "ts": file.ts_ms,
        "status": status,
        "reason": reason,
        "rows_in": rows_in,
        "rows_out": rows_out,
        "rows_quarantined": quarantined,
    }
