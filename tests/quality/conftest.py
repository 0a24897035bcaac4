"""A table's rows, judged by its contract as a night would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqreplay.lake.contract import load_contracts
from mqreplay.quality import Scope
from mqreplay.quality.result import ValidationRow, row_of
from mqreplay.quality.run import great_expectations, judge, make_views
from mqreplay.quality.tables import Tables
from quality_rows import Folder, Row

PARAMETERS: dict[str, Any] = {
    "known_brokers": [],
    "recording_end_ms": None,
    "silver_rows": {},
}


class Judge:
    """Judges rows of a table by its contract."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._tried = 0

    def all(
        self, table: str, rows: list[Row], beside: dict[str, list[Row]] | None = None, **parameters: Any
    ) -> list[ValidationRow]:
        """The results of all rules, in the contract's order. ``beside`` are rows of other tables."""
        self._tried += 1
        folder = Folder(self._root / str(self._tried), load_contracts())
        contract = folder.contracts[table]
        for name, its in {table: rows, **(beside or {})}.items():
            folder.write(name, [{"cluster": "c"} | row for row in its])
        with Tables(folder, "c") as tables:
            make_views(tables, contract)
            found = judge(lambda: great_expectations(tables), tables, contract, PARAMETERS | parameters)
        return [row_of("c", Scope("a-run"), contract, rule, result) for rule, result in found]

    def __call__(self, table: str, rows: list[Row], **parameters: Any) -> dict[str, ValidationRow]:
        """The results by expectation type (the last of each)."""
        return {row.expectation: row for row in self.all(table, rows, **parameters)}


@pytest.fixture
def judged(tmp_path: Path) -> Judge:
    return Judge(tmp_path)
