"""Compare a recording's files with its SHA256SUMS, a list as sha256sum writes it: `<hex>  <path>` or `<hex> *<path>`.

Plain text has no checksum of its own: a flipped bit inside a number makes another number. A file that is listed with
another checksum is refused whole, and nothing is kept that was read of it before. A listed file that is not there is
reported. Lines that cannot be read, and paths outside the recording, go to quarantine; the other lines count. The last
line counts only with its line break: without one its path may be cut short.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from mqreplay.errors import DecodeError
from mqreplay.ingest.lines import LineReader, Record, Refusals
from mqreplay.ingest.recording import CHECKSUMS, CHECKSUMS_FILE, RecordedFile, classify, escaped

_LINE = re.compile(rb"(\\?)([0-9a-fA-F]{64}) [ *](.+)", re.DOTALL)
_ESCAPES = {b"\\\\": b"\\", b"\\n": b"\n", b"\\r": b"\r"}
MISSING = f"{CHECKSUMS_FILE} lists it, and it is not there"

Digested = tuple[RecordedFile, str]  # a file and its SHA-256, which is empty where it cannot be read


@dataclass
class Listed:
    """What a SHA256SUMS says: path -> checksum, or several in words if it contradicts itself; and the lines refused."""

    checksums: dict[str, str] = field(default_factory=dict)
    lines: int = 0
    refused: Refusals = field(default_factory=lambda: Refusals(0))
    reason: str | None = None


def compared(files: list[Digested]) -> list[Digested]:
    """Return a recording's files, those distrusted with their trouble and no SHA-256, and those missing beside them."""
    lists = [file for file, sha256 in files if file.kind == CHECKSUMS and sha256]
    if not lists:
        return files
    checksums = read_checksums(lists[0]).checksums
    found = [_compared(file, sha256, checksums.get(file.path)) for file, sha256 in files]
    return sorted([*found, *_missing(lists[0], checksums, {file.path for file, _ in files})], key=lambda f: f[0].path)


def read_checksums(file: RecordedFile, quarantine_rows: int = 0) -> Listed:
    """Return what a SHA256SUMS lists, and the first lines that are refused."""
    found = Listed(refused=Refusals(quarantine_rows))
    reader = LineReader(file.full_path, _decode, refused=found.refused, root=file.root)
    for number, line, whole in reader.numbered():
        if not whole and len(line) < _MOST_BYTES:
            reader.lines += 1
            reader.refuse(number, "torn", "the file ends within this line", line)
            continue
        for _, _, entry in reader.take([(number, line, whole)]):
            path, sha256 = str(entry["path"]), str(entry["sha256"])
            before = found.checksums.setdefault(path, sha256)
            if sha256 not in before:
                found.checksums[path] = f"{before} and {sha256}"
    found.lines, found.reason = reader.lines, reader.reason
    return found


_MOST_BYTES = 16_384  # of a line: a checksum, and the longest path that a system takes


def _decode(line: bytes) -> Record:
    """Return the path and the checksum of a line. Raises DecodeError.

    >>> _decode(b"0" * 64 + b"  ./pull_log.jsonl")["path"]
    'pull_log.jsonl'
    >>> _decode(b"0" * 64 + b" */etc/passwd")
    Traceback (most recent call last):
    mqreplay.errors.DecodeError: outside: the path '/etc/passwd' leads out of the recording
    """
    match = _LINE.fullmatch(line) if len(line) < _MOST_BYTES else None
    if match is None:
        raise DecodeError("bad_syntax", "this is no line of sha256sum: 64 hexadecimal digits, two blanks, a path")
    named = re.sub(rb"\\[\\nr]", lambda m: _ESCAPES[m[0]], match[3]) if match[1] else match[3]
    path = posixpath.normpath(escaped(named))
    if path.startswith("/") or path.split("/")[0] == "..":
        raise DecodeError("outside", f"the path {path!r} leads out of the recording")
    return {"path": path, "sha256": match[2].decode().lower()}


def _compared(file: RecordedFile, sha256: str, listed: str | None) -> Digested:
    # A list that is made inside the recording names itself, as it was when it was empty.
    if not listed or not sha256 or sha256 == listed or file.kind == CHECKSUMS:
        return file, sha256
    trouble = f"its SHA-256 is {sha256}, and {CHECKSUMS_FILE} says {listed}"
    return replace(file, trouble=trouble, trouble_code="checksum"), ""


def _missing(lists: RecordedFile, checksums: Mapping[str, str], there: set[str]) -> Iterator[Digested]:
    for path in checksums.keys() - there - {CHECKSUMS_FILE}:
        kind, source, ts = classify(path)
        file = RecordedFile(lists.recording, path, kind, 0, source, ts, trouble=MISSING, trouble_code="missing")
        yield file, ""
