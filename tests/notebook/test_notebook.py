"""The cells of docs/notebook.ipynb run in order in a real kernel, and show what the page keeps of them.

`UPDATE_SNAPSHOTS=1 python -m pytest tests/notebook/test_notebook.py` writes their output anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from tests_shared import ROOT

PAGE = ROOT / "docs" / "notebook.ipynb"


def code_cells(page: Any) -> list[Any]:
    return [cell for cell in page.cells if cell.cell_type == "code"]


def test_the_cells_show_what_the_page_keeps(night: Any, tmp_path: Path) -> None:
    """Jupyter starts a kernel in the folder of the notebook."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "warehouse").mkdir()
    (tmp_path / "warehouse" / "sample").symlink_to(Path(night.root).resolve())
    page = nbformat.read(PAGE, as_version=4)
    kept = [cell.outputs for cell in code_cells(page)]
    place = {"metadata": {"path": str(tmp_path / "docs")}}
    NotebookClient(page, timeout=120, record_timing=False, resources=place).execute()
    if os.environ.get("UPDATE_SNAPSHOTS"):
        page.metadata.language_info = {"name": "python"}  # not the version of this Python
        PAGE.write_text(json.dumps(page, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert len(kept) >= 6
    assert [cell.outputs for cell in code_cells(page)] == kept
    (why,) = (cell.outputs[0].data["text/plain"] for cell in code_cells(page) if "why = " in cell.source)
    assert "Summary" in why
