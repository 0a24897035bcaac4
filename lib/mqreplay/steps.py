"""What is done already: a step of a day is done again only when its files, the settings or mqreplay itself changed."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from pyspark.sql import Row
from pyspark.sql import functions as F

from mqreplay import __version__
from mqreplay.lake.remembered import Question, Remembered
from mqreplay.lake.sql import among, quoted
from mqreplay.lake.warehouse import Warehouse

TABLE = "bronze.step"
DAY = dt.timedelta(days=1)
# Kinds whose instants are the recorder's, not those of a client.
BY_RECORDER = ("consumer_offset", "topics", "subscription_groups", "broker_runtime", "topic_stats", "cluster_info")
DIGEST_CHARS = 32  # of a file's SHA-256, which its rows carry (ingest/manifest.py)


@dataclass(frozen=True)
class Span:
    """What files of one kind speak of that speak of the same days. Instants are UTC; None: they speak of every day."""

    recording: str
    kind: str
    digest: str
    first_ts: dt.datetime | None
    last_ts: dt.datetime | None


def spans(cluster: str, lookback_minutes: int, tables: Mapping[str, tuple[str, str]]) -> Question:
    """Of the cluster's files that gave rows or were refused: rows of Span's fields, few however many files there are.

    Files of a span speak of the same days, and of the same for the ``lookback_minutes`` after it. A file of many days
    speaks of those alone of which it has rows: ``tables`` maps its kind to the table of its rows and their instant.
    """

    def read(warehouse: Warehouse) -> list[tuple[Any, ...]]:
        if not warehouse.exists("bronze.source_file"):
            return []
        files = warehouse.read("bronze.source_file").where(F.col("cluster") == cluster)
        apart = F.date_diff(F.to_date("last_ts"), F.to_date("first_ts")) > 1
        long = F.coalesce(apart & F.col("kind").isin(*tables), F.lit(False))
        told = files.where(F.col("status").isin("read", "refused"))
        of_days = told.where(long).select("recording", "kind", "sha256").collect()
        told = told.where(~long)
        reached = F.col("last_ts") + F.make_dt_interval(mins=F.lit(lookback_minutes))
        days = [F.to_date(ts).alias(f"day_{i}") for i, ts in enumerate((F.col("first_ts"), F.col("last_ts"), reached))]
        # In any order, and as numbers: a list of all digests would lie in one task's memory.
        same = [F.bit_xor(F.xxhash64(*of)) for of in (("path", "sha256"), ("sha256", "path"))]
        digest = F.format_string("%d %016x%016x", F.count(F.lit(1)), *same)
        grouped = told.groupBy("recording", "kind", *days)
        bounds = F.min("first_ts").alias("first_ts"), F.max("last_ts").alias("last_ts")
        made = grouped.agg(digest.alias("digest"), *bounds)
        together = made.select(*[f.name for f in fields(Span)]).collect()
        return [*map(tuple, together), *_by_their_rows(warehouse, of_days, tables)]

    return Question(f"spans of {cluster} by {lookback_minutes}", read)


def _by_their_rows(
    warehouse: Warehouse, files: list[Row], tables: Mapping[str, tuple[str, str]]
) -> list[tuple[Any, ...]]:
    """As Span's fields, each stretch of days of which a file has rows; days between are none of its."""
    made: list[tuple[Any, ...]] = []
    for kind in {file.kind for file in files}:
        (name, ts), of_kind = tables[kind], [file for file in files if file.kind == kind]
        known = F.col("source_digest").isin(*[file.sha256[:DIGEST_CHARS] for file in of_kind])
        rows = warehouse.read(name).where(known).groupBy("source_digest", F.to_date(ts).alias("day"))
        days = defaultdict(list)
        for day in rows.agg(F.min(ts).alias("first_ts"), F.max(ts).alias("last_ts")).collect():
            days[day.source_digest].append((day.first_ts, day.last_ts))
        for file in of_kind:
            stretches = _stretches(days[file.sha256[:DIGEST_CHARS]])
            made += [(file.recording, kind, file.sha256, first, last) for first, last in stretches]
    return made


def _stretches(told: Iterable[tuple[dt.datetime, dt.datetime]]) -> list[tuple[dt.datetime, dt.datetime]]:
    """From when to when something is told without a day between of which nothing is; in order."""
    made: list[tuple[dt.datetime, dt.datetime]] = []
    for first, last in sorted(told):
        if made and first.date() <= made[-1][1].date() + DAY:
            first, last = made[-1][0], max(made.pop()[1], last)
        made.append((first, last))
    return made


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
    began = {recording: first.date() for recording, first, _ in reversed(_recordings(listed))}
    for span in listed:
        if span.first_ts is not None and span.last_ts is not None:
            spoken_of = _days(span.first_ts, span.last_ts + lookback)
        else:
            spoken_of = (day for day in by_day if day >= began.get(span.recording, dt.date.min))
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

    def not_among(self, step: str, scopes: Iterable[str]) -> list[str]:
        """The scopes that the step was done on, and that are none of these."""
        return sorted({scope for done, scope in self._done if done == step} - set(scopes))

    def forget(self, scopes: Iterable[str] | None = None) -> None:
        """Remove the notes on these scopes, of every step; on all, if none are given."""
        wanted = {scope for _, scope in self._done} if scopes is None else set(scopes)
        where = f"cluster = {quoted(self.cluster)} AND {among('scope', sorted(wanted))}"
        self.warehouse.replace(TABLE, self.warehouse.frame(TABLE, []), where)
        self._done = {key: digest for key, digest in self._done.items() if key[1] not in wanted}

    def any_done(self, step: str, scopes: Iterable[str]) -> bool:
        """Whether the step was ever done on one of these scopes."""
        return any((step, scope) in self._done for scope in scopes)

    def done(self, step: str, wanted: dict[str, str]) -> None:
        """Notes that the step is done on these digests."""
        rows = [(self.cluster, step, scope, digest) for scope, digest in sorted(wanted.items())]
        where = f"cluster = {quoted(self.cluster)} AND step = {quoted(step)} AND {among('scope', sorted(wanted))}"
        none = not self.any_done(step, wanted)
        self.warehouse.put(TABLE, rows, where, nothing_there=none)
        self._done |= {(step, scope): digest for scope, digest in wanted.items()}


def steps(cluster: str) -> Question:
    """Step, scope and inputs_digest of the cluster's rows of bronze.step."""

    def read(warehouse: Warehouse) -> list[Row]:
        if not warehouse.exists(TABLE):
            return []
        noted = warehouse.read(TABLE).where(F.col("cluster") == cluster)
        return noted.select("step", "scope", "inputs_digest").collect()

    return Question(f"steps of {cluster}", read)


def empty_clusters() -> Question:
    """The clusters that steps were done on and that no file is of any more."""

    def read(warehouse: Warehouse) -> list[Row]:
        if not warehouse.exists(TABLE):
            return []
        noted, files = warehouse.read(TABLE), warehouse.read("bronze.source_file")
        return noted.select("cluster").distinct().join(files, "cluster", "left_anti").collect()

    return Question("clusters without files", read)


def gapless_starts(found: list[Span], apart_s: int = 60) -> list[dt.datetime]:
    """The instants from which a recording tells all, after a gap: what a client remembers from earlier is unseen.

    Recordings less than ``apart_s`` seconds apart are one.
    """
    starts: list[dt.datetime] = []
    reached: dt.datetime | None = None
    for first, last in sorted((first, last) for _, first, last in _recordings(found)):
        if reached is None or first - reached > dt.timedelta(seconds=apart_s):
            starts.append(first)
        reached = last if reached is None else max(reached, last)
    return starts


def sure_starts(found: list[Span], behind: dt.timedelta) -> dict[dt.datetime, dt.datetime]:
    """Each of gapless_starts, and from when on the recording surely told all.

    A client whose clock is ``behind`` may have called the recording's first hour an earlier one. What the recorder
    asked for itself has its own instants, and by then it told.
    """
    made = {start: start + behind for start in gapless_starts(found)}
    for span in found:
        if span.kind in BY_RECORDER and span.first_ts is not None:
            start = max(start for start in made if start <= span.first_ts)
            made[start] = min(made[start], span.first_ts)
    return made


def recorded_until(found: list[Span]) -> dt.datetime | None:
    """Until when the recorder told by its own clock; None if it did not."""
    last = [span.last_ts for span in found if span.kind in BY_RECORDER and span.last_ts is not None]
    return max(last).replace(tzinfo=dt.UTC) if last else None


def reach_of(found: list[Span], day: dt.date) -> tuple[dt.datetime, dt.datetime]:
    """From when to when the recordings tell that speak of the day, which one at least does."""
    spoken = [(first, last) for _, first, last in _recordings(found) if first.date() <= day <= last.date()]
    first, last = min(first for first, _ in spoken), max(last for _, last in spoken)
    return first.replace(tzinfo=dt.UTC), last.replace(tzinfo=dt.UTC)  # PySpark gives them without their zone


def _recordings(found: Iterable[Span]) -> list[tuple[str, dt.datetime, dt.datetime]]:
    """Each recording's stretches, in order: its name, and the first and the last instant of each."""
    bounds: dict[str, list[tuple[dt.datetime, dt.datetime]]] = defaultdict(list)
    for span in found:
        if span.first_ts is not None and span.last_ts is not None:
            bounds[span.recording].append((span.first_ts, span.last_ts))
    return [(recording, *stretch) for recording, told in bounds.items() for stretch in _stretches(told)]
