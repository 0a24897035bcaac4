"""Data files that no version of a table knows: of tasks that failed, and of no rows, for which Spark writes one too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote


@contextmanager
def none_left(location: str) -> Iterator[None]:
    """Removes what the block wrote into the table's folder, and committed to no version.

    Asking first whether there are rows would run a costly plan twice. Only one thread may write the table meanwhile.
    """
    folder = Path(location)
    before, versions = _files(folder), _versions(folder)
    try:
        yield
    finally:
        added = {name for version in _versions(folder) - versions for name in _added(folder / "_delta_log" / version)}
        for path in _files(folder) - before:
            if path.name not in added:
                path.unlink(missing_ok=True)


def left_over(location: str) -> None:
    """Of a table that is not there yet: removes what a run left that died before the first commit.

    CREATE TABLE takes no folder with files.
    """
    for path in _files(Path(location)):
        path.unlink(missing_ok=True)


def _files(folder: Path) -> set[Path]:
    return {path for path in folder.iterdir() if path.is_file()} if folder.is_dir() else set()


def _versions(folder: Path) -> set[str]:
    return {path.name for path in (folder / "_delta_log").glob("*.json")}


def _added(version: Path) -> Iterator[str]:
    """The names of the files that a commit adds; the tables have no partitions, and so no folders."""
    for line in version.read_text(encoding="utf-8").splitlines():
        action = json.loads(line)
        if "add" in action:
            yield unquote(action["add"]["path"])
