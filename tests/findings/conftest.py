"""Each summary and advice that a test of this folder makes must be in the Chinese catalogue."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

from language.chinese import report, unknown
from mqreplay.findings import shape
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.registry import SHIPPED


@pytest.fixture(autouse=True, scope="module")
def translated() -> Iterator[None]:
    """Fail at the end of a file that made a sentence without a translation. Kinds of packages need none."""
    made: set[str] = set()
    own = shape.finding

    def finding(rows: pl.DataFrame, kind: FindingKind, *args: Any, **kwargs: Any) -> pl.DataFrame:
        found = own(rows, kind, *args, **kwargs)
        if SHIPPED.get(kind.name) is kind:
            made.update(found["summary"].drop_nulls(), found["advice"].drop_nulls())
        return found

    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("mqreplay.findings.") and getattr(module, "finding", None) is own:
                patch.setattr(module, "finding", finding)
        yield
    missing = unknown(made)
    assert not missing, report(missing)
