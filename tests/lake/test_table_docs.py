"""docs/tables.md is what the contracts say."""

from __future__ import annotations

from pathlib import Path

from mqreplay.lake.contract import load_contracts
from mqreplay.lake.table_docs import render


def test_page_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "tables.md"
    assert page.read_text(encoding="utf-8") == render(load_contracts()), "run `make docs`"
