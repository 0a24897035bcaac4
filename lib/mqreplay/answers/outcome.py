"""The outcome of a run for its caller: findings, judgements, expectations, quarantine. Read from the tables only."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

import polars as pl

from mqreplay.answers.alert import instant
from mqreplay.answers.mutes import Mute, marked
from mqreplay.answers.page_path import page_path
from mqreplay.lake.result_cache import last_kept, read_kept
from mqreplay.lake.row_filter import of_last_day, plain_rows
from mqreplay.lake.warehouse import Warehouse
from mqreplay.report.collect import place_among
from mqreplay.report.coverage import Coverage, coverage, most_helpful
from mqreplay.report.text import dates
from mqreplay.report.verdict import NightTime, level, limits, verdict
from mqreplay.report.window import Window
from mqreplay.words.severity import WORST_FIRST

if TYPE_CHECKING:
    from mqreplay.night.reported import Night


NIGHT_FIELDS: Final = ("cluster", "level", "verdict", "limits", "night_from", "night_to")


@dataclass
class Outcome:
    """The outcome of one cluster.

    Findings and failed expectations are rows of their tables, worst first; ``report`` is a path.
    ``verdict``, ``level`` and ``limits``, which says what the recording cannot show, are those of report/verdict.py,
    ``coverage`` and ``helps`` those of report/coverage.py. All are about the night of the run, ``night_from`` to
    ``night_to``; ``others`` are findings of other nights since ``since``, the first day of the page; None: of all. The
    recording is from ``first_ts`` to ``last_ts``. Instants are text.
    """

    cluster: str
    findings: list[dict[str, object]] = field(default_factory=list)
    others: list[dict[str, object]] = field(default_factory=list)
    night_from: str | None = None
    night_to: str | None = None
    judgements: dict[str, dict[str, int]] = field(default_factory=dict)
    expectations: int = 0
    failed_expectations: list[dict[str, object]] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)
    quarantined: int = 0
    report: str | None = None
    verdict: str = "Nothing could be judged."
    level: str = "unknown"
    coverage: list[dict[str, object]] = field(default_factory=list)
    helps: list[tuple[str, list[str]]] = field(default_factory=list)
    first_ts: str | None = None
    last_ts: str | None = None
    since: str | None = None
    limits: str = ""

    def as_dict(self) -> dict[str, object]:
        """Return the outcome as plain values."""
        return asdict(self)

    @property
    def dates(self) -> str:
        """Return the days of the night: "2026-11-20 – 2026-11-21"; empty without a recorded time."""
        return dates(*(instant(each) for each in (self.night_from, self.night_to)))

    @property
    def older(self) -> list[dict[str, object]]:
        """Return the findings of nights before this one."""
        return [each for each in self.others if str(each["from_ts"] or "") < (self.night_from or "")]

    def reaches(self, severity: str | None) -> bool:
        """Return whether a finding of the night that is not muted has at least this severity."""
        if severity is None:
            return False
        asked = [f for f in self.findings if f.get("muted_until_ts") is None]
        return any(WORST_FIRST.index(str(f["severity"])) <= WORST_FIRST.index(severity) for f in asked)


def outcome_of(
    warehouse: Warehouse,
    cluster: str,
    since: dt.date | None = None,
    night: Night | None = None,
    mutes: Sequence[Mute] = (),
) -> Outcome:
    """Read the outcome of a night, and other findings since ``since``; of all days if it is None.

    Without a ``night``, all these days are the night. ``mutes`` are those that hold. Instants are ISO 8601 in UTC.
    """
    outcome = Outcome(cluster, since=None if since is None else str(since))
    files = Window(warehouse, cluster, since).read("bronze.source_file")
    ends = files.select(pl.col("first_ts").min(), pl.col("last_ts").max()).collect().row(0)
    outcome.first_ts, outcome.last_ts = map(_text, ends)
    until = None
    first_day = since
    if night is not None:
        outcome.night_from, outcome.night_to = _text(night.first), _text(night.last)
        first_day, until = night.first.date(), night.until
        since = None if since is None else min(since, first_day)
    here = Window(warehouse, cluster, first_day, until).read
    by_status = here("bronze.source_file").group_by("status").len().sort("status").collect()
    outcome.files = dict(by_status.rows())
    outcome.quarantined = _count(here("bronze.quarantine"))
    decided = here("gold.judgement").group_by("decision", "judgement").agg(pl.col("decisions").sum())
    for table, word, decisions in decided.sort("decision", "judgement").collect().rows():
        outcome.judgements.setdefault(table, {})[word] = decisions
    every = of_last_day(Window(warehouse, cluster, since).read("gold.finding"), "finding_id").drop("cluster", "day")
    findings = every.sort(place_among("severity", WORST_FIRST), "from_ts", "kind", "finding_id").collect()
    times = findings.select("finding_id", "from_ts", "to_ts").iter_rows()
    for row, each in zip(marked(list(plain_rows(findings)), mutes), times, strict=True):
        is_here = night is None or night.has(*each)
        (outcome.findings if is_here else outcome.others).append(_plain_row(row))
    covered = coverage(warehouse, cluster, first_day, until)
    outcome.coverage, outcome.helps = [_covered(each) for each in covered], most_helpful(covered)
    recorded = NightTime(night.first, night.last) if night is not None else NightTime(*ends)
    outcome.verdict, outcome.limits = verdict(outcome.findings, covered, recorded), limits(covered)
    outcome.level = level(outcome.findings, covered)
    results = here("gold.validation_result")
    outcome.expectations = _count(results)
    failed = results.filter(~pl.col("passed")).with_columns(pl.col("day").cast(pl.String))
    broken = failed.sort("day", "table_name", "expectation", "arguments").collect()
    outcome.failed_expectations = [*map(_plain_row, plain_rows(broken))]
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


def _plain_row(row: Mapping[str, object]) -> dict[str, object]:
    return {name: _plain(value) for name, value in row.items()}


def _text(ts: dt.datetime | None) -> str | None:
    return None if ts is None else str(_plain(ts))


def kept_outcome(path: str, state: str) -> Outcome | None:
    """Return the stored outcome (lake/result_cache.py) if no table has changed since."""
    try:
        return Outcome(**read_kept(path, state))
    except TypeError:  # nothing is stored, or another version stored it
        return None


def last_nights(root: str, clusters: Iterable[str]) -> list[dict[str, object]]:
    """Return how the last night of each cluster was, as its page and the terminal say it: NIGHT_FIELDS."""
    stored = [last_kept(page_path(root, cluster, "json")) for cluster in sorted(clusters)]
    return [{name: night.get(name) for name in NIGHT_FIELDS} for night in stored if isinstance(night, dict)]


def _plain(value: object) -> object:
    """Return what JSON can hold; an item of evidence has the columns of its key alone."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items() if each is not None}
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    return value.isoformat() if isinstance(value, dt.date) else value
