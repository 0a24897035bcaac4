"""Findings with thresholds and severities of some consumer groups' own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

import polars as pl

from mqreplay.findings.every import all_findings
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.limits import Limits

STUCK_S = "stuck_s"


@dataclass(frozen=True)
class GroupLimits:
    """What holds for the groups that a pattern of a shell (``*``, ``?``, ``[...]``) matches.

    ``limits`` are fields of Limits, ``severities`` a severity by kind of finding.
    """

    pattern: str
    limits: Mapping[str, int] = field(hash=False)
    severities: Mapping[str, str] = field(hash=False)


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
    place = pl.col("consumer_group").replace_strict(of_group, default=None, return_dtype=pl.Int32)
    kept = every.filter(pl.col("_limits").eq_missing(place))
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
    """Return the evidence for these limits: standstills are those that last for stuck_s or longer."""
    if STUCK_S not in limits:
        return evidence
    is_long = pl.col("to_ts") - pl.col("from_ts") >= pl.duration(seconds=limits[STUCK_S])
    spans = {name: getattr(evidence, name).filter(is_long) for name in ("standstills", "held_standstills")}
    return replace(evidence, **spans)
