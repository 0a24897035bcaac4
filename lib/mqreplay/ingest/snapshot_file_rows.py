"""Rows of a snapshot file other than changed offsets: of the ledger, the quarantine and other tables."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator

from mqreplay.errors import DecodeError
from mqreplay.ingest.entries import SnapshotFile
from mqreplay.ingest.lines import ADVICE as OF_LINES
from mqreplay.ingest.lines import KEPT, LONGEST_REASON, and_more

Row = dict[str, object]
LONGEST_KEY = 255  # characters of an invalid key: names in RocketMQ have at most 255
ADVICE = {
    "empty": "copy it again, or the .bak beside it; brokers rewrite the file in place",
    "torn": "copy it again, or the .bak beside it; brokers rewrite the file in place",
    "unreadable": OF_LINES["unreadable"],
    "too_large": "[ingest] snapshot_mb sets the largest size, at most 256 MB; check what the recorder copied",
    "utf_16": "copy the file itself, or convert it to UTF-8; the shell or editor that saved it changed its encoding",
    "foreign": "its content does not match its name; check what the recorder copied",
}
USUAL_ADVICE = "copy it again from the broker; the other snapshots were read"


def refuse(file: SnapshotFile, data: bytes, digest: str, error: DecodeError) -> Iterator[Row]:
    """Yield the rows of quarantine and ledger for a file that is refused as a whole."""
    yield {
        "out": "quarantine",
        "path": file.path,
        "kind": file.kind,
        "digest": digest,
        "detail_key": "",
        "code": error.code,
        "reason": str(error)[:LONGEST_REASON],
        "advice": ADVICE.get(error.code, USUAL_ADVICE),
        "content": data[:KEPT],
    }
    yield file_row(file, "refused", str(error)[:LONGEST_REASON], digest, 1, 0, 1)


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
    for key in keys:
        yield {
            "out": "quarantine",
            "path": file.path,
            "kind": file.kind,
            "digest": digest,
            "detail_key": key,
            "code": "orphan_key",
            "reason": f"the key {key!r} is not topic@group, so no consumer can commit to it or read it",
            "advice": "find the client that made it; ConsumerOffsetManager ignores such keys",
            "content": key.encode()[:KEPT],
        }
    if others:
        # detail_key distinguishes it from a file that is refused as a whole.
        yield {
            "out": "quarantine",
            "path": file.path,
            "kind": file.kind,
            "digest": digest,
            "detail_key": "more",
            "code": "more",
            "reason": and_more(others, "key"),
            "advice": OF_LINES["more"],
            "content": None,
        }


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
