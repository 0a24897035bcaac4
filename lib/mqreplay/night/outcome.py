"""The outcome of a run for its caller: findings, judgements, expectations, quarantine. Read from the tables only."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import asdict, dataclass, field

import polars as pl

from mqreplay.lake.last_day import of_last_day
from mqreplay.lake.plain_rows import plain_rows
from mqreplay.lake.remembered import read_kept
from mqreplay.lake.warehouse import Warehouse
from mqreplay.report.collect import place_among
from mqreplay.report.coverage import Coverage, coverage, most_helpful
from mqreplay.report.verdict import level, verdict
from mqreplay.report.window import Window
from mqreplay.severity import WORST_FIRST


@dataclass
class Outcome:
    """The outcome of one cluster.

    Findings and failed expectations are rows of their tables, worst first; ``report`` and ``anonymised`` are paths.
    ``verdict``, ``level``, ``coverage`` and ``helps`` are those of report/coverage.py. The recording is from
    ``first_ts`` to ``last_ts``, as text; ``since`` is the first day that counts, None: all do.
    """

    cluster: str
    findings: list[dict[str, object]] = field(default_factory=list)
    judgements: dict[str, dict[str, int]] = field(default_factory=dict)
    expectations: int = 0
    failed_expectations: list[dict[str, object]] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)
    quarantined: int = 0
    report: str | None = None
    anonymised: str | None = None
    verdict: str = "Nothing could be judged."
    level: str = "unknown"
    coverage: list[dict[str, object]] = field(default_factory=list)
    helps: list[tuple[str, list[str]]] = field(default_factory=list)
    first_ts: str | None = None
    last_ts: str | None = None
    since: str | None = None

    def as_dict(self) -> dict[str, object]:
        """Return the outcome as plain values."""
        return asdict(self)

    def reaches(self, severity: str | None, muted: Collection[str] = ()) -> bool:
        """Return whether a finding that is not among the ids of ``muted`` has at least this severity."""
        if severity is None:
            return False
        asked = [f for f in self.findings if f["finding_id"] not in muted]
        return any(WORST_FIRST.index(str(f["severity"])) <= WORST_FIRST.index(severity) for f in asked)


def outcome_of(warehouse: Warehouse, cluster: str, since: dt.date | None = None) -> Outcome:
    """Read the outcome of the days since ``since``; of all days if it is None. Instants are ISO 8601 in UTC."""
    here = Window(warehouse, cluster, since).read
    outcome = Outcome(cluster, since=None if since is None else str(since))
    ends = pl.col("first_ts").min(), pl.col("last_ts").max()
    by_status = here("bronze.source_file").group_by("status").agg(pl.len(), *ends).sort("status").collect()
    outcome.files = dict(by_status.select("status", "len").rows())
    first, last = by_status.select(pl.col("first_ts").min(), pl.col("last_ts").max()).row(0)
    outcome.first_ts, outcome.last_ts = (
        None if ts is None else str(_plain(ts.replace(tzinfo=None))) for ts in (first, last)
    )
    outcome.quarantined = _count(here("bronze.quarantine"))
    decided = here("gold.judgement").group_by("decision", "judgement").agg(pl.col("decisions").sum())
    for table, word, decisions in decided.sort("decision", "judgement").collect().rows():
        outcome.judgements.setdefault(table, {})[word] = decisions
    findings = of_last_day(here("gold.finding"), "finding_id").drop("cluster", "day")
    outcome.findings = _listed(findings.sort(place_among("severity", WORST_FIRST), "from_ts", "kind", "finding_id"))
    covered = coverage(warehouse, cluster, since)
    outcome.coverage, outcome.helps = [_covered(each) for each in covered], most_helpful(covered)
    outcome.verdict, outcome.level = verdict(outcome.findings, covered), level(outcome.findings, covered)
    results = here("gold.validation_result")
    outcome.expectations = _count(results)
    failed = results.filter(~pl.col("passed")).with_columns(pl.col("day").cast(pl.String))
    outcome.failed_expectations = _listed(failed.sort("day", "table_name", "expectation", "arguments"))
    return outcome


def _covered(each: Coverage) -> dict[str, object]:
    return {
        "decision": each.decision,
        "name": each.name,
        "state": each.state,
        "judged": each.judged,
        "differing": each.differing,
        "undetermined": each.undetermined,
        "lacks": each.lacks,
        "findings": list(each.findings),
    }


def _count(rows: pl.LazyFrame) -> int:
    return int(rows.select(pl.len()).collect().item())


def _listed(rows: pl.LazyFrame) -> list[dict[str, object]]:
    return [{k: _plain(v) for k, v in row.items()} for row in plain_rows(rows.collect())]


def kept_outcome(path: str, state: str) -> Outcome | None:
    """Return the stored outcome (lake/remembered.py) if no table has changed since."""
    try:
        return Outcome(**read_kept(path, state))
    except TypeError:  # nothing is stored, or another version stored it
        return None


def _plain(value: object) -> object:
    """Return what JSON can hold; an item of evidence has the columns of its key alone."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items() if each is not None}
    return value.isoformat(timespec="milliseconds") + "Z" if hasattr(value, "isoformat") else value
