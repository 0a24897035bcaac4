"""What a run had begun and not ended when it died: only then can a table hold rows that no ledger knows of."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from mqreplay.lake.small_file import write_json

MARK = ".mqreplay.unfinished"


class Unfinished:
    """Scopes of work of one warehouse, kept in a small file. Use it under the warehouse's lock."""

    def __init__(self, root: str) -> None:
        self._path = Path(root, MARK)

    def begin(self, scopes: Iterable[str]) -> bool:
        """Notes work as begun. True if any of it was begun before and not ended: then replace, do not append."""
        known, new = self._read(), set(scopes)
        self._write(known | new)
        return bool(known & new)

    def end(self, scopes: Iterable[str]) -> None:
        """Notes work as done."""
        self._write(self._read() - set(scopes))

    def _read(self) -> set[str]:
        try:
            return set(json.loads(self._path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return set()

    def _write(self, scopes: set[str]) -> None:
        if not scopes:
            self._path.unlink(missing_ok=True)
            return
        write_json(self._path, sorted(scopes))
