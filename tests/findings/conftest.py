"""Each summary and advice that a test of this folder makes must have a Chinese form with the same values."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
import pytest

from language.chinese import ZH
from mqreplay.findings import shape
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.registry import SHIPPED
from mqreplay.findings.texts import advice_of, summary_of

CHINESE = re.compile(r"[\u4e00-\u9fff]")
NUMBER = re.compile(r"[0-9]+")
COMMAND = re.compile(r"`[^`]*`")


@pytest.fixture(autouse=True, scope="module")
def translated() -> Iterator[None]:
    """Fail at the end of a file that made a sentence without a translation. Kinds of packages need none."""
    made: dict[tuple[str, str], Mapping[str, Any]] = {}
    own = shape.finding

    def finding(rows: pl.DataFrame, kind: FindingKind, *args: Any, **kwargs: Any) -> pl.DataFrame:
        found = own(rows, kind, *args, **kwargs)
        if SHIPPED.get(kind.name) is kind:
            made.update({(row["summary"], row["advice"]): row for row in found.drop("evidence").to_dicts()})
        return found

    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("mqreplay.findings.") and getattr(module, "finding", None) is own:
                patch.setattr(module, "finding", finding)
        yield
    assert [problem for row in made.values() if (problem := _problem(row))] == []


def _problem(row: Mapping[str, Any]) -> str:
    """Return what is wrong with the Chinese texts of a finding; empty if nothing is."""
    summary, advice = summary_of(row, ZH), advice_of(row, ZH)
    if not CHINESE.search(summary) or not CHINESE.search(advice):
        return f"not translated: {summary} {advice}"
    missing = set(NUMBER.findall(row["summary"])) - set(NUMBER.findall(summary))
    if missing:
        return f"{summary} lacks {missing} of {row['summary']}"
    return "" if COMMAND.findall(advice) == COMMAND.findall(row["advice"]) else f"other commands: {advice}"
