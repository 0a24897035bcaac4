"""Data files that no version of a Delta table names: of failed tasks, of interrupted runs, of writes without rows."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

LOG = "_delta_log"
COMMIT = re.compile(r"([0-9]{20})\.json")
CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint\.parquet")


def last_version(location: str) -> int | None:
    """Return the last committed version of the table in this folder; None where there is no table.

    A folder ``_delta_log`` without a commit is none: its maker died before version 0.
    """
    found = [
        int(match[1])
        for path in Path(location, LOG).glob("*")
        if (match := COMMIT.fullmatch(path.name) or CHECKPOINT.fullmatch(path.name))
    ]
    return max(found, default=None)


def data_files(location: str) -> frozenset[str]:
    """Names of the files in the table's folder. The tables have no partitions, and so no folders."""
    folder = Path(location)
    return frozenset(path.name for path in folder.iterdir() if path.is_file()) if folder.is_dir() else frozenset()


def remove_orphans(location: str, keep: Iterable[str], since: int) -> None:
    """Remove the files that are neither in ``keep`` nor named by a commit above the version ``since``."""
    _remove(location, data_files(location) - set(keep), since)


def remove_all_orphans(location: str, live_files: Callable[[], Iterable[str]]) -> None:
    """Remove the files that no version names. ``live_files`` gives those of the last version.

    Delta deletes old commits: files that only those name are past all retention, and may go too.
    """
    candidates = data_files(location)
    if not Path(location, LOG, f"{0:020d}.json").exists():
        candidates -= set(live_files())
    _remove(location, candidates, since=-1)


def remove_unborn(location: str) -> None:
    """Remove the folder of a table whose maker died before version 0. CREATE TABLE refuses a folder with files."""
    if last_version(location) is None and Path(location).exists():
        shutil.rmtree(location)


def remove_torn_log_files(location: str) -> None:
    """Remove what Delta's log store left of commits that it could not finish: it writes beside, then renames."""
    for path in Path(location, LOG).glob(".*.tmp"):
        path.unlink(missing_ok=True)


def _remove(location: str, candidates: frozenset[str], since: int) -> None:
    for name in candidates - set(_named(location, since)) if candidates else ():
        Path(location, name).unlink(missing_ok=True)


def _named(location: str, since: int) -> Iterator[str]:
    for path in Path(location, LOG).glob("*.json"):
        match = COMMIT.fullmatch(path.name)
        if match is None or int(match[1]) <= since:
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            action = json.loads(line)
            for kind in ("add", "remove"):
                if kind in action:
                    yield unquote(action[kind]["path"])
