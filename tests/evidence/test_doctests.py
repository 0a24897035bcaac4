"""The examples in the docstrings of evidence and decisions are run."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

LIB = Path(__file__).parents[2] / "lib"
MODULES = [
    ".".join(path.relative_to(LIB).with_suffix("").parts)
    for room in ("evidence", "decisions")
    for path in sorted((LIB / "mqreplay" / room).rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), report=True)
    assert result.attempted > 0
    assert result.failed == 0, f"{result.failed} of {result.attempted} examples of {name} fail"
