"""ReportData -> one HTML page. Pure: no clock, no file but its templates, no network; every value is escaped."""

from __future__ import annotations

import datetime as dt
import functools
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from mqreplay import __version__
from mqreplay.report.data import CAP, SEVERITIES, ReportData, Row
from mqreplay.report.text import counted, lasting, number, span, visible
from mqreplay.report.timeline import timeline

DECISIONS = {
    "gold.allocation": "rebalances",
    "gold.pull_route": "pulls",
    "gold.slave_suggestion": "slave suggestions",
}
PLACES = (
    ("consumer_group", "group"),
    ("topic", "topic"),
    ("broker_name", "broker"),
    ("broker_id", "broker id"),
    ("queue_id", "queue"),
    ("client_id", "client"),
)


def build_report(data: ReportData) -> str:
    """The page of one cluster, self-contained."""
    findings = sorted(data.findings, key=lambda f: (SEVERITIES.index(f["severity"]), str(f["from_ts"] or "")))
    counts = {s: sum(f["severity"] == s for f in findings) for s in SEVERITIES}
    failed = [e for e in data.expectations if not e["passed"]]
    context: dict[str, Any] = {
        "data": data,
        "findings": findings,
        "counts": counts,
        "headline": headline(counts),
        "day": one_day(data),
        "recorded": span(data.first_ts, data.last_ts),
        "lasted": lasting(data.first_ts, data.last_ts),
        "judged": judged(data.judgements),
        "failed": failed,
        "held": [e for e in data.expectations if e["passed"]],
        "timeline": timeline(findings[:CAP], data.first_ts, data.last_ts),
        "sections": sections(data, len(failed)),
    }
    page = _environment().get_template("report.html").render(context)
    return page.encode("utf-8", "replace").decode("utf-8")


def headline(counts: dict[str, int]) -> str:
    """What went wrong last night, in a line.

    >>> headline({"critical": 0, "warning": 0, "info": 0})
    'A quiet night'
    >>> headline({"critical": 1, "warning": 2, "info": 0})
    '1 critical finding, 2 warnings'
    """
    said = [(counts["critical"], "critical finding"), (counts["warning"], "warning")]
    wrong = ", ".join(counted(count, words) for count, words in said if count)
    return wrong or ("Nothing went wrong; some things to know" if counts["info"] else "A quiet night")


def judged(judgements: list[Row]) -> dict[str, dict[str, int]]:
    """Decisions of each table by judgement."""
    tables: dict[str, dict[str, int]] = {}
    for row in judgements:
        counts = tables.setdefault(row["table_name"], {"agree": 0, "differ": 0, "undetermined": 0})
        counts[row["judgement"]] += row["decisions"]
    return tables


def sections(data: ReportData, failed: int) -> list[tuple[str, str, str]]:
    """The page's sections in order: name, title, and what leads there. A template bears each name."""
    files = sum(f["files"] for f in data.files)
    return [
        ("findings", "What an operator must know", counted(len(data.findings), "finding")),
        ("decisions", "Decisions judged", "decisions judged"),
        ("offsets", "Offsets that did not simply move forwards", counted(data.breaks.total, "offset break")),
        ("gaps", "What could not be judged", counted(data.gaps.total, "gap")),
        ("quarantine", "Quarantine", f"{number(data.quarantine.total)} in quarantine"),
        ("expectations", "Expectations", f"{counted(failed, 'expectation')} failed" if failed else "expectations"),
        ("files", "Files", counted(files, "file")),
    ]


def one_day(data: ReportData) -> dt.date | None:
    """The day of the recording, if it is of one day: then tables need not repeat it."""
    if data.first_ts is None or data.last_ts is None or data.first_ts.date() != data.last_ts.date():
        return None
    return data.first_ts.date()


def _span_of(row: Row, known_day: dt.date | None = None) -> str:
    return span(row["from_ts"], row["to_ts"], known_day)


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("mqreplay.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "counted": counted, "span_of": _span_of}
    environment.globals |= {
        "version": __version__,
        "cap": CAP,
        "severities": SEVERITIES,
        "decisions": DECISIONS,
        "places": PLACES,
    }
    return environment
