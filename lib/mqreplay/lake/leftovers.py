"""Data files that no version of a table knows: Spark writes one even for no rows, and Delta then commits nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def none_left(location: str) -> Iterator[None]:
    """Removes what the block wrote into the table's folder, if it committed no version.

    Asking first whether there are rows would run a costly plan twice. Only one thread may write the table meanwhile.
    """
    folder = Path(location)
    before, versions = _files(folder), _versions(folder)
    yield
    if _versions(folder) == versions:
        for path in _files(folder) - before:
            path.unlink(missing_ok=True)


def _files(folder: Path) -> set[Path]:
    return {path for path in folder.iterdir() if path.is_file()} if folder.is_dir() else set()


def _versions(folder: Path) -> set[str]:
    return {path.name for path in (folder / "_delta_log").glob("*.json")}
