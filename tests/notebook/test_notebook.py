"""The cells of docs/notebook.ipynb run in order, and show what the page keeps of them.

`UPDATE_SNAPSHOTS=1 python -m pytest tests/notebook/test_notebook.py` writes their output anew.
"""

from __future__ import annotations

import ast
import io
import json
import os
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from tests_shared import ROOT

PAGE = ROOT / "docs" / "notebook.ipynb"
PLAIN, HTML = "text/plain", "text/html"


def run(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell as a notebook does; return its outputs: what it printed, and how its last value shows itself."""
    *body, last = ast.parse(source).body
    printed = io.StringIO()
    with redirect_stdout(printed):
        value = None
        if isinstance(last, ast.Expr):
            exec(compile(ast.Module(body, []), "cell", "exec"), names)
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        else:
            exec(compile(ast.Module([*body, last], []), "cell", "exec"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue()})
    if value is not None:
        data = {PLAIN: repr(value)}
        if hasattr(value, "_repr_html_"):
            data[HTML] = value._repr_html_()
        outputs.append({"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": data})
    return outputs


def test_the_cells_show_what_the_page_keeps(night: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "warehouse").mkdir()
    (tmp_path / "warehouse" / "sample").symlink_to(Path(night.root).resolve())
    monkeypatch.chdir(tmp_path)
    page = json.loads(PAGE.read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    cells = [cell for cell in page["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 6
    made = [run("".join(cell["source"]), names) for cell in cells]
    if os.environ.get("UPDATE_SNAPSHOTS"):
        for cell, outputs in zip(cells, made, strict=True):
            cell["outputs"], cell["execution_count"] = outputs, 1
        PAGE.write_text(json.dumps(page, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert made == [cell["outputs"] for cell in cells]
