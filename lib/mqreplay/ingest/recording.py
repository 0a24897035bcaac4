"""List the files of a recording with their kinds. Reads names, never contents.

An entry that is not a readable file has a kind of NOT_READ, which gives the reason. Links out of the folder are
followed only if the caller asks for it. A file SHA256SUMS protects the files that it lists (checksums.py).
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mqreplay.decode.columns import TIME_MAX
from mqreplay.decode.kinds import KINDS
from mqreplay.errors import InputError
from mqreplay.ingest.opening import is_within

RECORD_TABLES = {stem: kind.table for stem, kind in KINDS.items()}
# Kinds of snapshot files, by file name. The .bak of a kind belongs to the same family.
SNAPSHOT_KINDS = {
    "consumerOffset.json": "consumer_offset",
    "consumerOffset.json.bak": "consumer_offset",
    "topics.json": "topics",
    "topics.json.bak": "topics",
    "subscriptionGroup.json": "subscription_groups",
    "subscriptionGroup.json.bak": "subscription_groups",
    "delayOffset.json": "delay_offset",
    "delayOffset.json.bak": "delay_offset",
}
# A broker's polled consumer offsets, one line a poll. They also have the kind consumer_offset.
POLLED = ("consumerOffset.jsonl.gz", "consumerOffset.jsonl")
SNAPSHOTS = ("consumer_offset", "client_offsets", "topics", "subscription_groups")  # kinds that are read
NOT_READ = {
    "delay_offset": "no decision uses delay offsets",
    "log": "no decision uses log files directly; mqreplay import makes records of RocketMQ's logs",
    "pcap": "nightly does not read packet captures; mqreplay unpack makes JSONL files of them",
    "other": "not a file of a recording",
    "no_source": "its folder is neither snapshots/<brokerName>-<brokerId> nor snapshots/client-<clientId>",
    "bad_name": "its name is not UTF-8; rename it, and run again",
    "folder": "this folder cannot be read; make it readable for the user of mqreplay, and run again",
    "bad_time": "the name of its folder is not a time in epoch milliseconds (1970 to 2100); rename it, and run again",
    "special": "it is a pipe, socket or device, not a file; put a copy of the file there, and run again",
    "broken_link": "it is a link to a missing file; put the file there, and run again",
    "link_outside": "it is a link out of the recording; replace it with a copy, or set [ingest] follow_links = true",
    "misnamed_folder": "it is a folder with the name of a file; rename or remove it, and run again",
}
# Kinds that are not opened: not files, or not at the path in the ledger.
NO_FILE = frozenset({"bad_name", "folder", "special", "broken_link", "link_outside", "misnamed_folder"})
CHECKSUMS = "checksums"
CHECKSUMS_FILE = "SHA256SUMS"
_JSONL = re.compile(r"(?P<stem>[a-z_]+?)(\.[0-9]+)?\.jsonl(\.gz)?")
_EPOCH_MS = re.compile(r"[0-9]{12,14}")
_BROKER_ID = re.compile(r"[0-9]+")
_PCAP = re.compile(r"\.pcap([0-9]+)?(\.gz)?$")


# What to do if there is no recording.
MAKE_ONE = (
    "give the folder that holds snapshots/ and *.jsonl. To make one: mqreplay record NAMESRV --out RECORDING, "
    "or from files: mqreplay import FILES --out RECORDING"
)


@dataclass(frozen=True, slots=True)
class RecordedFile:
    """A file of a recording. ``ts_ms`` and ``source_name`` are there for snapshots (epoch milliseconds).

    The next three are from the file system: the times of the last change of its bytes and of its status (epoch
    nanoseconds), and its inode. ``trouble`` says why its bytes cannot or must not be read, if so; ``trouble_code`` is a
    stable code for that. ``follow_links``: links may lead out of the recording.
    """

    recording: str
    path: str
    kind: str
    bytes: int
    source_name: str | None = None
    ts_ms: int | None = None
    modified_ns: int = 0
    changed_ns: int = 0
    inode: int = 0
    trouble: str | None = None
    trouble_code: str = "unreadable"
    follow_links: bool = False

    @property
    def distrusted(self) -> bool:
        """Return whether its checksum shows that the file was changed or damaged: no row of it may be kept."""
        return self.trouble is not None and self.trouble_code in ("checksum", "missing")

    @property
    def root(self) -> str | None:
        """Return the folder that must contain the opened file; None: any."""
        return None if self.follow_links else self.recording

    @property
    def full_path(self) -> str:
        """Return the full path of the file."""
        return f"{self.recording}/{self.path}"

    @property
    def file_name(self) -> str:
        """Return the last part of the path."""
        return self.path.rsplit("/", 1)[-1]


Digested = tuple[RecordedFile, str]  # a file and its SHA-256, empty if it cannot be read


def find_recordings(folders: Iterable[str], follow_links: bool = False) -> dict[str, list[RecordedFile]]:
    """Return the files of each folder, see find_files; a folder that is given twice counts once."""
    apart: dict[Path, str] = {}
    for folder in folders:
        apart.setdefault(Path(folder).resolve(), folder)
    return {folder: find_files(folder, follow_links) for folder in apart.values()}


def find_files(folder: str, follow_links: bool = False) -> list[RecordedFile]:
    """Return every file of the recording in ``folder`` with its kind, sorted by path.

    Raises InputError if there is no folder, or no file of a recording in it.
    """
    root = Path(folder).resolve()
    if not root.is_dir():
        if root.exists():
            raise InputError(
                f"{folder} is not a recording: it is a file, not a folder. "
                f"Make a recording from it: mqreplay import {shlex.quote(folder)} --out RECORDING"
            )
        raise InputError(f"recording {folder} does not exist; {MAKE_ONE}")
    if escaped(os.fsencode(root)) != str(root):
        raise InputError(f"recording {escaped(os.fsencode(root))}: the name of its folder is not UTF-8; rename it")
    files = sorted(_Walk(str(root), follow_links).files(), key=lambda f: f.path)
    if all(f.kind in NOT_READ or f.kind == CHECKSUMS for f in files):
        what = f"none of its {len(files):,} files is" if len(files) > 1 else "its only file is not"
        raise InputError(
            f"{folder} is not a recording: {what} a part of one. "
            f"Make a recording from it: mqreplay import {shlex.quote(folder)} --out RECORDING"
            if files
            else f"recording {folder} has no files; {MAKE_ONE}"
        )
    return files


class _Walk:
    """A walk through a recording's folder, given by its resolved path."""

    def __init__(self, recording: str, follow_links: bool) -> None:
        self._recording, self._follow = recording, follow_links
        self._within = len(os.path.join(recording, "x")) - 1
        self._entered = [recording]

    def files(self) -> Iterator[RecordedFile]:
        """Yield every file, and every other entry that is in the place of a file."""
        closed: list[str] = []
        walk = os.walk(self._recording, onerror=lambda e: closed.append(str(e.filename)), followlinks=True)
        for folder, inner, names in walk:
            for name in list(inner):
                path = os.path.join(folder, name)
                if os.path.islink(path) and not self._is_entered(path):
                    inner.remove(name)
                    if self._leaves(path):
                        yield self._no_file(path, "link_outside")
                        continue
                if _names_a_file(path[self._within :]):
                    yield self._no_file(path, "misnamed_folder")
            for name in names:
                yield self._file(os.path.join(folder, name))
        for folder in closed:
            yield self._no_file(folder, "folder")

    def _file(self, path: str) -> RecordedFile:
        try:
            found = os.lstat(path)
            if stat.S_ISLNK(found.st_mode):
                if self._leaves(path):
                    return self._no_file(path, "link_outside")
                found = os.stat(path)
        except OSError:  # removed meanwhile, or a link to nothing or to itself
            return self._no_file(path, "broken_link")
        if not stat.S_ISREG(found.st_mode):
            return self._no_file(path, "special")
        relative = self._relative(path)
        kind, source, ts = classify(relative) if relative == path[self._within :] else ("bad_name", None, None)
        when = found.st_mtime_ns, found.st_ctime_ns, found.st_ino
        of_file = self._recording, relative, kind, found.st_size, source, ts, *when
        return RecordedFile(*of_file, follow_links=self._follow)

    def _no_file(self, path: str, kind: str) -> RecordedFile:
        return RecordedFile(self._recording, self._relative(path) or ".", kind, 0)

    def _relative(self, path: str) -> str:
        return escaped(os.fsencode(path[self._within :]))

    def _leaves(self, link: str) -> bool:
        """Return whether a link leads out of the recording although it must not. A broken link does not."""
        target = os.path.realpath(link)
        return not self._follow and not is_within(target, self._recording) and os.path.exists(target)

    def _is_entered(self, link: str) -> bool:
        """Return whether to enter a linked folder: not one that the walk visits anyway, and none outside."""
        target = os.path.realpath(link)
        if self._leaves(link) or any(is_within(target, known) or is_within(known, target) for known in self._entered):
            return False
        self._entered.append(target)
        return True


def _names_a_file(path: str) -> bool:
    """Return whether a path inside a recording is that of a file that is read."""
    kind = classify(escaped(os.fsencode(path)))[0]
    return kind not in NOT_READ


def escaped(name: bytes) -> str:
    r"""Return a file's name so that UTF-8 can write it.

    >>> print(escaped(b"caf\xe9"))
    caf\xe9
    """
    return name.decode("utf-8", "backslashreplace")


def classify(path: str) -> tuple[str, str | None, int | None]:
    """Return the kind, snapshot folder and epoch milliseconds of a file from its path inside the recording.

    >>> classify("pull_log.0002.jsonl.gz")
    ('pull_log', None, None)
    >>> classify("snapshots/broker-a-0/1795228794427/consumerOffset.json")
    ('consumer_offset', 'broker-a-0', 1795228794427)
    >>> classify("snapshots/broker-a-0/1795228794427/consumerOffset.jsonl.gz")
    ('consumer_offset', 'broker-a-0', 1795228794427)
    >>> classify("notes.txt")
    ('other', None, None)
    """
    parts = path.split("/")
    if parts[0] == "snapshots":
        return _classify_snapshot(parts)
    if parts[0] == "logs":
        return "log", None, None
    if _PCAP.search(parts[-1]):
        return "pcap", None, None
    if path == "brokers.json":
        return "brokers", None, None
    if path == CHECKSUMS_FILE:
        return CHECKSUMS, None, None
    match = _JSONL.fullmatch(parts[0]) if len(parts) == 1 else None
    if match and match["stem"] in RECORD_TABLES:
        return match["stem"], None, None
    return "other", None, None


def _classify_snapshot(parts: list[str]) -> tuple[str, str | None, int | None]:
    if len(parts) != 4 or not _EPOCH_MS.fullmatch(parts[2]):
        return "other", None, None
    source, ts, name = sys.intern(parts[1]), int(parts[2]), parts[3]  # one string object for all files of a source
    if not _is_time(parts[2]):
        return "bad_time", None, None
    of_broker = split_source(source) is not None
    if name in SNAPSHOT_KINDS or name in POLLED:
        kind = SNAPSHOT_KINDS.get(name, "consumer_offset")
        return (kind, source, ts) if of_broker else ("no_source", None, None)
    if name.endswith((".offsets.json", ".offsets.json.bak")) or name in ("offsets.json", "offsets.json.bak"):
        of_client = of_broker or source.startswith("client-")
        return ("client_offsets", source, ts) if of_client else ("no_source", None, None)
    return "other", None, None


def _is_time(name: str) -> bool:
    """Return whether digits are a time that every table can hold, in its only spelling.

    >>> _is_time("1795228794427"), _is_time("01795228794427"), _is_time("99999999999999")
    (True, False, False)
    """
    return (len(name) == 12 or name[0] != "0") and int(name) <= TIME_MAX


def split_source(source_name: str) -> tuple[str, int] | None:
    """Return (broker_name, broker_id) of a snapshot folder, or None for a client's.

    >>> split_source("broker-a-0")
    ('broker-a', 0)
    >>> split_source("client-10.0.0.1@7") is None
    True
    >>> split_source("broker-a"), split_source("-0"), split_source("broker-99999999999999999999")
    (None, None, None)
    """
    name, _, number = source_name.rpartition("-")
    if source_name.startswith("client-") and "@" in source_name:
        return None
    # Other scripts have digits too, and some of them are not numbers.
    return (name, int(number)) if name and _BROKER_ID.fullmatch(number) and int(number) < 2**63 else None
