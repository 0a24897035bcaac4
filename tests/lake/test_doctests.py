"""The examples in the docstrings of the lake are run."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from mqreplay import lake

LAKE = Path(lake.__file__).parent
NAMES = sorted(path.stem for path in LAKE.glob("*.py") if ">>> " in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"mqreplay.lake.{name}"), report=True)
    assert result.attempted > 0
    assert result.failed == 0
