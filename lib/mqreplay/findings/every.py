"""All findings of one day of one cluster."""

from __future__ import annotations

import datetime as dt

import polars as pl

from mqreplay.findings.causes import with_causes, with_renamed_causes
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.going_on import going_on
from mqreplay.findings.limits import Limits
from mqreplay.findings.packages import find_of_packages
from mqreplay.findings.registry import KINDS, SHIPPED
from mqreplay.findings.shape import HIDDEN, SCHEMA, that_reach, with_stated_offsets

__all__ = ["KINDS", "all_findings", "finish"]


def all_findings(evidence: FindingEvidence, limits: Limits) -> pl.DataFrame:
    """Return the findings of all kinds, without their causes."""
    kinds = SHIPPED.values()
    functions = dict.fromkeys(kind.find for kind in kinds if kind.find is not None)
    found = with_stated_offsets(pl.concat([find(evidence, limits) for find in functions]), evidence.stated_groups)
    in_findings = dict.fromkeys(kind.find_in_findings for kind in kinds if kind.find_in_findings is not None)
    found = pl.concat([found, *(find(evidence, limits, found) for find in in_findings)])
    packages = [kind for name, kind in KINDS.items() if name not in SHIPPED]
    return pl.concat([found, *find_of_packages(packages, evidence, limits, found)])


def finish(
    begun: pl.DataFrame, begin: dt.datetime, end: dt.datetime, before: pl.DataFrame | None, lost_s: int
) -> pl.DataFrame:
    """Return gold.finding's rows of the day from ``begin`` to ``end``, of the findings of `all_findings`.

    ``before`` has gold.finding's rows of the day before; None on the first day of the cluster.
    """
    of_day = begun.filter(pl.col("from_ts") < end)
    if before is not None:
        named = going_on(of_day.with_columns(pl.col("finding_id").alias("begun_id")), before)
        of_day = with_renamed_causes(named, "begun_id")
    found = that_reach(with_causes(of_day, KINDS.values()), begin, lost_s)
    last = ("follows_from", "evidence", "evidence_count")
    names = [name for name in SCHEMA if name not in (*HIDDEN, *last)]
    return found.select(pl.lit(begin.date()).alias("day"), *names, *last)
