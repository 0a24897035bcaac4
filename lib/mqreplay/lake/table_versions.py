"""The versions that runs left, in a file beside the tables: a table that lost commits or changed content is noticed.

A table whose last commit or whole folder is lost looks like an older table, or like none, and a changed log like
another one. A later version than the noted one is of a run that was killed, or of another program.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

from mqreplay.lake.contract import load_contracts
from mqreplay.lake.files import joined, read_json, write_json
from mqreplay.machine.local_files import permitted
from mqreplay.words.errors import ContractError

VERSIONS_FILE = ".mqreplay.versions"
_WRITING = threading.Lock()  # threads may have objects of their own for one warehouse


class Noted(NamedTuple):
    """A version of a table, and the digest of its files and columns."""

    version: int
    digest: str


class DamagedTable(ContractError):
    """A table that lost commits or files, or whose files have another content: ``what`` happened, and what to do."""

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(f"{what}; {advice}")
        self.what, self.advice = what, advice

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.what, self.advice)


def damaged_table(location: str, what: str, *, is_seen: bool = True) -> DamagedTable:
    """Return the error for the table in this folder, in one line that says what to do.

    ``is_seen``: nightly sees the damage before it reads the table.
    """
    name = ".".join(location.rsplit("/", 2)[1:])
    contract = load_contracts().get(name)
    again = "run nightly with the recordings, which judges its days again"
    again = again if is_seen else f"remove {location}, and {again}"
    other = f"put {location} back from a copy, or give a new --warehouse and run the recordings again"
    advice = again if contract is not None and contract.is_judged else other
    return DamagedTable(f"table {name} is damaged: {what}", advice)


class TableVersions:
    """The noted versions of one warehouse, from the file of its ``root``; none if it is missing or damaged.

    They are read before the tables are: a run that works meanwhile only raises versions.
    """

    def __init__(self, root: str) -> None:
        self._path = joined(root, VERSIONS_FILE)
        self._noted: dict[str, Noted] | None = None

    def of(self, name: str) -> Noted | None:
        """Return the noted version of a table; None without one."""
        if self._noted is None:
            self._noted = self._read() or {}
        return self._noted.get(name)

    def anew(self, name: str) -> Noted | None:
        """Return what is noted now: a run may have rolled the table back."""
        self._noted = None
        return self.of(name)

    def is_kept(self) -> bool:
        """Return whether there is a readable file."""
        return self._read() is not None

    def write(self, changed: Mapping[str, Noted | None]) -> None:
        """Note the versions of these tables; None: there is no such table. Hold the warehouse's lock."""
        with _WRITING:
            noted = {**(self._read() or {}), **changed}
            self._noted = {name: version for name, version in sorted(noted.items()) if version is not None}
            write_json(self._path, {"tables": self._noted})

    def _read(self) -> dict[str, Noted] | None:
        try:
            with permitted(self._path):
                return {name: Noted(*noted) for name, noted in read_json(self._path, is_old=False)["tables"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
