"""The kinds of files in a recording: the records in the modules of this package.

`KINDS["pull_log"].decode(line)` returns a dict with exactly the names of ``columns``; absent fields are None. The types
are those of `mqreplay.decode.columns`: Spark DDL, with ``timestamp_ms`` for an int of epoch
milliseconds.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Final

from mqreplay import decode
from mqreplay.decode.kind import FileKind, Kind


def _collected() -> dict[str, FileKind]:
    """Return the records of all modules of this package by stem, the most important kinds first."""
    names = [module.name for module in pkgutil.iter_modules(decode.__path__) if not module.ispkg]
    modules = [import_module(f"{decode.__name__}.{name}") for name in names if f"{decode.__name__}.{name}" != __name__]
    records = [value for module in modules for value in vars(module).values() if isinstance(value, FileKind)]
    records.sort(key=lambda kind: (kind.recording is None, kind.recording and kind.recording.importance, kind.stem))
    kinds = {kind.stem: kind for kind in records}
    if len(kinds) < len(records):
        raise ValueError("two kinds of files have one stem")
    return kinds


FILE_KINDS: Final[dict[str, FileKind]] = _collected()
KINDS: Final[dict[str, Kind]] = {stem: kind for stem, kind in FILE_KINDS.items() if isinstance(kind, Kind)}
