"""List the files of a recording in an object store or HDFS.

There are no links, and what is listed is a file. Its identity is its size, its time of change, and the store's version
(ETag) if there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from mqreplay.ingest.recording import RecordedFile
from mqreplay.lake.files import FileInfo, files_of, joined
from mqreplay.recording_files import classify

SNAPSHOTS = "snapshots"


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
