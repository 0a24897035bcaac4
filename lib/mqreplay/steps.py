"""What is done already: a step of a day is done again only when its files, the settings or mqreplay itself changed."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields

from pyspark.sql import Row
from pyspark.sql import functions as F

from mqreplay import __version__
from mqreplay.lake.remembered import Question, Remembered
from mqreplay.lake.sql import among, quoted
from mqreplay.lake.warehouse import Warehouse

DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Span:
    """What files of one kind speak of that speak of the same days. Instants are UTC; None: they speak of every day."""

    recording: str
    kind: str
    digest: str
    first_ts: dt.datetime | None
    last_ts: dt.datetime | None


def spans(cluster: str, lookback_minutes: int) -> Question:
    """Of the cluster's files that gave rows or were refused: rows of Span's fields, few however many files there are.

    Files of a span speak of the same days, and of the same for the ``lookback_minutes`` after it.
    """

    def read(warehouse: Warehouse) -> list[Row]:
        if not warehouse.exists("bronze.source_file"):
            return []
        files = warehouse.read("bronze.source_file").where(F.col("cluster") == cluster)
        told = files.where(F.col("status").isin("read", "refused"))
        reached = F.col("last_ts") + F.make_dt_interval(mins=F.lit(lookback_minutes))
        days = [F.to_date(ts).alias(f"day_{i}") for i, ts in enumerate((F.col("first_ts"), F.col("last_ts"), reached))]
        # In any order, and as numbers: a list of all digests would lie in one task's memory.
        same = [F.bit_xor(F.xxhash64(*of)) for of in (("path", "sha256"), ("sha256", "path"))]
        digest = F.format_string("%d %016x%016x", F.count(F.lit(1)), *same)
        grouped = told.groupBy("recording", "kind", *days)
        bounds = F.min("first_ts").alias("first_ts"), F.max("last_ts").alias("last_ts")
        made = grouped.agg(digest.alias("digest"), *bounds)
        return made.select(*[f.name for f in fields(Span)]).collect()

    return Question(f"spans of {cluster} by {lookback_minutes}", read)


def days_of(found: Iterable[Span]) -> list[dt.date]:
    """Every day that the files speak of, in order."""
    days: set[dt.date] = set()
    for span in found:
        if span.first_ts is not None and span.last_ts is not None:
            days.update(_days(span.first_ts, span.last_ts))
    return sorted(days)


def _days(first: dt.datetime, last: dt.datetime) -> Iterable[dt.date]:
    day = first.date()
    while day <= last.date():
        yield day
        day += DAY


def digests(found: list[Span], settings_digest: str, lookback_minutes: int) -> dict[dt.date, str]:
    """For each day the digest of what its replay rests on: its files, those of the lookback before, the settings.

    A file without instants, as brokers.json, speaks of the days from its recording's first on.
    """
    made = {}
    for day, spoken in _by_day(found, dt.timedelta(minutes=lookback_minutes)).items():
        files = sorted(f"{span.recording}|{span.kind}|{span.digest}" for span in spoken)
        text = "\n".join([__version__, settings_digest, *files])
        made[day] = hashlib.sha256(text.encode()).hexdigest()[:32]
    return made


def kinds_of(found: Iterable[Span], day: dt.date) -> set[str]:
    """The kinds of the files that speak of the day."""
    return {span.kind for span in _by_day(found, dt.timedelta())[day]}


def _by_day(found: Iterable[Span], lookback: dt.timedelta) -> dict[dt.date, list[Span]]:
    """The files that speak of each day, or of the ``lookback`` before it."""
    listed = list(found)
    by_day: dict[dt.date, list[Span]] = {day: [] for day in days_of(listed)}
    bounds = _recordings(listed)
    for span in listed:
        if span.first_ts is not None and span.last_ts is not None:
            spoken_of = _days(span.first_ts, span.last_ts + lookback)
        else:
            since = bounds[span.recording][0].date() if span.recording in bounds else dt.date.min
            spoken_of = (day for day in by_day if day >= since)
        for day in set(spoken_of) & by_day.keys():
            by_day[day].append(span)
    return by_day


class Steps:
    """bronze.step of one cluster: asks what a step was last done on, and notes what it is done on now."""

    def __init__(self, warehouse: Warehouse, cluster: str) -> None:
        """Reads what is noted."""
        self.warehouse, self.cluster = warehouse, cluster
        rows = Remembered(warehouse).rows(steps(cluster))
        self._done = {(step, scope): digest for step, scope, digest in rows}

    def todo(self, step: str, wanted: dict[str, str]) -> list[str]:
        """The scopes whose digest is not the one that the step was last done on."""
        return sorted(scope for scope, digest in wanted.items() if self._done.get((step, scope)) != digest)

    def any_done(self, step: str, scopes: Iterable[str]) -> bool:
        """Whether the step was ever done on one of these scopes."""
        return any((step, scope) in self._done for scope in scopes)

    def done(self, step: str, wanted: dict[str, str]) -> None:
        """Notes that the step is done on these digests."""
        rows = [(self.cluster, step, scope, digest) for scope, digest in sorted(wanted.items())]
        where = f"cluster = {quoted(self.cluster)} AND step = {quoted(step)} AND {among('scope', sorted(wanted))}"
        none = not self.any_done(step, wanted)
        self.warehouse.put("bronze.step", rows, where, nothing_there=none)
        self._done |= {(step, scope): digest for scope, digest in wanted.items()}


def steps(cluster: str) -> Question:
    """Step, scope and inputs_digest of the cluster's rows of bronze.step."""

    def read(warehouse: Warehouse) -> list[Row]:
        if not warehouse.exists("bronze.step"):
            return []
        noted = warehouse.read("bronze.step").where(F.col("cluster") == cluster)
        return noted.select("step", "scope", "inputs_digest").collect()

    return Question(f"steps of {cluster}", read)


def gapless_starts(found: list[Span], apart_s: int = 60) -> list[dt.datetime]:
    """The instants from which a recording tells all, after a gap: what a client remembers from earlier is unseen.

    Recordings less than ``apart_s`` seconds apart are one.
    """
    starts: list[dt.datetime] = []
    reached: dt.datetime | None = None
    for first, last in sorted(_recordings(found).values()):
        if reached is None or first - reached > dt.timedelta(seconds=apart_s):
            starts.append(first)
        reached = last if reached is None else max(reached, last)
    return starts


def reach_of(found: list[Span], day: dt.date) -> tuple[dt.datetime, dt.datetime]:
    """From when to when the recordings tell that speak of the day, which one at least does."""
    spoken = [(first, last) for first, last in _recordings(found).values() if first.date() <= day <= last.date()]
    first, last = min(first for first, _ in spoken), max(last for _, last in spoken)
    return first.replace(tzinfo=dt.UTC), last.replace(tzinfo=dt.UTC)  # PySpark gives them without their zone


def _recordings(found: Iterable[Span]) -> dict[str, tuple[dt.datetime, dt.datetime]]:
    """Of each recording that has any, the first and the last instant."""
    bounds: dict[str, list[dt.datetime]] = defaultdict(list)
    for span in found:
        if span.first_ts is not None and span.last_ts is not None:
            bounds[span.recording] += [span.first_ts, span.last_ts]
    return {recording: (min(instants), max(instants)) for recording, instants in bounds.items()}
