"""The examples of the README run as written."""

from __future__ import annotations

import re

import pytest

from mqreplay.cli.query import query
from mqreplay.settings import load_settings
from tests_shared import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"^```sql\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
PROGRAMS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("text", QUERIES, ids=range(len(QUERIES)))
def test_query(night, text):
    assert query(night.root, text, load_settings()).collect()


@pytest.mark.usefixtures("spark")
def test_the_queries_give_the_nights_figures(night):
    found = query(night.root, QUERIES[0], load_settings()).collect()
    assert {"AVG": 1887 + 41, "AVG_BY_CIRCLE": 444}.items() <= {
        r.strategy: r.rebalances for r in found if r.judgement == "agree"
    }.items()


@pytest.mark.parametrize("text", PROGRAMS)
def test_program(text):
    exec(compile(text, "README.md", "exec"), {})
