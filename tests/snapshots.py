"""Snapshots: texts of the terminal and of the page in tests/data/snapshots, compared exactly.

The command in tests/data/README.md writes them anew. Read the difference before you commit it.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

FOLDER = Path(__file__).parent / "data" / "snapshots"
UPDATE = "UPDATE_SNAPSHOTS"
COMMAND = f"{UPDATE}=1 .venv/bin/python -m pytest tests/cli/test_snapshots.py tests/report/test_page_snapshots.py"


def assert_is_snapshot(name: str, text: str) -> None:
    """Compare a text with its snapshot, or write the snapshot if the environment asks for it."""
    path = FOLDER / f"{name}.txt"
    # No editor and no hook changes a file without spaces at the ends of lines.
    now = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    if os.environ.get(UPDATE):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(now, encoding="utf-8")
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    changes = list(difflib.unified_diff(before.splitlines(), now.splitlines(), "snapshot", "now", lineterm="", n=1))
    shown = "\n".join(changes[:60])
    assert not changes, f"{path.name} differs. If the change is intended: {COMMAND}\n{shown}"
