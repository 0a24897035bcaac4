"""The instant that a user names, and what of a cluster is known up to it."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from mqreplay.lake.files import is_remote, joined
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.words.errors import InputError
from mqreplay.words.time_span import ONE_DAY

_TIME: Final = re.compile(r"\d{1,2}:\d{2}(:\d{2}([.,]\d{1,6})?)?")
EXAMPLE: Final = "02:51:30 or 2026-11-21T02:51:30"
WATCH: Final = "watch"  # the folder of a warehouse with the tables of the last minutes, by `nightly --watch`


@dataclass(frozen=True)
class Recorded:
    """A cluster of a warehouse, and from when to when it was recorded (UTC)."""

    warehouse: Warehouse
    cluster: str
    first: dt.datetime
    last: dt.datetime

    def instant(self, text: str, option: str) -> dt.datetime:
        """Return the instant of ``text``; a time without a day is the last one within the recording.

        Raises InputError if the text is no instant, or the recording does not hold it.
        """
        text = str(text)  # notebooks have instants of Python, too
        found = time_of_day(text, self.last) or _with_day(text, option)
        if not self.first <= found <= self.last:
            span = f"from {self.first:%Y-%m-%d %H:%M:%S} to {self.last:%Y-%m-%d %H:%M:%S} UTC"
            raise InputError(f"{option} {text!r} is outside of the recording of {self.cluster}, which goes {span}")
        return found

    def span(self, since: str, until: str, since_option: str, until_option: str) -> tuple[dt.datetime, dt.datetime]:
        """Return two instants in order. Raises InputError."""
        first, last = self.instant(since, since_option), self.instant(until, until_option)
        if last < first:
            raise InputError(f"{until_option} {until!r} is before {since!r}; give the earlier instant first")
        return first, last

    def before(self, name: str, ts: str, at: dt.datetime, reach: dt.timedelta | None = None) -> pl.LazyFrame:
        """Return the cluster's rows of a table whose ``ts`` is not after ``at``, and within ``reach`` before it."""
        first = dt.date.min if reach is None else (at - reach).date()
        by_day = self.warehouse.contracts[name].has_day_column
        days = RowFilter(self.cluster, between=(first, at.date()), undated=True)
        known = self.warehouse.read(name, days if by_day else RowFilter(self.cluster)).filter(pl.col(ts) <= at)
        return known if reach is None else known.filter(pl.col(ts) >= at - reach)

    def between(self, name: str, ts: str, since: dt.datetime, until: dt.datetime) -> pl.LazyFrame:
        """Return the cluster's rows of a table whose ``ts`` is after ``since`` and not after ``until``."""
        rows = self.warehouse.read(name, RowFilter(self.cluster, between=(since.date(), until.date())))
        return rows.filter((pl.col(ts) > since) & (pl.col(ts) <= until))

    def begun(self, name: str, at: dt.datetime) -> pl.LazyFrame:
        """Return the rows of a table of spans (from_ts, to_ts) that began on the day of ``at`` and not after it.

        Rows of spans are cut at midnight.
        """
        rows = self.warehouse.read(name, RowFilter(self.cluster, days=frozenset({at.date()})))
        return rows.filter(pl.col("from_ts") <= at)

    def judged_days(self) -> list[dt.date]:
        """Return the days that have been judged."""
        counted = self.warehouse.read("gold.judgement", RowFilter(self.cluster)).select("day").unique()
        return counted.sort("day").collect()["day"].to_list()


def time_of_day(text: str, last: dt.datetime) -> dt.datetime | None:
    """Return the last instant not after ``last`` that has a time of day, such as 2:50 or 02:50:31.

    None for other texts. Raises InputError for a time that no day has.
    """
    text = text.strip()
    if not _TIME.fullmatch(text):
        return None
    try:
        time = dt.time.fromisoformat(text.zfill(len(text) + (text.index(":") == 1)).replace(",", "."))
    except ValueError:
        raise InputError(f"{text!r} is no time of day; write it as {EXAMPLE}") from None
    found = dt.datetime.combine(last.date(), time, dt.UTC)
    return found if found <= last else found - ONE_DAY


def _with_day(text: str, option: str) -> dt.datetime:
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{option} {text!r} is no instant; write it as {EXAMPLE}, in UTC") from None
    return found.replace(tzinfo=dt.UTC) if found.tzinfo is None else found.astimezone(dt.UTC)


def recorded(warehouse: Warehouse, cluster: str | None) -> Recorded:
    """Return the cluster of a warehouse, and its recorded time. Raises InputError if it is not known which one."""
    files = warehouse.read("bronze.source_file").filter(pl.col("first_ts").is_not_null())
    spans = files.group_by("cluster").agg(pl.col("first_ts").min(), pl.col("last_ts").max()).sort("cluster").collect()
    names = spans["cluster"].to_list()
    if not names:
        raise InputError(f"the warehouse {warehouse.root} has no recorded time; run `mqreplay nightly` first")
    if cluster is None and len(names) > 1:
        raise InputError(f"the warehouse has several clusters; give --cluster: {_listed(names)}")
    if cluster is not None and cluster not in names:
        raise InputError(f"the warehouse has no cluster {cluster}; it has {_listed(names)}")
    name, first, last = spans.filter(pl.col("cluster") == (cluster or names[0])).row(0)
    return Recorded(warehouse, name, first, last)


def last_window(warehouse: Warehouse) -> Warehouse | None:
    """Return the tables of the last minutes that `nightly --watch` has judged; None if it does not run."""
    root = joined(warehouse.root, WATCH)
    return Warehouse(root) if not is_remote(root) and Path(root).is_dir() else None


def recorded_around(
    warehouse: Warehouse, cluster: str | None, text: str | None, option: str
) -> tuple[Recorded, dt.datetime]:
    """Return the instant of ``text`` and the recording that has it: that of the nights, or of the last minutes.

    A time without a day is the last one of both. Without ``text``: the last recorded instant. Raises InputError as
    `recorded` and `Recorded.instant` do.
    """
    recordings: list[Recorded] = []
    for tables in filter(None, (warehouse, last_window(warehouse))):
        with suppress(InputError):
            recordings.append(recorded(tables, cluster))
    held: list[tuple[Recorded, dt.datetime]] = []
    for each in recordings:
        with suppress(InputError):
            held.append((each, each.last if text is None else each.instant(text, option)))
    if held:
        return max(held, key=lambda one: one[1])
    night = recordings[0] if recordings else recorded(warehouse, cluster)  # raises why there is none
    return night, night.instant(str(text), option)  # raises why it has no such time


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
