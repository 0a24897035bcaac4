"""ReportData -> one HTML page. Pure: no clock, no file, no network; every value is escaped."""

from __future__ import annotations

import datetime as dt
import functools

from jinja2 import Environment, PackageLoader, StrictUndefined

from mqreplay import __version__
from mqreplay.report.collect import CAP, ReportData
from mqreplay.report.timeline import timeline

SEVERITIES = ("critical", "warning", "info")


def build_report(data: ReportData) -> str:
    """The page of one cluster, self-contained."""
    findings = sorted(data.findings, key=lambda f: (SEVERITIES.index(str(f["severity"])), str(f["from_ts"])))
    counts = {s: sum(f["severity"] == s for f in findings) for s in SEVERITIES}
    judged: dict[str, dict[str, int]] = {}
    for row in data.judgements:
        table = judged.setdefault(str(row["table_name"]), {"agree": 0, "differ": 0, "undetermined": 0})
        table[str(row["judgement"])] += int(str(row["decisions"]))
    failed = [e for e in data.expectations if not e["passed"]]
    return (
        _environment()
        .get_template("report.html")
        .render(
            data=data,
            version=__version__,
            findings=findings,
            headline=headline(counts),
            counts=counts,
            judged=judged,
            failed=failed,
            held=len(data.expectations) - len(failed),
            timeline=timeline(findings, data.first_ts, data.last_ts),
            cap=CAP,
        )
    )


def headline(counts: dict[str, int]) -> str:
    """What went wrong last night, in a line.

    >>> headline({"critical": 0, "warning": 0, "info": 0})
    'A quiet night'
    >>> headline({"critical": 1, "warning": 2, "info": 0})
    '1 critical finding, 2 warnings'
    """
    words = {"critical": ("critical finding", "critical findings"), "warning": ("warning", "warnings")}
    said = [f"{counts[s]} {words[s][counts[s] > 1]}" for s in words if counts[s]]
    if said:
        return ", ".join(said)
    return "A quiet night" if not counts["info"] else "Nothing went wrong; some things to know"


@functools.cache
def _environment() -> Environment:
    env = Environment(
        loader=PackageLoader("mqreplay.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters["ts"] = _ts
    env.filters["num"] = _num
    return env


def _ts(value: object) -> str:
    if not isinstance(value, dt.datetime):
        return "–" if value is None else str(value)
    return value.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _num(value: object) -> str:
    return "–" if value is None else f"{value:,}"
