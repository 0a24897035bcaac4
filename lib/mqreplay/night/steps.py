"""Which steps are done: a step of a day runs again only if its files, the settings or mqreplay itself changed."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from mqreplay import __version__
from mqreplay.decode.kinds import KINDS
from mqreplay.ingest.manifest import DIGEST_CHARS
from mqreplay.ingest.recording import RECORDER_KINDS
from mqreplay.lake.result_cache import CachedQuery, ResultCache
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.words.time_span import ONE_DAY

STEP_TABLE = "bronze.step"
BITS = 128  # of the digest of a span
TABLES_OF_KINDS = {stem: (kind.table, kind.time) for stem, kind in KINDS.items()}  # and the instant of their rows


@dataclass(frozen=True)
class Span:
    """The files of one kind that cover the same days. Instants are UTC; None: they cover every day."""

    recording: str
    kind: str
    digest: str
    first_ts: dt.datetime | None
    last_ts: dt.datetime | None


def spans(cluster: str, lookback_minutes: int, tables: Mapping[str, tuple[str, str]]) -> CachedQuery:
    """Return the query for the spans of the cluster's files that gave rows or were refused: rows of Span's fields.

    Files of a span cover the same days, also with ``lookback_minutes`` added. There are few spans, even if there are
    many files. A file of many days covers only the days of its rows: ``tables`` maps its kind to
    the table of its rows and their instant.
    """

    def read(warehouse: Warehouse) -> list[tuple[Any, ...]]:
        wanted = RowFilter(cluster, wanted=pl.col("status").is_in(["read", "refused"]))
        files = warehouse.read("bronze.source_file", wanted)
        first, last = (pl.col(ts).dt.date() for ts in ("first_ts", "last_ts"))
        is_long = ((last - first > ONE_DAY) & pl.col("kind").is_in(list(tables))).fill_null(False)
        of_days = files.filter(is_long).select("recording", "kind", "sha256").collect()
        together = _together(files.filter(~is_long), lookback_minutes)
        return [*map(_in_utc, [*together, *_by_their_rows(warehouse, cluster, of_days, tables)])]

    return CachedQuery(f"spans of {cluster} by {lookback_minutes}", read)


def _in_utc(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Use the same zone object for instants as ResultCache: digests depend on the text of a span."""
    return tuple(value.replace(tzinfo=dt.UTC) if isinstance(value, dt.datetime) else value for value in row)


def _together(files: pl.LazyFrame, lookback_minutes: int) -> list[tuple[Any, ...]]:
    """Return, as Span's fields, the files of each recording and kind that cover the same days."""
    reached = pl.col("last_ts") + dt.timedelta(minutes=lookback_minutes)
    days = [ts.dt.date().alias(f"day_{i}") for i, ts in enumerate((pl.col("first_ts"), pl.col("last_ts"), reached))]
    key = ["recording", "kind", *(f"day_{i}" for i in range(len(days)))]
    made: dict[tuple[Any, ...], _Group] = defaultdict(_Group)
    asked = files.select("recording", "kind", *days, "first_ts", "last_ts", "path", "sha256")
    for batch in asked.collect_batches():  # not all paths of a million files are in memory at once
        ends = pl.col("first_ts").min(), pl.col("last_ts").max()
        for row in batch.group_by(key).agg(*ends, "path", "sha256").iter_rows():
            made[row[: len(key)]].add(*row[len(key) :])
    return [(*of[:2], group.digest(), group.first, group.last) for of, group in made.items()]


class _Group:
    """Files of one span: their number, their first and last instant, and the sum of their digests, in any order."""

    def __init__(self) -> None:
        self.first: dt.datetime | None = None
        self.last: dt.datetime | None = None
        self._files = self._sum = 0

    def add(
        self, first: dt.datetime | None, last: dt.datetime | None, paths: Sequence[str], digests: Sequence[str]
    ) -> None:
        """Add files, with their first and last instant."""
        self.first = min(filter(None, (self.first, first)), default=None)
        self.last = max(filter(None, (self.last, last)), default=None)
        self._files += len(paths)
        for path, digest in zip(paths, digests, strict=True):
            pair = hashlib.sha256(f"{digest} {path}".encode()).digest()
            self._sum += int.from_bytes(pair[: BITS // 8], "big")

    def digest(self) -> str:
        """Return the digest of all (path, SHA-256) pairs."""
        return f"{self._files} {self._sum % 2**BITS:0{BITS // 4}x}"


def _by_their_rows(
    warehouse: Warehouse, cluster: str, files: pl.DataFrame, tables: Mapping[str, tuple[str, str]]
) -> list[tuple[Any, ...]]:
    """Return, as Span's fields, each run of days for which a file has rows. Days without rows are in none."""
    made: list[tuple[Any, ...]] = []
    for (kind,), of_kind in files.group_by("kind", maintain_order=True):
        name, ts = tables[kind]
        known = frozenset(of_kind["sha256"].str.head(DIGEST_CHARS))
        rows = warehouse.read(name, RowFilter(cluster, digests=known))
        by_day = rows.group_by("source_digest", pl.col(ts).dt.date().alias("day"))
        ends = by_day.agg(pl.col(ts).min().alias("first"), pl.col(ts).max().alias("last"))
        found = ends.select("source_digest", "first", "last").collect(engine="streaming")
        days = defaultdict(list)
        for digest, first, last in found.iter_rows():
            days[digest].append((first, last))
        for recording, sha256 in of_kind.select("recording", "sha256").iter_rows():
            made += [(recording, kind, sha256, *span) for span in _gapless_spans(days[sha256[:DIGEST_CHARS]])]
    return made


def _gapless_spans(found: Iterable[tuple[dt.datetime, dt.datetime]]) -> list[tuple[dt.datetime, dt.datetime]]:
    """Return the first and last instant of each run of consecutive days with rows, in order."""
    made: list[tuple[dt.datetime, dt.datetime]] = []
    for first, last in sorted(found):
        if made and first.date() <= made[-1][1].date() + ONE_DAY:
            first, last = made[-1][0], max(made.pop()[1], last)
        made.append((first, last))
    return made


def days_of(found: Iterable[Span]) -> list[dt.date]:
    """Return each day that the files cover, in order."""
    days: set[dt.date] = set()
    for span in found:
        if span.first_ts is not None and span.last_ts is not None:
            days.update(_days(span.first_ts, span.last_ts))
    return sorted(days)


def _days(first: dt.datetime, last: dt.datetime) -> Iterable[dt.date]:
    day = first.date()
    while day <= last.date():
        yield day
        day += ONE_DAY


def digests(found: list[Span], settings_digest: str, lookback_minutes: int) -> dict[dt.date, str]:
    """Return for each day the digest of the inputs of its replay: its files, those of the lookback, the settings.

    A file without instants, such as brokers.json, covers all days since the first one of its recording.
    """
    made = {}
    for day, spoken in _by_day(found, dt.timedelta(minutes=lookback_minutes)).items():
        files = sorted(f"{span.recording}|{span.kind}|{span.digest}" for span in spoken)
        text = "\n".join([__version__, settings_digest, *files])
        made[day] = hashlib.sha256(text.encode()).hexdigest()[:32]
    return made


def kinds_of(found: Iterable[Span], day: dt.date) -> set[str]:
    """Return the kinds of the files that cover the day."""
    return {span.kind for span in _by_day(found, dt.timedelta())[day]}


def _by_day(found: Iterable[Span], lookback: dt.timedelta) -> dict[dt.date, list[Span]]:
    """Return the files that cover each day, or the ``lookback`` before it."""
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
    """bronze.step of one cluster: the digest of the inputs of each step that is done."""

    def __init__(self, warehouse: Warehouse, cluster: str) -> None:
        """Read the rows of bronze.step."""
        self.warehouse, self.cluster = warehouse, cluster
        rows = ResultCache(warehouse).rows(steps(cluster))
        self._done = {(step, scope): digest for step, scope, digest in rows}

    def todo(self, step: str, wanted: dict[str, str]) -> list[str]:
        """Return the scopes whose digest differs from that of the step's last run."""
        return sorted(scope for scope, digest in wanted.items() if self._done.get((step, scope)) != digest)

    def not_among(self, step: str, scopes: Iterable[str]) -> list[str]:
        """Return the scopes for which the step was done and that are not among these."""
        return sorted({scope for done, scope in self._done if done == step} - set(scopes))

    def forget(self, scopes: Iterable[str] | None = None) -> None:
        """Remove the rows of these scopes for every step; of all scopes by default."""
        wanted = {scope for _, scope in self._done} if scopes is None else set(scopes)
        self.warehouse.replace_rows(
            STEP_TABLE, [], RowFilter(self.cluster, wanted=pl.col("scope").is_in(sorted(wanted)))
        )
        self._done = {key: digest for key, digest in self._done.items() if key[1] not in wanted}

    def again(self) -> None:
        """Let each step run again for each scope, and replace its rows."""
        for step in {step for step, _ in self._done}:
            self.done(step, {scope: "" for done, scope in self._done if done == step})

    def any_done(self, step: str, scopes: Iterable[str]) -> bool:
        """Return whether the step was ever done for one of these scopes."""
        return any((step, scope) in self._done for scope in scopes)

    def done(self, step: str, wanted: dict[str, str]) -> None:
        """Record that the step is done for these digests."""
        had = bool(self._done)
        self._done |= {(step, scope): digest for scope, digest in wanted.items()}
        # All rows of the cluster again: they are few, and stay in one file, whatever the number of nights.
        rows = [(self.cluster, *key, digest) for key, digest in sorted(self._done.items())]
        self.warehouse.replace_rows(STEP_TABLE, rows, RowFilter(self.cluster) if had else None)


def steps(cluster: str) -> CachedQuery:
    """Return the query for step, scope and inputs_digest of the cluster's rows of bronze.step."""

    def read(warehouse: Warehouse) -> list[tuple[Any, ...]]:
        noted = warehouse.read(STEP_TABLE, RowFilter(cluster))
        return noted.select("step", "scope", "inputs_digest").collect().rows()

    return CachedQuery(f"steps of {cluster}", read)


def empty_clusters() -> CachedQuery:
    """Return the query for the clusters that have steps but no files left."""

    def read(warehouse: Warehouse) -> list[tuple[Any, ...]]:
        noted, files = warehouse.read(STEP_TABLE), warehouse.read("bronze.source_file")
        return noted.select("cluster").unique().join(files, on="cluster", how="anti").sort("cluster").collect().rows()

    return CachedQuery("clusters without files", read)


def gapless_starts(found: list[Span], apart_s: int = 60) -> list[dt.datetime]:
    """Return the instants at which a recording starts after a gap: what clients remember from before is not recorded.

    Recordings with less than ``apart_s`` seconds between them count as one.
    """
    starts: list[dt.datetime] = []
    reached: dt.datetime | None = None
    for first, last in sorted((first, last) for _, first, last in _recordings(found)):
        if reached is None or first - reached > dt.timedelta(seconds=apart_s):
            starts.append(first)
        reached = last if reached is None else max(reached, last)
    return starts


def sure_starts(found: list[Span], behind: dt.timedelta) -> dict[dt.datetime, dt.datetime]:
    """Return each of gapless_starts, with the instant from which the recording is certainly complete.

    A client whose clock is ``behind`` may give the recording's first hour earlier times. Polls of the recorder have the
    recorder's own times, so the recording had started by then.
    """
    made = {start: start + behind for start in gapless_starts(found)}
    for span in found:
        if span.kind in RECORDER_KINDS and span.first_ts is not None:
            start = max(start for start in made if start <= span.first_ts)
            made[start] = min(made[start], span.first_ts)
    return made


def last_recorded(found: list[Span]) -> dt.datetime | None:
    """Return the last instant recorded: by the recorder's clock, or else by the clients'; None without one."""
    return recorded_until(found) or max((span.last_ts for span in found if span.last_ts is not None), default=None)


def recorded_until(found: list[Span]) -> dt.datetime | None:
    """Return the last instant by the recorder's own clock; None if there is none."""
    last = [span.last_ts for span in found if span.kind in RECORDER_KINDS and span.last_ts is not None]
    return max(last, default=None)


def reach_of(found: list[Span], day: dt.date) -> tuple[dt.datetime, dt.datetime]:
    """Return the first and last instant of the recordings that cover the day; there is at least one."""
    spoken = [(first, last) for _, first, last in _recordings(found) if first.date() <= day <= last.date()]
    return min(first for first, _ in spoken), max(last for _, last in spoken)


def _recordings(found: Iterable[Span]) -> list[tuple[str, dt.datetime, dt.datetime]]:
    """Return the time spans of each recording in order: its name, and the first and last instant of each span."""
    bounds: dict[str, list[tuple[dt.datetime, dt.datetime]]] = defaultdict(list)
    for span in found:
        if span.first_ts is not None and span.last_ts is not None:
            bounds[span.recording].append((span.first_ts, span.last_ts))
    return [(recording, *span) for recording, spans in bounds.items() for span in _gapless_spans(spans)]
