"""The log of a Delta table as files: its last version, which shows a change; what an interrupted commit left."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import dropwhile

from mqreplay.lake.files import files_of, is_remote, joined
from mqreplay.lake.lease import is_leased
from mqreplay.lake.scratch import scratch
from mqreplay.lake.store_protocol import FileInfo
from mqreplay.machine.local_files import permitted

LOG = "_delta_log"
COMMIT_FILE = re.compile(r"([0-9]{20})\.json")
TEMPORARY = re.compile(r"\..*\.tmp|.*#[0-9]+", re.DOTALL)
LAST_CHECKPOINT = "_last_checkpoint"
CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint\.parquet")

_known: dict[str, FileInfo | None] = {}  # the last commits of leased tables: only this process changes them
_latest: dict[str, str] = {}  # the last log file that was seen of each table: there may be later ones


def last_version(location: str) -> int | None:
    """Return the last committed version of the table in this folder; None without a table.

    A folder ``_delta_log`` without a commit is not a table: its writer died before version 0.
    """
    commit = last_commit(location)
    return None if commit is None else int(commit.name.partition(".")[0])


def last_commit(location: str) -> FileInfo | None:
    """Return the log file of the last version; None without a table. Raises InputError if it may not be read."""
    with permitted(location):
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
        later = commit_file(location, int(found.name.partition(".")[0]) + 1)
        if later is None:
            break
        found = later
    if found is None:
        versions = _versions(location)
        found = files.info(joined(log, versions[max(versions)])) if versions else None
    if found is not None:
        _latest[location] = found.name
    return found


def commit_file(location: str, version: int) -> FileInfo | None:
    """Return the log file of the commit of a version; None if it is not there."""
    return files_of(location).info(joined(location, LOG, f"{version:020d}.json"))


def log_changed(location: str) -> None:
    """Forget what is known of the log of a table."""
    _known.pop(location, None)


def _versions(location: str) -> dict[int, str]:
    """Return the versions in the table's log with the names of their files."""
    log = joined(location, LOG)
    named = [(COMMIT_FILE.fullmatch(name) or CHECKPOINT.fullmatch(name), name) for name in files_of(log).names(log)]
    return {int(match[1]): name for match, name in named if match}


@contextmanager
def all_commits(location: str) -> Iterator[str | None]:
    """Yield a temporary table that has all commits of the one in this folder, and no checkpoint of it.

    None if a commit is missing or cannot be read, or the table is a store's.
    """
    log = joined(location, LOG)
    commits = [] if is_remote(location) else [name for name in files_of(log).names(log) if COMMIT_FILE.fullmatch(name)]
    if not commits or int(commits[-1].partition(".")[0]) != len(commits) - 1:
        yield None
        return
    with tempfile.TemporaryDirectory(dir=scratch().folder) as folder:
        os.mkdir(joined(folder, LOG))
        is_whole = False
        with suppress(OSError):  # such as a folder with the name of a commit
            for name in commits:
                shutil.copy(joined(log, name), joined(folder, LOG, name))
            is_whole = True
        yield folder if is_whole else None


def require_readable_log(location: str) -> None:
    """Raise InputError if a file of the table's log may not be read: delta-rs does not name it."""
    log = joined(location, LOG)
    with permitted(location):
        for name in files_of(log).names(log):
            if not os.access(path := joined(log, name), os.R_OK, effective_ids=True):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def remove_checkpoints(location: str) -> None:
    """Remove the checkpoints of a table that has all of its commits."""
    log = joined(location, LOG)
    for name in files_of(log).names(log):
        if CHECKPOINT.fullmatch(name) or name == LAST_CHECKPOINT:
            files_of(log).remove(joined(log, name))
    log_changed(location)


def remove_table(location: str) -> None:
    """Remove the table in this folder with all of its files; for readers it is gone at once."""
    log_changed(location)
    files, log = files_of(location), joined(location, LOG)
    if is_remote(location):
        # Without a rename: the last versions go first, and the first one is the table's end.
        for name in reversed(files.names(log)):
            files.remove(joined(log, name))
    else:
        with suppress(FileNotFoundError, NotADirectoryError):
            os.rename(log, joined(location, f".{LOG}.removed"))
    files.remove_folder(location)


def remove_torn_log_files(location: str, since: int) -> None:
    """Remove the files of unfinished commits.

    Writers write a temporary file (Spark's is hidden, that of delta-rs ends in # and a number) and rename it. If the
    rename fails, Hadoop copies to the final name, which can leave half a commit. It and all later ones above the
    version ``since`` do not count.
    """
    log_changed(location)
    log = joined(location, LOG)
    files = files_of(log)
    for name in files.names(log):
        if TEMPORARY.fullmatch(name):
            files.remove(joined(log, name))
    later = [joined(log, name) for number, name in sorted(_versions(location).items()) if number > since]
    for path in reversed(list(dropwhile(lambda path: not _is_torn(path), later))):
        files.remove(path)


def _is_torn(commit: str) -> bool:
    if COMMIT_FILE.fullmatch(commit.rpartition("/")[2]) is None:
        return False
    lines = files_of(commit).read(commit).splitlines()
    try:
        return not lines or not all(isinstance(json.loads(line), dict) for line in lines)
    except ValueError:
        return True
