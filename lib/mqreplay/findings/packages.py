"""Kinds of findings of users' packages, by entry points. An error of a package is one line on stderr.

A package names its records in its pyproject.toml:

    [project.entry-points."mqreplay.findings"]
    my_finding = "my_package.my_module:MY_FINDING"
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points

import polars as pl
from polars.exceptions import PanicException

from mqreplay.decode.kinds import FILE_KINDS
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.limits import Limits
from mqreplay.findings.shape import PLACE, SCHEMA
from mqreplay.findings.texts import PACKAGES
from mqreplay.words.printable import printable
from mqreplay.words.severity import SEVERITIES

REQUIRED_COLUMNS = ("finding_id", "kind", "severity", "from_ts", "confidence", "summary", "advice", "evidence")
REQUIRED_TEXTS = ("meaning", "rule", "advice")
LONGEST_ERROR = 300  # characters of an error
_package_of: dict[str, str] = {}  # by name of the kind


def kinds_of_packages(shipped: Mapping[str, FindingKind]) -> dict[str, FindingKind]:
    """Return the kinds of all installed packages by name, without those that cannot be used."""
    kinds: dict[str, FindingKind] = {}
    for point in sorted(entry_points(group=PACKAGES), key=lambda each: (_package(each), each.name)):
        try:
            kind = point.load()
        except Exception as error:  # a package must not stop the night
            _skip(point.name, _package(point), f"{point.value} cannot be loaded: {_text(error)}")
            continue
        try:
            problem = _problem(kind, point, {**shipped, **kinds})
        except (AttributeError, TypeError) as error:
            problem = f"its record has a value of a wrong type: {_text(error)}"
        if problem:
            _skip(point.name, _package(point), problem)
        else:
            kinds[kind.name] = kind
            _package_of[kind.name] = _package(point)
    return kinds


def find_of_packages(
    kinds: Iterable[FindingKind], evidence: FindingEvidence, limits: Limits, found: pl.DataFrame
) -> list[pl.DataFrame]:
    """Return the findings of packages' kinds; ``found`` are those of mqreplay's own kinds."""
    made = []
    for kind in kinds:
        try:
            rows = _rows(kind, evidence, limits, found)
            problem = _problem_of_rows(rows, kind.name)
        except (Exception, PanicException) as error:  # a package must not stop the night
            problem = f"its function failed: {_text(error)}"
        if problem:
            _skip(kind.name, _package_of.get(kind.name, "?"), problem)
        else:
            made.append(rows)
    return made


def _rows(kind: FindingKind, evidence: FindingEvidence, limits: Limits, found: pl.DataFrame) -> pl.DataFrame:
    if kind.find is not None:
        return kind.find(evidence, limits)
    return found.clear() if kind.find_in_findings is None else kind.find_in_findings(evidence, limits, found)


def _problem(kind: object, point: EntryPoint, known: Mapping[str, FindingKind]) -> str:
    """Return why a record cannot be used; empty if it can."""
    if not isinstance(kind, FindingKind):
        return f"{point.value} is no FindingKind"
    if kind.name in known:
        return f"the name {kind.name} is already used by {_package_of.get(kind.name, 'mqreplay')}"
    if not isinstance(kind.name, str) or not kind.name.isidentifier() or not all(map(kind.text, REQUIRED_TEXTS)):
        return "name, meaning, rule and advice must be texts, and the name an identifier"
    if not 0 < kind.confidence <= 1:
        return f"confidence should be above 0 and at most 1, and is {kind.confidence}"
    if not all(isinstance(cause.after_s + cause.before_s, int) for cause in kind.causes):
        return "after_s and before_s of a cause must be whole seconds"
    settings = {key for each in known.values() for key in (*each.thresholds, each.ends_after)}
    unknown = {
        *({need.kind for need in kind.needs} - FILE_KINDS.keys()),
        *({column for cause in kind.causes for column in cause.same} - PLACE.keys()),
        *({cause.name for cause in kind.causes} - {*known, kind.name}),
        *({*kind.thresholds, kind.ends_after} - {*settings, None}),
    }
    names = ", ".join(sorted(map(str, unknown)))
    return f"its needs, causes, thresholds or ends_after name what does not exist: {names}" if unknown else ""


def _problem_of_rows(rows: object, name: str) -> str:
    """Return why the result of a function cannot be used; empty if it can."""
    if not isinstance(rows, pl.DataFrame) or dict(rows.schema) != SCHEMA:
        return "its function must return what mqreplay.findings.shape.finding returns"
    if rows["kind"].ne_missing(name).any():
        return "its function returned findings of another kind"
    if not rows["severity"].is_in(SEVERITIES).all():
        return f"a severity must be one of {', '.join(SEVERITIES)}"
    if rows.select(REQUIRED_COLUMNS).null_count().sum_horizontal().sum():
        return f"a finding lacks one of {', '.join(REQUIRED_COLUMNS)}"
    if rows["finding_id"].is_duplicated().any():
        return "two findings have the same place and from_ts"
    return ""


def _package(point: EntryPoint) -> str:
    return "?" if point.dist is None else f"{point.dist.name} {point.dist.version}"


def _text(error: BaseException) -> str:
    return printable(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")[:LONGEST_ERROR]


def _skip(name: str, package: str, problem: str) -> None:
    print(f"mqreplay: skipping finding {printable(name)} of package {printable(package)}: {problem}", file=sys.stderr)
