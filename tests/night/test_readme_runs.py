"""The examples of the README run as written."""

from __future__ import annotations

import re

import pytest

from mqreplay.answers.duckdb_query import duckdb_rows
from tests_shared import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"^```sql\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
PROGRAMS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", QUERIES, ids=range(len(QUERIES)))
def test_query(night, text):
    assert duckdb_rows(night.root, text)[1]


def test_the_queries_give_the_nights_figures(night):
    names, found = duckdb_rows(night.root, QUERIES[0])
    assert names == ["strategy", "judgement", "rebalances"]
    agreed = {strategy: count for strategy, judgement, count in found if judgement == "agree"}
    assert {"AVG": 1887 + 41, "AVG_BY_CIRCLE": 444}.items() <= agreed.items()


@pytest.mark.parametrize("text", PROGRAMS)
def test_program(text):
    exec(compile(text, "README.md", "exec"), {})
