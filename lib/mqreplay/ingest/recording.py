"""A file of a recording, and the kinds that are not read (mqreplay.decode.recording.files gives its kind).

An entry that is not a readable file has a kind of NOT_READ, which gives the reason. A file SHA256SUMS protects the
files that it lists (checksums.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from mqreplay.decode.kinds import FILE_KINDS, KINDS

NOT_READ = {
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
UNREAD_KINDS = frozenset({"bad_name", "folder", "special", "broken_link", "link_outside", "misnamed_folder"})
# Kinds of files whose times are from the recorder's clock, not a client's.
RECORDER_KINDS = tuple(stem for stem, kind in FILE_KINDS.items() if kind.by_recorder)
SNAPSHOT_KINDS = tuple(stem for stem in RECORDER_KINDS if stem not in KINDS)


@dataclass(frozen=True, slots=True)
class RecordedFile:
    """A file of a recording. ``ts_ms`` and ``source_name`` are there for snapshots (epoch milliseconds).

    The next four are from the file system: the times of the last change of its bytes and of its status (epoch
    nanoseconds), and its inode; an object store has a version (ETag) instead of the last two. ``trouble`` says why its
    bytes cannot or must not be read, if so; ``trouble_code`` is a stable code for that. ``follow_links``: links may
    lead out of the recording.
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
    version: str = ""
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


Digested = tuple[RecordedFile, str]  # a file and its SHA-256, empty if it is unknown or cannot be read
