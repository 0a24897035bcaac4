"""The nights of a warehouse, and the one that the pictures show: its rows and its findings."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.language.language import Language, in_english
from mqreplay.report.data import Row
from mqreplay.words.severity import WORST_FIRST

if TYPE_CHECKING:
    from mqreplay.moment.night_states import NightStates

PAUSE = dt.timedelta(hours=2)  # a longer time without a record separates two nights
LONGEST = dt.timedelta(hours=24)  # a longer recording is cut into windows of this length, from its end
MOST_NIGHTS = 7


@dataclass(frozen=True)
class NightSpan:
    """A time range of the recording, in UTC."""

    first: dt.datetime
    last: dt.datetime

    @property
    def seconds(self) -> float:
        """Length of the night, at least a second."""
        return max((self.last - self.first).total_seconds(), 1.0)

    @property
    def name(self) -> str:
        """Return the day on which the night ends."""
        return f"{self.last:%Y-%m-%d}"


@dataclass(frozen=True)
class PictureData:
    """Rows, findings and states of one cluster in one night, and the language of the pictures' texts."""

    warehouse: Warehouse
    cluster: str
    night: NightSpan
    findings: list[Row]
    words: Language = field(default_factory=in_english)
    states: NightStates | None = None

    @classmethod
    def of_night(
        cls,
        warehouse: Warehouse,
        cluster: str,
        night: NightSpan,
        findings: Iterable[Row],
        words: Language | None = None,
        states: NightStates | None = None,
    ) -> PictureData:
        """Keep the findings that touch the night, the worst first."""
        here = [f for f in findings if touches(f, night)]
        here.sort(key=lambda f: (WORST_FIRST.index(f["severity"]), f["from_ts"] or night.first, f["finding_id"]))
        return cls(warehouse, cluster, night, here, words or in_english(), states)

    def rows(self, table: str, ts: str) -> pl.LazyFrame:
        """Return the table's rows whose ``ts`` lies in the night."""
        days = (self.night.first.date(), self.night.last.date())
        rows = self.warehouse.read(table, RowFilter(self.cluster, between=days))
        return rows.filter(pl.col(ts).is_between(self.night.first, self.night.last))

    def spans(self, table: str) -> pl.LazyFrame:
        """Return the table's rows from ``from_ts`` to ``to_ts`` that lie in the night, at least in part."""
        days = (self.night.first.date(), self.night.last.date())
        rows = self.warehouse.read(table, RowFilter(self.cluster, between=days))
        return rows.filter(pl.col("from_ts") <= self.night.last, pl.col("to_ts") >= self.night.first)

    def findings_of(self, kinds: Iterable[str] | None = None, **place: Any) -> list[Row]:
        """Return the findings of these kinds at this place; a finding without a part of the place fits any."""
        wanted = None if kinds is None else frozenset(kinds)
        return [
            f
            for f in self.findings
            if (wanted is None or f["kind"] in wanted) and all(f[k] is None or f[k] == v for k, v in place.items())
        ]

    def bucket(self, ts: str, buckets: int) -> pl.Expr:
        """Return the number of the time slot, from 0 to ``buckets`` - 1, in which ``ts`` lies."""
        since = (pl.col(ts) - self.night.first).dt.total_microseconds()
        return (since * buckets // (self.night.seconds * 1_000_001)).cast(pl.Int32).clip(0, buckets - 1)

    def bucket_start(self, bucket: float, buckets: int) -> dt.datetime:
        """Return when a time slot begins."""
        return self.night.first + dt.timedelta(seconds=self.night.seconds * bucket / buckets)


def touches(finding: Row, night: NightSpan) -> bool:
    """Return whether the finding is in the night, at least in part. A finding without times is."""
    begin, end = finding["from_ts"] or finding["to_ts"], finding["to_ts"] or finding["from_ts"]
    return begin is None or (begin <= night.last and end >= night.first)


def recorded_nights(warehouse: Warehouse, cluster: str) -> list[NightSpan]:
    """Return the last nights of the recording, the earliest first."""
    files = warehouse.read("bronze.source_file", RowFilter(cluster))
    spans = (
        files.filter(pl.col("first_ts").is_not_null(), pl.col("last_ts").is_not_null())
        .select("first_ts", "last_ts")
        .sort("last_ts", descending=True)
        .collect()
    )
    return split_nights(spans.iter_rows())


def split_nights(spans: Iterable[tuple[dt.datetime, dt.datetime]]) -> list[NightSpan]:
    """Join spans, ordered by falling end, that are close together; cut what is too long.

    >>> at = dt.datetime(2026, 11, 21, 2)
    >>> night = dt.timedelta(hours=3)
    >>> day = dt.timedelta(days=1)
    >>> [n.name for n in split_nights([(at + day, at + day + night), (at, at + night)])]
    ['2026-11-21', '2026-11-22']
    >>> [n.seconds / 3600 for n in split_nights([(at, at + day + night)])]
    [3.0, 24.0]
    """
    joined: list[tuple[dt.datetime, dt.datetime]] = []
    for first, last in spans:
        if joined and last >= joined[-1][0] - PAUSE:
            joined[-1] = (min(first, joined[-1][0]), joined[-1][1])
        elif len(joined) == MOST_NIGHTS:
            break
        else:
            joined.append((first, last))
    nights: list[NightSpan] = []
    for first, end in joined:
        last = end
        while len(nights) < MOST_NIGHTS and last - first > LONGEST:
            nights.append(NightSpan(last - LONGEST, last))
            last -= LONGEST
        if len(nights) < MOST_NIGHTS:
            nights.append(NightSpan(first, last))
    return nights[::-1]
