"""The examples in the docstrings of the report are run."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from mqreplay import report
from mqreplay.decode.recording import advice

REPORT = Path(report.__file__).parent
NAMES = sorted(
    ".".join(path.relative_to(REPORT).with_suffix("").parts)
    for path in REPORT.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", [advice.__name__, *(f"mqreplay.report.{name}" for name in NAMES)])
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
