"""Compare a recording's files with its SHA256SUMS, a list as sha256sum writes it: `<hex>  <path>` or `<hex> *<path>`.

Plain text has no checksum: a flipped bit inside a number makes another number. A file whose checksum differs from the
list is refused as a whole, and rows read from it before are removed. Listed files that are missing are reported: the
first MOST_MISSING each, the others as a number. Lines that cannot be read, and paths outside the recording, go to
quarantine; the other lines count. The last line counts only with its line break: without one its path may be cut short.
A list of more than LARGEST_LIST is refused as a whole.
"""

from __future__ import annotations

import posixpath
import re
import sys
import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

import polars as pl

from mqreplay.decode.recording.files import CHECKSUMS, CHECKSUMS_FILE, classify
from mqreplay.ingest.gzip_stream import MAGIC, Checked, inflate
from mqreplay.ingest.lines import LineReader, Record, Refusals, is_gzip
from mqreplay.ingest.opening import open_recorded, size_of
from mqreplay.ingest.recorded_files import RecordedFiles, by_path, is_of
from mqreplay.ingest.recording import Digested, RecordedFile
from mqreplay.machine.local_files import escaped, unreadable
from mqreplay.words.errors import DecodeError

_LINE = re.compile(rb"(\\?)([0-9a-fA-F]{64}) [ *](.+)", re.DOTALL)
_ESCAPES = {b"\\\\": b"\\", b"\\n": b"\n", b"\\r": b"\r"}
MISSING = f"{CHECKSUMS_FILE} lists it, but it is missing"
LARGEST_LIST = 256_000_000  # uncompressed size of a list: two million files
MOST_MISSING = 100  # missing files that get their own row
_LONGEST_LINE = 16_384  # bytes: a checksum, and the longest path that a system takes
_LONGEST_NAME = 255  # bytes of a file's name, of Linux's file systems


@dataclass
class Listed:
    """Return path -> checksum of a SHA256SUMS file; contradicting checksums of one path are joined as text.

    ``missing`` are the first listed paths that are missing, ``more_missing`` counts the lines of the others.
    """

    checksums: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    more_missing: int = 0
    lines: int = 0
    refused: Refusals = field(default_factory=lambda: Refusals(0))
    reason: str | None = None


def compared(files: RecordedFiles) -> RecordedFiles:
    """Return a recording's files, and the missing ones. Files with a wrong checksum have a reason and no SHA-256."""
    lists = [file for file, sha256 in files.of_kinds([CHECKSUMS]) if sha256]
    if not lists:
        return files
    listed = read_checksums(lists[0], there=set(files.rows["path"]))
    sums = pl.DataFrame(list(listed.checksums.items()), {"path": pl.String, "listed": pl.String}, orient="row")
    rows = files.rows.join(sums, on="path", how="left", maintain_order="left")
    # A list that is made inside the recording contains itself, with the checksum of an empty file.
    is_wrong = (pl.col("sha256") != pl.col("listed")) & (pl.col("sha256") != "") & ~is_of([CHECKSUMS])
    trouble = pl.format(f"its SHA-256 is {{}}, and {CHECKSUMS_FILE} says {{}}", "sha256", "listed")
    wrong = [
        pl.when(is_wrong).then(trouble).otherwise("trouble").alias("trouble"),
        pl.when(is_wrong).then(pl.lit("checksum", pl.Categorical)).otherwise("trouble_code").alias("trouble_code"),
        pl.when(is_wrong).then(pl.lit("")).otherwise("sha256").alias("sha256"),
    ]
    found = rows.with_columns(wrong).drop("listed")
    missing = RecordedFiles.of(_missing(lists[0], listed)).rows
    return RecordedFiles(by_path(pl.concat([found, missing])))


def read_checksums(file: RecordedFile, quarantine_rows: int = 0, there: Collection[str] = frozenset()) -> Listed:
    """Return the entries of a SHA256SUMS for the paths ``there``, and the first refused lines."""
    found = Listed(refused=Refusals(quarantine_rows))
    reader = LineReader(file.full_path, _decode, refused=found.refused, root=file.root)
    if _is_too_large(file):
        reader.lines, reader.reason = 1, f"more than {LARGEST_LIST:,} bytes, uncompressed"
        reader.refuse(0, "too_large", reader.reason, b"")
    else:
        _read(reader, there, found)
    found.lines, found.reason = reader.lines, reader.reason
    return found


def listed_of(files: Iterable[RecordedFile], there: Collection[str]) -> Collection[str]:
    """Return the paths ``there`` that the recording's SHA256SUMS lists."""
    lists = [file for file in files if file.kind == CHECKSUMS]
    return read_checksums(lists[0], there=there).checksums.keys() if lists else ()


def _is_too_large(file: RecordedFile) -> bool:
    """Return whether a list has more than LARGEST_LIST. False for an unreadable list: its reader reports the error."""
    size = 0
    try:
        with open_recorded(file.full_path, file.root) as stream:
            if not is_gzip(file.path, stream.peek(len(MAGIC))[: len(MAGIC)]):
                return size_of(stream) > LARGEST_LIST
            for piece in inflate(stream, Checked(sys.maxsize, truncated=False)):
                size += len(piece)
                if size > LARGEST_LIST:
                    return True
    except (EOFError, zlib.error):
        pass
    except OSError as error:
        unreadable(error)
    return False


def _read(reader: LineReader, there: Collection[str], found: Listed) -> None:
    missing = dict.fromkeys([CHECKSUMS_FILE])  # in the order of the list; the list itself exists
    for number, line, whole in reader.numbered():
        if not whole and len(line) < _LONGEST_LINE:
            reader.lines += 1
            reader.refuse(number, "torn", "the file ends within this line", line)
            continue
        for _, _, entry in reader.take([(number, line, whole)]):
            path, sha256 = str(entry["path"]), str(entry["sha256"])
            if path in there:
                before = found.checksums.setdefault(path, sha256)
                if before != sha256 and len(before) == len(sha256):  # a third one adds nothing
                    found.checksums[path] = f"{before} and {sha256}"
            elif len(missing) <= MOST_MISSING:
                missing[path] = None
            elif path not in missing:
                found.more_missing += 1
    found.missing = list(missing)[1:]


def _decode(line: bytes) -> Record:
    """Return the path and the checksum of a line. Raises DecodeError.

    >>> _decode(b"0" * 64 + b"  ./pull_log.jsonl")["path"]
    'pull_log.jsonl'
    >>> _decode(b"0" * 64 + b" */etc/passwd")
    Traceback (most recent call last):
    mqreplay.words.errors.DecodeError: outside: the path '/etc/passwd' leads out of the recording
    """
    match = _LINE.fullmatch(line) if len(line) < _LONGEST_LINE else None
    if match is None:
        raise DecodeError("bad_syntax", "this is not a line of sha256sum: 64 hexadecimal digits, two spaces, a path")
    named = re.sub(rb"\\[\\nr]", lambda m: _ESCAPES[m[0]], match[3]) if match[1] else match[3]
    if any(len(name) > _LONGEST_NAME for name in named.split(b"/")):
        raise DecodeError("bad_syntax", f"a name in this path has more than {_LONGEST_NAME} bytes, as no file's has")
    path = posixpath.normpath(escaped(named))
    if path.startswith("/") or path.split("/")[0] == "..":
        raise DecodeError("outside", f"the path {path!r} leads out of the recording")
    return {"path": path, "sha256": match[2].decode().lower()}


def _missing(lists: RecordedFile, listed: Listed) -> Iterator[Digested]:
    for path in listed.missing:
        kind, source, ts = classify(path)
        file = RecordedFile(lists.recording, path, kind, 0, source, ts, trouble=MISSING, trouble_code="missing")
        yield file, ""
    if more := listed.more_missing:
        # No file has this path. Another number is another path, so the ledger gets a new row.
        path = f"{CHECKSUMS_FILE}/{more} more"
        trouble = f"and {more:,} more line{' lists a file that is' if more == 1 else 's list files that are'} not there"
        yield RecordedFile(lists.recording, path, CHECKSUMS, 0, trouble=trouble, trouble_code="missing"), ""
