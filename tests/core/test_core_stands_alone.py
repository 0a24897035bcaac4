"""core imports only the standard library, the errors, itself, and lark for SQL92."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import mqreplay.core
from each_case import for_each

FILES = sorted(Path(mqreplay.core.__path__[0]).rglob("*.py"))


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


@for_each(FILES)
def test_imports(path: Path) -> None:
    own = ("mqreplay.core", "mqreplay.words.errors", *(["lark"] if path.stem.startswith("sql92") else []))
    strangers = {
        name for name in imports(path) if not name.startswith(own) and name.split(".")[0] not in sys.stdlib_module_names
    }
    assert not strangers
