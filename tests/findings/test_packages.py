"""Kinds of findings of users' packages: a fault of one is one line, and the others are found."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any

import polars as pl
import pytest

from mqreplay.decode.recording.advice import Need
from mqreplay.findings import packages, shape
from mqreplay.findings.kind import Cause, FindingKind
from mqreplay.findings.packages import find_of_packages, kinds_of_packages
from mqreplay.findings.registry import SHIPPED
from silver_moments import at

BEGIN = "mqreplay: skipping finding "
ROW = {"consumer_group": "g", "from_ts": at(0), "to_ts": at(9), "evidence": []}
TYPES = {name: shape.SCHEMA[name] for name in ROW}


def found(kind: FindingKind, *groups: str, severity: str | None = "info") -> pl.DataFrame:
    """Return a finding for each group."""
    rows = pl.DataFrame([ROW | {"consumer_group": group} for group in groups], TYPES)
    return shape.finding(rows, kind, "c", severity=pl.lit(severity, pl.String), summary=pl.lit("It was so."))


GOOD = FindingKind(
    "good", 0.9, rule="A rule.", advice="Advice.", meaning="A meaning.", find=lambda _, __: found(GOOD, "g")
)


class Point(EntryPoint):
    """An entry point of this module, of no installed package."""

    def load(self) -> Any:
        """Return the record; fail as a module that cannot be imported does."""
        if self.name == "broken":
            raise ModuleNotFoundError("No module named 'absent'\nwith a second line")
        return RECORDS[self.name]


RECORDS: dict[str, object] = {
    "good": GOOD,
    "not_a_record": "good",
    "taken": replace(GOOD, name="stuck_queue"),
    "second": GOOD,
    "no_words": replace(GOOD, name="no_words", meaning=""),
    "no_number": replace(GOOD, name="no_number", confidence=1.5),
    "no_need": replace(GOOD, name="no_need", needs=("heartbeats",)),  # type: ignore[arg-type]
    "half_seconds": replace(GOOD, name="half_seconds", causes=(Cause("stuck_queue", same=(), after_s=0.5),)),  # type: ignore[arg-type]
    "unknown": replace(
        GOOD,
        name="unknown",
        needs=(Need("tea_leaves"),),
        causes=(Cause("no_kind", same=("no_column",)),),
        thresholds=("findings.no_setting",),
        ends_after="findings.no_end",
    ),
}
REASONS = {
    "broken": "here:X cannot be loaded: ModuleNotFoundError: No module named 'absent'",
    "not_a_record": "here:X is no FindingKind",
    "taken": "the name stuck_queue is already used by mqreplay",
    "second": "the name good is already used by ?",
    "no_words": "name, meaning, rule and advice must be texts, and the name an identifier",
    "no_number": "confidence should be above 0 and at most 1, and is 1.5",
    "no_need": "its record has a value of a wrong type: AttributeError: 'str' object has no attribute 'kind'",
    "half_seconds": "after_s and before_s of a cause must be whole seconds",
    "unknown": "its needs, causes, thresholds or ends_after name what does not exist: findings.no_end, "
    "findings.no_setting, no_column, no_kind, tea_leaves",
}


@pytest.mark.parametrize("fault", REASONS)
def test_a_record_that_cannot_be_used_is_one_line(
    fault: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    points = [Point(name, "here:X", packages.PACKAGES) for name in ("good", fault)]
    monkeypatch.setattr(packages, "entry_points", lambda group: points)
    assert kinds_of_packages(SHIPPED) == {"good": GOOD}
    assert capsys.readouterr().err == f"{BEGIN}{fault} of package ?: {REASONS[fault]}\n"


def panic(*_: object) -> pl.DataFrame:
    raise pl.exceptions.PanicException("in polars")


FAULTS: dict[str, tuple[Any, str]] = {
    "an error": (lambda _, __: {}["left"], "its function failed: KeyError: 'left'"),
    "a panic": (panic, "its function failed: PanicException: in polars"),
    "no frame": (lambda _, __: None, "its function must return what mqreplay.findings.shape.finding returns"),
    "other columns": (
        lambda _, __: found(GOOD, "g").drop("summary"),
        "its function must return what mqreplay.findings.shape.finding returns",
    ),
    "another kind": (lambda _, __: found(GOOD, "g"), "its function returned findings of another kind"),
    "a severity": (lambda _, __: found(BAD, "g", severity="bad"), "a severity must be one of info, warning, critical"),
    "no severity": (lambda _, __: found(BAD, "g", severity=None), "a finding lacks one of "),
    "one place": (lambda _, __: found(BAD, "g", "g"), "two findings have the same place and from_ts"),
}
BAD = replace(GOOD, name="bad")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_function_that_fails_is_one_line(fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    function, reason = FAULTS[fault]
    kinds = [replace(BAD, find=function), GOOD]
    nothing: Any = None
    (rows,) = find_of_packages(kinds, nothing, nothing, shape.none())
    assert rows["kind"].to_list() == ["good"]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{BEGIN}bad of package ?: {reason}")


def test_a_kind_may_be_made_of_other_findings() -> None:
    kind = replace(
        GOOD, name="of_others", find=None, find_in_findings=lambda _, __, others: found(kind, *others["topic"])
    )
    nothing: Any = None
    others = shape.none().vstack(found(GOOD, "g").with_columns(topic=pl.lit("t")))
    (rows,) = find_of_packages([kind], nothing, nothing, others)
    assert rows.select("kind", "consumer_group").rows() == [("of_others", "t")]


@pytest.mark.parametrize("functions", [{"find": None}, {"find_in_findings": lambda _, __, others: others}])
def test_a_kind_has_one_function(functions: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="give either find or find_in_findings"):
        replace(GOOD, **functions)
