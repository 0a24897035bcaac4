"""The index of docs/decisions.md: modules by table, functions by Java class."""

from __future__ import annotations

import re

import pytest

from tests_shared import ROOT
from vectors.catalogue import functions
from vectors.decisions import index
from vectors.judged_by import judged_by


@pytest.mark.long
def test_index_has_each_function_by_its_java_class_and_each_module_by_its_table() -> None:
    found = list(functions())
    tables, classes = index(found, judged_by()).split("## Index of Java classes")
    for function in found:
        for method in function.java:
            row = next(line for line in classes.splitlines() if line.startswith(f"| `{method.partition('#')[0]}` |"))
            assert re.search(rf"\[{function.module}\]\(#{function.module}\): [^;]*`{re.escape(function.name)}`", row)
    row = next(line for line in tables.splitlines() if line.startswith("| gold.slave_suggestion |"))
    assert "[slave_suggestion](#slave_suggestion)" in row
    assert "[allocation]" not in row
    page = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    for module in re.findall(r"\(#(\w+)\)", tables + classes):
        assert f"\n## {module}\n" in page
