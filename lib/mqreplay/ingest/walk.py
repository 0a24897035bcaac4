"""List the files of a recording on this machine, with other entries in the place of a file, or in a store.

Reads names, never contents. Links out of the folder are followed only if the caller asks for it.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from itertools import islice

from mqreplay.decode.recording.files import classify
from mqreplay.ingest.recording import NOT_READ, RecordedFile
from mqreplay.lake.files import files_of, joined
from mqreplay.lake.store_protocol import FileInfo
from mqreplay.machine.local_files import escaped, is_within

SNAPSHOTS = "snapshots"


class Walk:
    """A walk through a recording's folder by its resolved path.

    ``room``: about this many files are listed. The folders of sources that are left out are in ``later``.
    """

    def __init__(self, recording: str, follow_links: bool, room: int = sys.maxsize) -> None:
        self._recording, self._follow, self._room = recording, follow_links, room
        self._within = len(os.path.join(recording, "x")) - 1
        self._entered = [recording]
        self.later: list[str] = []

    def files(self, start: str = "") -> Iterator[RecordedFile]:
        """Yield every file, and every other entry that is in the place of a file, below the folder ``start``."""
        waiting = [os.path.join(self._recording, start) if start else self._recording]
        while waiting:
            folder, inner = waiting.pop(), []
            try:
                with os.scandir(folder) as entries:
                    listed = list(entries)
            except OSError:
                yield self._no_file(folder, "folder")
                continue
            inside = folder[self._within :]
            if self._room < len(listed) and inside.startswith("snapshots/") and inside.count("/") == 1:
                self.later.append(inside)
                continue
            self._room -= len(listed)
            for entry in listed:
                if not _is_folder(entry):
                    yield self._file(entry.path)
                    continue
                enters = not entry.is_symlink() or self._is_entered(entry.path)
                if not enters and self._leaves(entry.path):
                    yield self._no_file(entry.path, "link_outside")
                    continue
                if _names_a_file(entry.path[self._within :]):
                    yield self._no_file(entry.path, "misnamed_folder")
                if enters:
                    inner.append(entry.path)
            waiting += reversed(inner)

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


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _names_a_file(path: str) -> bool:
    """Return whether a path inside a recording is that of a file that is read."""
    if path[-1].isdigit():  # the usual folder of a snapshot
        return False
    kind = classify(escaped(os.fsencode(path)))[0]
    return kind not in NOT_READ


# In an object store or HDFS there are no links, and what is listed is a file. Its identity is its size, its time of
# change, and the store's version (ETag) if there is one.
def list_recording(recording: str, room: int) -> tuple[list[RecordedFile], list[str]]:
    """Return the files of a recording, and the folders that are left out if it has more than ``room`` files."""
    store = files_of(recording)
    listed = list(islice(store.walk(recording), room + 1))
    if len(listed) <= room:
        return list(_files(recording, "", listed)), []
    found: list[RecordedFile] = []
    for name in store.names(recording):
        if name != SNAPSHOTS:
            found += list_folder(recording, name)
    return found, [f"{SNAPSHOTS}/{source}" for source in store.names(joined(recording, SNAPSHOTS))]


def list_folder(recording: str, folder: str) -> Iterator[RecordedFile]:
    """Yield the files below a folder of a recording, or the one that has this name."""
    store, place = files_of(recording), joined(recording, folder)
    single = store.info(place)
    if single is not None and single.bytes:
        yield from _files(recording, "", [single._replace(name=folder)])
    yield from _files(recording, f"{folder}/", store.walk(place))


def _files(recording: str, before: str, listed: Iterable[FileInfo]) -> Iterator[RecordedFile]:
    for found in listed:
        if not found.name:  # some programs make an empty object for a folder
            continue
        path = before + found.name
        kind, source, ts_ms = classify(path)
        changed_ns = 0 if found.version else found.modified_ns
        times = found.modified_ns, changed_ns
        yield RecordedFile(recording, path, kind, found.bytes, source, ts_ms, *times, version=found.version)
