"""The files of a recording that a bundle has: those that nightly reads. Their lines, and their paths in the bundle."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

from mqreplay.bundle.names import Names
from mqreplay.decode.recording.files import CHECKSUMS, RECORD_TABLES, SNAPSHOT_FILES, classify, split_source
from mqreplay.machine.local_files import escaped, open_regular, trouble_of
from mqreplay.words.errors import InputError

LEFT_OUT: Final = {
    "pcap": "packet captures, which hold the bodies of messages (run mqreplay import on them before)",
    "log": "log files, which nightly does not read (run mqreplay import on them before)",
    CHECKSUMS: "the list SHA256SUMS, which names other files (run sha256sum -c before)",
}
OTHER: Final = "other files, which nightly does not read"
_GROUP_FILE: Final = re.compile(r"(?P<group>.+)(?P<rest>\.offsets\.json(?:\.bak)?)")
# Kinds that have messages: nothing in them may be a body.
OF_MESSAGES: Final = frozenset({"sends", "produce_log", "consume_log", "pull_log", "pop_log", "other_requests"})
_BODY: Final = re.compile(rb'("(?:body|request_body|message_body)"\s*:\s*)"(?:[^"\\]|\\.)*"')


@dataclass(frozen=True, slots=True)
class BundledFile:
    """A file of the recording at ``path`` below ``folder``."""

    folder: Path
    path: str
    kind: str

    @property
    def is_gzip(self) -> bool:
        """Return whether the name says that the file is compressed."""
        return self.path.endswith(".gz")

    @property
    def has_lines(self) -> bool:
        """Return whether the file has a record in each line."""
        return ".jsonl" in self.path

    def open(self) -> IO[bytes]:
        """Open the file. Raises InputError."""
        try:
            return cast(IO[bytes], open_regular(str(self.folder / self.path), str(self.folder)))
        except OSError as error:
            raise InputError(f"{self.folder / self.path} cannot be read: {trouble_of(error)}") from None

    def lines(self, damaged: Counter[str]) -> Iterator[bytes]:
        """Yield the lines, or the whole content of a file without lines. A damaged end is counted."""
        with self.open() as raw:
            stream = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if raw.peek(2)[:2] == b"\x1f\x8b" else raw  # type: ignore[attr-defined]
            try:
                if self.has_lines:
                    yield from stream
                else:
                    yield stream.read()
            except (EOFError, zlib.error, gzip.BadGzipFile):
                damaged["files with a torn or damaged end; the lines before it are kept"] += 1


def files_of(folder: Path, left_out: Counter[str]) -> list[BundledFile]:
    """Return the files of a recording that nightly reads, by path. Raises InputError if there is none."""
    found = []
    for inside, folders, names in os.walk(folder, onerror=_refuse):
        folders.sort()
        for name in names:
            path = os.path.relpath(os.path.join(inside, name), folder)
            kind = classify(path)[0] if escaped(os.fsencode(path)) == path else "bad_name"
            if os.path.islink(os.path.join(inside, name)) or not is_read(kind):
                left_out[LEFT_OUT.get(kind, OTHER)] += 1
            else:
                found.append(BundledFile(folder, path, kind))
    if not found:
        raise InputError(f"{folder} has no file of a recording")
    return sorted(found, key=lambda file: file.path)


def is_read(kind: str) -> bool:
    """Return whether nightly reads files of a kind."""
    return kind in RECORD_TABLES or kind in SNAPSHOT_FILES or kind == "brokers"


def path_of(path: str, names: Names) -> str:
    """Return the path of a file in a redacted bundle: folders of snapshots are names of brokers and clients."""
    parts = path.split("/")
    if parts[0] != "snapshots":
        return path
    source = parts[1]
    of_client = split_source(source) is None
    parts[1] = f"client-{names.client(source.removeprefix('client-'))}" if of_client else names.broker_and_id(source)
    if (named := _GROUP_FILE.fullmatch(parts[3])) is not None:
        parts[3] = names.group(named["group"]) + named["rest"]
    return "/".join(parts)


def without_body(line: bytes) -> bytes:
    """Return a line of a kind of OF_MESSAGES without the text of a body, which no recorder of mqreplay writes."""
    return _BODY.sub(rb'\1""', line)


def _refuse(error: OSError) -> None:
    raise InputError(f"{error.filename} cannot be read: {trouble_of(error)}")
