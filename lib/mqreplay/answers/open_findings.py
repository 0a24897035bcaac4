"""The table gold.open_finding: what `nightly --watch` knows about findings, beside what nightly runs say of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import polars as pl

from mqreplay.evidence.intervals import utc
from mqreplay.findings.every import KINDS
from mqreplay.findings.opened import OpenFinding, places_agree
from mqreplay.findings.shape import PLACE
from mqreplay.lake.journal import Journal
from mqreplay.lake.lock import warehouse_lock
from mqreplay.lake.row_filter import RowFilter, of_last_day
from mqreplay.lake.table_files import polars_schema
from mqreplay.lake.warehouse import Warehouse
from mqreplay.settings import Settings

OPEN_FINDING_TABLE = "gold.open_finding"
WRITTEN_EVERY = dt.timedelta(minutes=5)  # last_seen_ts of open findings is written so often
CLOSED_KEPT = dt.timedelta(days=2)  # a closed finding is then in gold.finding
OPEN_FINDING_COLUMNS = [f.name for f in fields(OpenFinding)]
FINDING: Final = "gold.finding"
# What watch knows beside the columns of gold.finding; null for a finding that watch does not report.
OPEN: Final = ("open_since", "last_seen_ts", "undetermined_since")
WATCHED: Final = (*OPEN, "first_seen_ts", "closed_ts", "closed_reason")
ID: Final = ("cluster", "finding_id")
Row = Mapping[str, Any]
Key = tuple[str, str]  # ID


@dataclass(frozen=True)
class JudgedTime:
    """The time of a cluster that nightly runs have judged: these days, until the end of the recording."""

    days: frozenset[dt.date]
    until: dt.datetime

    def is_past(self, ts: dt.datetime, by: dt.timedelta) -> bool:
        """Return whether an instant has been judged, and the time ``by`` after it is recorded, too."""
        return ts.date() in self.days and ts + by <= self.until


@dataclass(frozen=True)
class NightlyState:
    """What nightly runs say of an open finding.

    ``finding``: their row of it, None without one. ``is_over``: it had ended in the recording, or they judged its time
    and do not have it.
    """

    finding: Row | None
    is_over: bool


def read_findings(warehouse: Warehouse, cluster: str) -> list[OpenFinding]:
    """Return the cluster's rows. Needs no lock."""
    rows = warehouse.read(OPEN_FINDING_TABLE, RowFilter(cluster)).select(OPEN_FINDING_COLUMNS).collect()
    return [OpenFinding(**row) for row in rows.iter_rows(named=True)]


def write_findings(warehouse: Warehouse, cluster: str, findings: Sequence[OpenFinding]) -> None:
    """Replace the cluster's rows, under the warehouse's lock. Raises WarehouseLocked if another run holds it."""
    with warehouse_lock(warehouse.root):
        Journal(warehouse).recover(lambda _: None)
        rows = [(cluster, *(getattr(one, name) for name in OPEN_FINDING_COLUMNS)) for one in findings]
        warehouse.replace_rows(
            OPEN_FINDING_TABLE, rows, RowFilter(cluster) if warehouse.exists(OPEN_FINDING_TABLE) else None
        )


def without_old(findings: Iterable[OpenFinding], now: dt.datetime) -> list[OpenFinding]:
    """Return the findings that are open, or were closed not long ago."""
    return [one for one in findings if one.closed_ts is None or one.closed_ts >= now - CLOSED_KEPT]


def seconds_until_closed(settings: Settings) -> dict[str, int]:
    """Return after how many seconds without evidence a finding closes, by kind, but for kinds that need the day."""
    made: dict[str, int] = {}
    for kind in KINDS.values():
        if kind.ends_after is not None:
            section, key = kind.ends_after.split(".")
            made[kind.name] = getattr(getattr(settings, section), key)
    return made


def watched_findings(warehouse: Warehouse, rows: RowFilter | None = None) -> pl.LazyFrame:
    """Return the rows of gold.open_finding, open or closed: gold.finding's columns, then WATCHED.

    ``day`` and ``follows_from`` are null: no nightly run has judged them. ``to_ts`` is the last evidence.
    """
    watched = warehouse.read(OPEN_FINDING_TABLE, rows).with_columns(
        pl.col("opened_ts").alias("from_ts"),
        pl.col("last_seen_ts").alias("to_ts"),
        pl.col("opened_ts").alias("open_since"),
    )
    names = set(watched.collect_schema().names())
    columns = polars_schema(warehouse.contracts[FINDING].arrow_schema)
    shaped = [(pl.col(name) if name in names else pl.lit(None)).cast(of).alias(name) for name, of in columns.items()]
    return watched.select(*shaped, *WATCHED)


def all_findings(warehouse: Warehouse, limits: Mapping[str, int]) -> pl.LazyFrame:
    """Return the findings of nightly runs and those that are open: gold.finding's columns, then OPEN.

    An event that spans midnight is one row. An open finding that nightly runs have (see `nightly_states`) is their row,
    with OPEN if it is not over. Without theirs, it is left out if it is over. ``limits`` are seconds by kind. Closed
    findings are left out: they are in gold.finding after the nightly run.
    """
    judged = of_last_day(warehouse.read(FINDING), *ID)
    is_open = watched_findings(warehouse).filter(pl.col("closed_ts").is_null()).collect()
    known = is_open.select(*ID, *OPEN)
    states = nightly_states(warehouse, is_open.to_dicts(), limits)
    still: dict[Key, Row] = {}
    alone = []
    for row in known.sort("last_seen_ts").iter_rows(named=True):
        key = (row["cluster"], row["finding_id"])
        state = states[key]
        if state.finding is None and not state.is_over:
            alone.append(key)
        elif state.finding is not None and not state.is_over:
            still[row["cluster"], state.finding["finding_id"]] = row
    as_judged = [{**row, "finding_id": finding_id} for (_, finding_id), row in still.items()]
    both = judged.join(pl.LazyFrame(as_judged, known.schema), on=ID, how="left")
    others = is_open.lazy().join(pl.LazyFrame(alone, is_open.select(ID).schema, orient="row"), on=ID, how="semi")
    return pl.concat([both, others.select(both.collect_schema().names())])


def nightly_states(warehouse: Warehouse, watched: Sequence[Row], limits: Mapping[str, int]) -> dict[Key, NightlyState]:
    """Return what nightly runs say of findings that watch has open.

    They have a finding if its id is the same, or its kind and time are, and no name of its place contradicts: the run
    may date its begin differently, or know more of its place. ``watched`` are rows of `watched_findings`.
    """
    if not watched:
        return {}
    clusters, kinds = {row["cluster"] for row in watched}, {row["kind"] for row in watched}
    begun = pl.col("from_ts") <= max(row["to_ts"] for row in watched)
    asked = pl.col("cluster").is_in(clusters) & pl.col("kind").is_in(kinds) & begun
    rows = of_last_day(warehouse.read(FINDING), *ID).filter(asked).select(*ID, "kind", *PLACE, "from_ts", "to_ts")
    judged = rows.collect().to_dicts()
    times = {cluster: _judged_time(warehouse, cluster) for cluster in clusters}
    return {
        (row["cluster"], row["finding_id"]): _state(
            row, judged, times[row["cluster"]], dt.timedelta(seconds=limits.get(row["kind"], 0))
        )
        for row in watched
    }


def watch_note(watch: Row, limit_s: int, now: dt.datetime) -> str:
    """Return why it is not known whether an open finding goes on, or "". ``watch`` has OPEN; ``limit_s`` is its kind's.

    Watch closes a finding ``limit_s`` seconds after its last evidence. It has stopped if it did not.
    """
    silent, last = watch["undetermined_since"], utc(watch["last_seen_ts"])
    if silent is not None:
        return f"Nothing is recorded since {silent:%Y-%m-%d %H:%M:%S} UTC: whether it goes on is not known."
    if now - last > 2 * WRITTEN_EVERY + dt.timedelta(seconds=limit_s):
        return "Watch has reported nothing since: whether it goes on is not known."
    return ""


def _judged_time(warehouse: Warehouse, cluster: str) -> JudgedTime | None:
    days = warehouse.read("gold.judgement", RowFilter(cluster)).select("day").unique().collect()["day"]
    until = warehouse.read("bronze.source_file", RowFilter(cluster)).select(pl.col("last_ts").max()).collect().item()
    return None if until is None else JudgedTime(frozenset(days), until)


def _state(one: Row, judged: Iterable[Row], time: JudgedTime | None, limit: dt.timedelta) -> NightlyState:
    of_id = [row for row in judged if all(row[name] == one[name] for name in ID)]
    same = of_id or [row for row in judged if _is_same(row, one)]
    if same:
        last = max(same, key=_end)
        ended_before = time is not None and time.until - _end(last) > limit
        return NightlyState(last, ended_before and time is not None and one["last_seen_ts"] <= time.until)
    # gold.open_finding may lack evidence of the last minutes.
    return NightlyState(None, time is not None and time.is_past(one["last_seen_ts"], limit + WRITTEN_EVERY))


def _is_same(row: Row, one: Row) -> bool:
    if (row["cluster"], row["kind"]) != (one["cluster"], one["kind"]):
        return False
    place, other = (tuple(each[name] for name in PLACE) for each in (row, one))
    meets = row["from_ts"] <= one["to_ts"] and _end(row) >= one["from_ts"]
    return meets and (place == other or places_agree(place, other))


def _end(row: Row) -> dt.datetime:
    end: dt.datetime = row["to_ts"] or row["from_ts"]
    return end
