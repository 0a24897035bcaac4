"""Rows of evidence by what came of them: 132 that were sent to a slave, 20 that ended in a timeout."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from mqreplay.decode.kind import Phrase
from mqreplay.language.language import Language
from mqreplay.report.evidence_words import Wording, alternatives, columns_in, joined

# The outcome of a row. Rows with equal outcomes form one group, at any place and time.
OUTCOME = frozenset(
    {
        *("judgement", "reason", "error", "response_code", "response_name", "remark", "code", "kind", "cause", "step"),
        *("actual_broker_id", "expected_broker_id", "recorded_suggest", "expected_suggest", "status", "send_status"),
        *("change", "flow_control", "strategy", "part"),
    }
)
NUMBER = re.compile(r"\d[\d.,:]*\d|\d")  # also an address, or a time
PACKAGE = re.compile(r"\b(?:[a-z]\w*\.)+(?=[A-Z])")  # of a Java class
ALIKE = 72  # characters in which the texts of a group agree


@dataclass(frozen=True)
class EvidenceGroup:
    """Rows of one table with the same outcome: how many, from when to when (UTC), and how many begin too early.

    ``text`` is "" for a table without an outcome. ``early`` rows have an instant before the begin of the finding.
    ``is_near``: the finding names a place, and the rows are those around its time.
    """

    table_name: str
    text: str
    count: int
    first_ts: dt.datetime | None
    last_ts: dt.datetime | None
    early: int = 0
    is_near: bool = False


def groups_of(
    table: str,
    wording: Wording,
    rows: pl.DataFrame,
    begin: dt.datetime,
    words: Language | None = None,
    *,
    is_near: bool,
) -> list[EvidenceGroup]:
    """Return the rows of a finding that begins at ``begin``, grouped.

    Texts that begin alike but for their numbers are one group.
    """
    columns = sorted({name for phrase in _phrases(wording) for name in _columns(phrase)} & set(rows.columns))
    ts = pl.col(wording.instant) if wording.instant else pl.lit(None, pl.Datetime("us", "UTC"))
    numbers = [
        pl.len().alias("_count"),
        ts.min().alias("_first"),
        ts.max().alias("_last"),
        (ts < begin).sum().alias("_early"),
    ]
    counted = rows.group_by(columns).agg(numbers) if columns else rows.select(numbers)
    made: dict[str, EvidenceGroup] = {}
    for row in counted.sort("_first", *columns, nulls_last=True).iter_rows(named=True):
        text = outcome(wording, row, words)
        key = alike(text)
        one = EvidenceGroup(table, text, row["_count"], row["_first"], row["_last"], row["_early"] or 0, is_near)
        made[key] = one if key not in made else _merged(made[key], one, key)
    return list(made.values())


def alike(text: str) -> str:
    """Return what the texts of a group have in common: without numbers and packages of Java."""
    return NUMBER.sub("…", PACKAGE.sub("", text))[:ALIKE]


def outcome(wording: Wording, row: Mapping[str, Any], words: Language | None = None) -> str:
    """Return what came of a row, without its place and time; "" for a table that has no outcome.

    >>> wording = Wording("ts", ("pull of {topic}", "{judgement}: {reason}"))
    >>> outcome(wording, {"topic": "T", "judgement": "differ", "reason": "refused"})
    'differ: refused'
    """
    return joined(_phrases(wording), row, words)


def _phrases(wording: Wording) -> list[Phrase]:
    """Return the phrases of OUTCOME's columns alone."""
    return [phrase for phrase in wording.phrases if _columns(phrase) <= OUTCOME]


def _columns(phrase: Phrase) -> set[str]:
    return {name for text in alternatives(phrase) for name in columns_in(text)}


def _merged(one: EvidenceGroup, other: EvidenceGroup, key: str) -> EvidenceGroup:
    firsts = [ts for ts in (one.first_ts, other.first_ts) if ts is not None]
    lasts = [ts for ts in (one.last_ts, other.last_ts) if ts is not None]
    return replace(
        one,
        text=one.text if one.text == other.text else key if len(key) < ALIKE else f"{key}...",
        count=one.count + other.count,
        first_ts=min(firsts, default=None),
        last_ts=max(lasts, default=None),
        early=one.early + other.early,
    )
