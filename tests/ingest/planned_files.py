"""Files as a run finds them, and rows of the ledger, for tests of plans."""

from __future__ import annotations

from mqreplay.decode.recording.files import classify
from mqreplay.ingest.manifest import KnownFile
from mqreplay.ingest.recording import RecordedFile


def file(path: str, recording: str = "/night") -> RecordedFile:
    kind, source, ts = classify(path)
    return RecordedFile(recording, path, kind, 10, source, ts, inode=1)


def known(path: str, sha256: str, status: str = "read", duplicates: int = 0, recording: str = "/night") -> KnownFile:
    kind = classify(path)[0]
    return KnownFile(recording, path, kind, sha256, 10, status, rows_in=9, rows_duplicate=duplicates)
