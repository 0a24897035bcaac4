"""The findings of a judged day by the limits of each group, and known issues of RocketMQ that can explain them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Final

import polars as pl

from mqreplay.evidence.recorded_versions import RecordedVersions
from mqreplay.findings.every import all_findings, finish
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.known_issues import issues_of_findings, known_issues
from mqreplay.findings.limits import Limits
from mqreplay.findings.registry import KINDS
from mqreplay.replay.day import Day
from mqreplay.settings import Settings
from mqreplay.settings.sections import GROUP_SEVERITIES
from mqreplay.words.errors import SettingsError

STUCK_S: Final = "stuck_s"


@dataclass(frozen=True)
class DayFindings:
    """``findings`` and ``known_issues`` have the columns of gold.finding and gold.known_issue without cluster."""

    findings: pl.DataFrame
    known_issues: pl.DataFrame


def day_findings(
    evidence: FindingEvidence, versions: RecordedVersions, day: Day, settings: Settings, before: pl.DataFrame | None
) -> DayFindings:
    """Return the findings of a day. ``before``: gold.finding of the day before; None on the first day, or unknown."""
    limits = _limits(settings)
    begun = findings_by_group(evidence, limits, group_limits(settings))
    findings = finish(begun, day.begin, day.end, before, limits.lost_s)
    return DayFindings(findings, issues_of_findings(findings, versions, known_issues()))


def _limits(settings: Settings) -> Limits:
    named = {f.name: getattr(settings.findings, f.name) for f in fields(Limits) if f.name != "reset_reach_s"}
    return Limits(reset_reach_s=settings.replay.reset_reach_s, **named)


@dataclass(frozen=True)
class GroupLimits:
    """What holds for the groups that a pattern of a shell (``*``, ``?``, ``[...]``) matches.

    ``limits`` are fields of Limits, ``severities`` a severity by kind of finding.
    """

    pattern: str
    limits: Mapping[str, int] = field(hash=False)
    severities: Mapping[str, str] = field(hash=False)


def group_limits(settings: Settings) -> list[GroupLimits]:
    """Return what [findings.groups] sets, in its order.

    Raises SettingsError for an unknown kind, and for a shorter stuck_s than the general one: shorter standstills are
    not looked for.
    """
    found = []
    for pattern, keys in settings.findings.groups.items():
        where = f'{settings.source[-1]}: [findings.groups."{pattern}"]' if settings.source else f"group {pattern}"
        severities = dict(keys.get(GROUP_SEVERITIES, {}))
        for kind in severities:
            if kind not in KINDS:
                near = get_close_matches(kind, KINDS, 1)
                raise SettingsError(f"{where} has no kind {kind}{f'; did you mean {near[0]}?' if near else ''}")
        limits = {name: value for name, value in keys.items() if name != GROUP_SEVERITIES}
        least = settings.findings.stuck_s
        if limits.get(STUCK_S, least) < least:
            raise SettingsError(f"{where} {STUCK_S} must be at least {least}, that of [findings]; lower that one, too")
        found.append(GroupLimits(pattern, limits, severities))
    return found


def findings_by_group(evidence: FindingEvidence, limits: Limits, groups: Sequence[GroupLimits]) -> pl.DataFrame:
    """Return all_findings(), with the limits and severities of the first pattern that matches a finding's group.

    Findings without a group keep the general ones.
    """
    found = all_findings(evidence, limits)
    if not groups:
        return found
    parts = [found]
    for number, own in enumerate(groups):
        if own.limits:
            rows = all_findings(_evidence(evidence, own.limits), replace(limits, **own.limits))
            parts.append(rows.with_columns(pl.lit(number).alias("_limits")))
        else:
            parts.append(found.with_columns(pl.lit(number).alias("_limits")))
    parts[0] = found.with_columns(pl.lit(None, pl.Int32).alias("_limits"))
    every = pl.concat(parts, how="vertical_relaxed")
    names = every["consumer_group"].drop_nulls().unique().to_list()
    of_group = {name: place for name in names if (place := _first(name, groups)) is not None}
    wanted = pl.col("consumer_group").replace_strict(of_group, default=None, return_dtype=pl.Int32)
    kept = every.filter(pl.col("_limits").eq_missing(wanted))
    severities = [
        ((pl.col("_limits") == number) & (pl.col("kind") == kind), severity)
        for number, own in enumerate(groups)
        for kind, severity in own.severities.items()
    ]
    return kept.with_columns(_severity(severities)).drop("_limits")


def _first(name: str, groups: Sequence[GroupLimits]) -> int | None:
    return next((number for number, own in enumerate(groups) if fnmatchcase(name, own.pattern)), None)


def _severity(cases: Iterable[tuple[pl.Expr, str]]) -> pl.Expr:
    severity = pl.col("severity")
    for condition, word in cases:
        severity = pl.when(condition).then(pl.lit(word)).otherwise(severity)
    return severity.alias("severity")


def _evidence(evidence: FindingEvidence, limits: Mapping[str, int]) -> FindingEvidence:
    """Return the evidence for these limits: members held a queue that did not advance for stuck_s or longer."""
    if STUCK_S not in limits:
        return evidence
    is_long = pl.col("held_ms") >= limits[STUCK_S] * 1000
    return replace(evidence, held_standstills=evidence.held_standstills.filter(is_long))
