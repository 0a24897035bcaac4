"""Where the log of a run that failed can be written."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def log_folders(warehouse: str | None) -> list[Path]:
    """Return the folders for the log, the best one first: the warehouse's own, then one among the temporary files."""
    own = [Path(warehouse, "logs")] if warehouse is not None and _is_folder(warehouse) else []
    return [*own, *temporary_logs()]


def _is_folder(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except OSError:  # the name is too long, or the folder is not accessible
        return False


def temporary_logs() -> list[Path]:
    """Return this user's folder for logs below the temporary folder. Make it if needed; none if that fails.

    A folder or link of that name that belongs to another user is not used.
    """
    try:
        folder = Path(tempfile.gettempdir(), f"mqreplay-logs-{os.getuid()}")
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return []
    return [folder] if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() else []
