"""The findings of a judged day, and the known issues of RocketMQ that can explain them."""

from __future__ import annotations

from dataclasses import dataclass, fields

import polars as pl

from mqreplay.findings.every import finish
from mqreplay.findings.known_issues import issues_of_findings, known_issues
from mqreplay.findings.limits import Limits
from mqreplay.replay.day import Day
from mqreplay.replay.day_result import DayResult
from mqreplay.replay.group_limits import findings_by_group, group_limits
from mqreplay.settings import Settings


@dataclass(frozen=True)
class DayFindings:
    """``findings`` and ``known_issues`` have the columns of gold.finding and gold.known_issue without cluster."""

    findings: pl.DataFrame
    known_issues: pl.DataFrame


def day_findings(result: DayResult, day: Day, settings: Settings, before: pl.DataFrame | None) -> DayFindings:
    """Return the findings of a day. ``before``: gold.finding of the day before; None on the first day, or unknown."""
    limits = _limits(settings)
    found = findings_by_group(result.evidence, limits, group_limits(settings))
    finished = finish(found, day.begin, day.end, before, limits.lost_s)
    return DayFindings(finished, issues_of_findings(finished, result.versions, known_issues()))


def _limits(settings: Settings) -> Limits:
    named = {f.name: getattr(settings.findings, f.name) for f in fields(Limits) if f.name != "reset_reach_s"}
    return Limits(reset_reach_s=settings.replay.reset_reach_s, **named)
