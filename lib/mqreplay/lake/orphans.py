"""Files in a table's folder that no version uses: of failed tasks, interrupted runs, or writes without rows.

Only files named in the way of Spark, Delta and mqreplay are ever removed.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import dropwhile
from urllib.parse import unquote

from mqreplay.errors import InputError
from mqreplay.lake.files import FileInfo, files_of, is_remote, joined
from mqreplay.lake.lease import is_leased

LOG = "_delta_log"
COMMIT = re.compile(r"([0-9]{20})\.json")
CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
SETTLED_NS = 2_000_000_000
DATA = re.compile(r"\.?part-.+\.parquet(\.crc)?")


_known: dict[str, FileInfo | None] = {}  # the last commits of leased tables: only this process changes them
_listed: dict[str, tuple[int, frozenset[str]]] = {}  # data files by folder, with the time of its last change
_latest: dict[str, str] = {}  # the last log file that was seen of each table: there may be later ones


def last_version(location: str) -> int | None:
    """Return the last committed version of the table in this folder; None without a table.

    A folder ``_delta_log`` without a commit is not a table: its writer died before version 0.
    """
    commit = last_commit(location)
    return None if commit is None else int(commit.name.partition(".")[0])


def last_commit(location: str) -> FileInfo | None:
    """Return the log file of the last version; None without a table."""
    if not is_leased(location):
        return _last_commit(location)
    if location not in _known:
        _known[location] = _last_commit(location)
    return _known[location]


def _last_commit(location: str) -> FileInfo | None:
    """Return the log file of the last version, from that of the last call on: listing a long log is slow."""
    files, log = files_of(location), joined(location, LOG)
    last = _latest.pop(location, None)
    found = None if last is None else files.info(joined(log, last))
    while found is not None:
        later = files.info(joined(log, f"{int(found.name.partition('.')[0]) + 1:020d}.json"))
        if later is None:
            break
        found = later
    if found is None:
        versions = _versions(location)
        found = files.info(joined(log, versions[max(versions)])) if versions else None
    if found is not None:
        _latest[location] = found.name
    return found


def log_changed(location: str) -> None:
    """Forget what is known of the log of a table."""
    _known.pop(location, None)


def _versions(location: str) -> dict[int, str]:
    """Return the versions in the table's log with the names of their files."""
    named = [(COMMIT.fullmatch(name) or CHECKPOINT.fullmatch(name), name) for name in _names(location, LOG)]
    return {int(match[1]): name for match, name in named if match}


def _names(*folder: str) -> list[str]:
    """Return the sorted names in a folder; none without a folder. An unreadable folder raises OSError."""
    path = joined(*folder)
    return files_of(path).names(path)


def _remove_file(*path: str) -> None:
    whole = joined(*path)
    files_of(whole).remove(whole)


def data_files(location: str) -> frozenset[str]:
    """Return the names of the data files in the table's folder. The tables have no partitions, so no subfolders.

    A folder of this machine that has not changed since the last call is not listed again: it keeps files of all nights.
    """
    changed = None if is_remote(location) else files_of(location).info(location)
    known = _listed.get(location)
    if changed is not None and known is not None and known[0] == changed.modified_ns:
        return known[1]
    found = frozenset(filter(DATA.fullmatch, _names(location)))
    # A folder that changed just now may change again with the same time, because file times are coarse.
    if changed is not None and changed.modified_ns < time.time_ns() - SETTLED_NS:
        _listed[location] = changed.modified_ns, found
    return found


def remove_orphans(location: str, keep: Iterable[str], since: int) -> None:
    """Remove files that are neither in ``keep`` nor in a commit after the version ``since``."""
    _remove(location, data_files(location) - set(keep), since)


def remove_all_orphans(location: str, live_files: Callable[[], Iterable[str]]) -> None:
    """Remove the files that no version uses. ``live_files`` returns those of the last version.

    Delta deletes old commits: files that only those used are past retention and are removed too.
    """
    candidates = data_files(location)
    if f"{0:020d}.json" not in _names(location, LOG):
        candidates -= set(live_files())
    _remove(location, candidates, since=-1)


def remove_unborn(location: str) -> None:
    """Remove the rest of a table whose writer died before version 0. CREATE TABLE refuses a folder with files.

    Raises InputError if the folder holds other files.
    """
    if last_version(location) is None and _names(location):
        remove_table(location)
        if others := sorted(_names(location)):
            raise InputError(f"{location} is the folder of a table, but holds {others[0]}; move it elsewhere")


def remove_table(location: str) -> None:
    """Remove the table in this folder, at once for readers, and the folder if it is then empty."""
    log_changed(location)
    files, log, removed = files_of(location), joined(location, LOG), joined(location, f".{LOG}.removed")
    if is_remote(location):
        # Without a rename: the last versions go first, and the first one is the table's end.
        for name in sorted(_names(location, LOG), reverse=True):
            _remove_file(location, LOG, name)
        files.remove_folder(log)
    else:
        files.remove_folder(removed)  # left by a process that died while removing it
        with suppress(FileNotFoundError, NotADirectoryError):
            os.rename(log, removed)
    for name in data_files(location):
        _remove_file(location, name)
    if is_remote(location):
        if not files.names(location):
            files.remove_folder(location)
        return
    files.remove_folder(removed)
    with suppress(OSError):
        os.rmdir(location)


def remove_torn_log_files(location: str, since: int) -> None:
    """Remove the files of unfinished commits.

    Delta's log store writes a temporary file and renames it. If the rename fails, Hadoop copies to the final name,
    which can leave half a commit. It and all later ones above the version ``since`` do not count.
    """
    log_changed(location)
    for name in _names(location, LOG):
        if name.startswith(".") and name.endswith(".tmp"):
            _remove_file(location, LOG, name)
    later = [joined(location, LOG, name) for number, name in sorted(_versions(location).items()) if number > since]
    for path in reversed(list(dropwhile(lambda path: not _is_torn(path), later))):
        _remove_file(path)


def _is_torn(commit: str) -> bool:
    if COMMIT.fullmatch(commit.rpartition("/")[2]) is None:
        return False
    lines = files_of(commit).read(commit).splitlines()
    try:
        return not lines or not all(isinstance(json.loads(line), dict) for line in lines)
    except ValueError:
        return True


def _remove(location: str, candidates: frozenset[str], since: int) -> None:
    for name in candidates - set(_named(location, since)) if candidates else ():
        _remove_file(location, name)


def _named(location: str, since: int) -> Iterator[str]:
    log = joined(location, LOG)
    for name in files_of(log).names(log, after=f"{since:020d}.json" if since >= 0 else ""):
        if COMMIT.fullmatch(name) is None:
            continue
        path = joined(log, name)
        for line in files_of(path).read(path).splitlines():
            action = json.loads(line)
            for kind in ("add", "remove"):
                if kind in action:
                    yield unquote(action[kind]["path"])
