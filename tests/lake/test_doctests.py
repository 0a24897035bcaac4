"""The examples in the docstrings of the lake are run."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "catalog",
        "column_types",
        "duckdb_database",
        "files",
        "java_process",
        "landing",
        "registration",
        "similar",
        "sql",
        "storage",
    ],
)
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"mqreplay.lake.{name}"), report=True)
    assert result.attempted > 0
    assert result.failed == 0
