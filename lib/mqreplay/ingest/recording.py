"""What lies in a recording's folder, and what each file is taken for. Reads names, never contents."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mqreplay.errors import InputError

# Kinds of JSONL, by file stem, and the silver table each one fills.
RECORD_TABLES = {
    "pull_log": "silver.pull",
    "offset_commits": "silver.offset_commit",
    "heartbeats": "silver.heartbeat",
    "consumer_lists": "silver.consumer_list",
    "routes": "silver.route",
    "rebalance_log": "silver.rebalance",
    "assignments": "silver.assignment",
    "broker_runtime": "silver.broker_runtime",
    "lock_requests": "silver.lock",
    "consume_log": "silver.consume",
    "produce_log": "silver.produce",
    "topic_stats": "silver.topic_stats",
    "server_requests": "silver.server_request",
    "cluster_info": "silver.cluster_info",
}
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
SNAPSHOTS = ("consumer_offset", "client_offsets", "topics", "subscription_groups")  # the kinds that are read
NOT_READ = {
    "delay_offset": "no decision rests on delay offsets",
    "log": "server and client logs are kept for the reader; no decision rests on them yet",
    "pcap": "packet captures are not read by a night; mqreplay unpack makes JSONL files of them",
    "other": "not a part of a recording that mqreplay knows",
    "no_source": "its folder names no broker (snapshots/<brokerName>-<brokerId>) and no client (client-<clientId>)",
    "bad_name": "its name is not UTF-8; rename it, and run again",
    "folder": "this folder cannot be looked into; let the user that runs mqreplay read it, and run again",
}
_JSONL = re.compile(r"(?P<stem>[a-z_]+?)(\.[0-9]+)?\.jsonl(\.gz)?")
_EPOCH_MS = re.compile(r"[0-9]{12,14}")
_BROKER_ID = re.compile(r"[0-9]+")
_PCAP = re.compile(r"\.pcap([0-9]+)?(\.gz)?$")


@dataclass(frozen=True, slots=True)
class RecordedFile:
    """A file of a recording. ``ts_ms`` and ``source_name`` are there for snapshots (epoch milliseconds).

    The next three are the file system's words as it was found: when its bytes changed, when anything of it changed
    (epoch nanoseconds), and which file it is. ``trouble`` is why its bytes cannot be read, if they cannot.
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

    @property
    def full_path(self) -> str:
        """Where the file lies."""
        return f"{self.recording}/{self.path}"

    @property
    def file_name(self) -> str:
        """Its last part."""
        return self.path.rsplit("/", 1)[-1]


def find_recordings(folders: Iterable[str]) -> dict[str, list[RecordedFile]]:
    """The files of each folder, as find_files has them; the same folder given twice is one, however it is written."""
    apart: dict[Path, str] = {}
    for folder in folders:
        apart.setdefault(Path(folder).resolve(), folder)
    return {folder: find_files(folder) for folder in apart.values()}


def find_files(folder: str) -> list[RecordedFile]:
    """Every file of the recording in ``folder``, sorted by path, each with its kind.

    Raises InputError where there is no folder, or nothing in it that belongs to a recording.
    """
    root = Path(folder).resolve()
    if not root.is_dir():
        what = "is a file, not a folder" if root.exists() else "does not exist"
        raise InputError(f"recording {folder} {what}; give the folder that holds snapshots/ and *.jsonl")
    if _escaped(str(root)) != str(root):
        raise InputError(f"recording {_escaped(str(root))}: the name of its folder is not UTF-8; rename it")
    files = sorted(_walk(root), key=lambda f: f.path)
    if all(f.kind in NOT_READ for f in files):
        raise InputError(
            f"recording {folder} holds nothing to replay ({len(files)} files seen); "
            "expected snapshots/<broker>/<epoch_ms>/consumerOffset.json or files such as pull_log.jsonl.gz"
        )
    return files


def _walk(root: Path) -> Iterator[RecordedFile]:
    recording, within = str(root), len(str(root / "x")) - 1
    closed: list[str] = []
    entered = [recording]
    for folder, inner, names in os.walk(recording, onerror=lambda e: closed.append(str(e.filename)), followlinks=True):
        inner[:] = [name for name in inner if _is_entered(os.path.join(folder, name), entered)]
        for name in names:
            path = os.path.join(folder, name)
            try:
                told = os.stat(path)
            except OSError:  # a link to nothing, or gone since
                continue
            if stat.S_ISREG(told.st_mode):
                relative = _escaped(path[within:])
                kind, source, ts = classify(relative) if relative == path[within:] else ("bad_name", None, None)
                when = told.st_mtime_ns, told.st_ctime_ns, told.st_ino
                yield RecordedFile(recording, relative, kind, told.st_size, source, ts, *when)
    for folder in closed:
        yield RecordedFile(recording, _escaped(folder[within:]) or ".", "folder", 0)


def _is_entered(folder: str, entered: list[str]) -> bool:
    """Whether to look into a folder. A link is followed, but not to where the walk is, was, or comes by itself."""
    if not os.path.islink(folder):
        return True
    target = os.path.realpath(folder)
    if any(os.path.commonpath([target, other]) in (target, other) for other in entered):
        return False
    entered.append(target)
    return True


def _escaped(name: str) -> str:
    r"""The name as UTF-8 can write it.

    >>> print(_escaped(os.fsdecode(b"caf\xe9")))
    caf\xe9
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def classify(path: str) -> tuple[str, str | None, int | None]:
    """Kind, snapshot folder and epoch milliseconds of a file, told from its path inside the recording.

    >>> classify("pull_log.0002.jsonl.gz")
    ('pull_log', None, None)
    >>> classify("snapshots/broker-a-0/1795228794427/consumerOffset.json")
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
    if len(parts) == 1 and parts[0] == "brokers.json":
        return "brokers", None, None
    match = _JSONL.fullmatch(parts[0]) if len(parts) == 1 else None
    if match and match["stem"] in RECORD_TABLES:
        return match["stem"], None, None
    return "other", None, None


def _classify_snapshot(parts: list[str]) -> tuple[str, str | None, int | None]:
    if len(parts) != 4 or not _EPOCH_MS.fullmatch(parts[2]):
        return "other", None, None
    source, ts, name = sys.intern(parts[1]), int(parts[2]), parts[3]  # one text for a source's million files
    of_broker = split_source(source) is not None
    if name in SNAPSHOT_KINDS:
        return (SNAPSHOT_KINDS[name], source, ts) if of_broker else ("no_source", None, None)
    if name.endswith((".offsets.json", ".offsets.json.bak")) or name in ("offsets.json", "offsets.json.bak"):
        of_client = of_broker or source.startswith("client-")
        return ("client_offsets", source, ts) if of_client else ("no_source", None, None)
    return "other", None, None


def split_source(source_name: str) -> tuple[str, int] | None:
    """(broker_name, broker_id) of a snapshot folder, or None for a client's.

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
    # Other scripts have digits too, and some of them are no numbers.
    return (name, int(number)) if name and _BROKER_ID.fullmatch(number) and int(number) < 2**63 else None
