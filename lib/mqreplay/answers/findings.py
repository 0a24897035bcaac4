"""The findings of a warehouse: filtered by names, severity and time and marked if muted, or named by an id."""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

import polars as pl

from mqreplay.answers.mutes import MARKS, marked, valid_mutes
from mqreplay.answers.open_findings import (
    FINDING,
    ID,
    WATCHED,
    all_findings,
    seconds_until_closed,
    watch_note,
    watched_findings,
)
from mqreplay.findings.every import KINDS
from mqreplay.lake.row_filter import RowFilter, of_last_day, plain_rows
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import time_of_day
from mqreplay.moment.names import BROKER_TABLES, GROUP_TABLES, TOPIC_TABLES, name_hint, names_in
from mqreplay.settings import Settings
from mqreplay.words.errors import InputError, InputErrors
from mqreplay.words.severity import SEVERITIES
from mqreplay.words.time_span import time_span

CLUSTERS: Final = ("bronze.source_file", "bronze.step", "gold.finding", "gold.open_finding")
TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "kind": (),
    "consumer_group": GROUP_TABLES,
    "topic": TOPIC_TABLES,
    "broker_name": BROKER_TABLES,
    "cluster": CLUSTERS,
}
WORDS: Final = {"consumer_group": "group", "broker_name": "broker"}
MOST_NAMED: Final = 10  # findings listed whose ids begin alike


def findings(
    root: str,
    names: dict[str, list[str]],
    severity: str | None,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    settings: Settings | None = None,
) -> pl.DataFrame:
    """Return the findings of nightly runs and those that are open: `open_findings.all_findings`, then mutes.MARKS.

    ``names`` has names or patterns by column; none: all. The most severe findings come first, then the earliest.
    Raises InputError for a name that the warehouse does not have, and if nothing was judged yet: then there are no
    findings for want of a run.
    """
    if severity is not None and severity not in SEVERITIES:
        raise InputError(f"severity {severity!r} is none of {', '.join(SEVERITIES)}")
    warehouse = Warehouse(root)
    every = rows = all_findings(warehouse, seconds_until_closed(settings or Settings()))
    for column, patterns in names.items():
        if patterns:
            rows = rows.filter(pl.col(column).is_in(matching_names(warehouse, every, column, patterns)))
    rank = pl.col("severity").replace_strict(dict(zip(SEVERITIES, range(3), strict=True)), default=0)
    rows = rows.filter(rank >= SEVERITIES.index(severity)) if severity else rows
    if since:  # an open one has not ended
        rows = rows.filter(pl.col("open_since").is_not_null() | (pl.coalesce("to_ts", "from_ts") >= since))
    rows = rows.filter(pl.col("from_ts") < until) if until else rows
    frame = rows.sort(-rank, "from_ts", "cluster", "finding_id").collect()
    if frame.is_empty() and not judged_days(warehouse) and every.limit(1).collect().is_empty():
        raise InputError(
            f"no day of {root} was judged yet: run `mqreplay nightly` on a recording, or wait for its end;"
            " `nightly --watch` alone keeps open findings, and there are none"
        )
    now = dt.datetime.now(dt.UTC)
    mutes = {cluster: valid_mutes(warehouse, cluster, now) for cluster in frame["cluster"].unique()}
    keys = frame.drop("evidence").to_dicts()
    marks = [tuple(marked([row], mutes[row["cluster"]])[0][name] for name in MARKS) for row in keys]
    types = (pl.Datetime("us", "UTC"), pl.String, pl.String)
    return pl.concat([frame, pl.DataFrame(marks, dict(zip(MARKS, types, strict=True)), orient="row")], how="horizontal")


def watch_notes(rows: Iterable[Mapping[str, Any]], now: dt.datetime, settings: Settings) -> dict[tuple[str, str], str]:
    """Return what watch knows of open findings, by cluster and finding_id."""
    limits = seconds_until_closed(settings)
    notes = {}
    for row in rows:
        if (last := row["last_seen_ts"]) is not None:
            texts = [f"Last evidence: {last:%Y-%m-%d %H:%M:%S} UTC.", watch_note(row, limits.get(row["kind"], 0), now)]
            notes[row["cluster"], row["finding_id"]] = " ".join(filter(None, texts))
    return notes


def last_recorded(warehouse: Warehouse, clusters: Collection[str] = ()) -> dt.datetime:
    """Return the last recorded instant of the clusters that match these patterns, or of all; now, if there is none."""
    files = warehouse.read("bronze.source_file").group_by("cluster").agg(pl.col("last_ts").max()).drop_nulls().collect()
    ends = [ts for name, ts in files.rows() if not clusters or any(_matches([name], each) for each in clusters)]
    return max(ends, default=dt.datetime.now(dt.UTC))


def instant(text: str | None, option: str, last: dt.datetime | None = None) -> dt.datetime | None:
    """Return the instant of an ISO 8601 text, in UTC without a zone. Raises InputError.

    A time without a day, such as 02:50, is the last one that is not after ``last``.
    """
    if text is None:
        return None
    text = str(text)  # notebooks have instants of Python, too
    if last is not None and (found := time_of_day(text, last)) is not None:
        return found
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{option} {text!r} is no instant; write it as 2026-11-21T02:30 or 2026-11-21") from None
    return found.replace(tzinfo=dt.UTC) if found.tzinfo is None else found.astimezone(dt.UTC)


def judged_days(warehouse: Warehouse) -> dict[str, frozenset[dt.date]]:
    """Return the days of each cluster that were judged."""
    replayed = warehouse.read("bronze.step").filter(pl.col("step") == "replay").select("cluster", "scope").collect()
    days: dict[str, set[dt.date]] = {}
    for cluster, scope in replayed.iter_rows():
        days.setdefault(cluster, set()).add(dt.date.fromisoformat(scope))
    return {cluster: frozenset(of_cluster) for cluster, of_cluster in days.items()}


def clusters_of(warehouse: Warehouse) -> set[str]:
    """Return the clusters of the warehouse."""
    return set().union(*(names_in(warehouse, table, "cluster") for table in CLUSTERS))


def matching_names(warehouse: Warehouse, findings: pl.LazyFrame, column: str, patterns: Iterable[str]) -> list[str]:
    """Return the names in a column of the findings that match one of the patterns.

    Raises InputError for a pattern that matches nothing that the warehouse has, so that a typing error is not answered
    by "No findings". Without anything to compare with, no name is refused.
    """
    shown = set(findings.select(pl.col(column).drop_nulls().unique()).collect()[column].to_list())
    chosen: set[str] = set()
    for pattern in patterns:
        found = _matches(shown, pattern)
        if not found:
            _require(warehouse, column, pattern, shown)
        chosen |= found
    return sorted(chosen)


def _matches(names: Collection[str], pattern: str) -> set[str]:
    return {name for name in names if name == pattern or fnmatchcase(name, pattern)}


def _require(warehouse: Warehouse, column: str, pattern: str, shown: set[str]) -> None:
    known = shown | (set(KINDS) if column == "kind" else set())
    for table in TABLES[column]:
        names = names_in(warehouse, table, column)
        if _matches(names, pattern):
            return
        known |= names
    if known and not _matches(known, pattern):
        raise InputError(f"there is no {WORDS.get(column, column)} {pattern}; {name_hint(pattern, known)}")


def named_finding(
    warehouse: Warehouse, beginning: str, cluster: str | None
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the row of gold.finding, or of gold.open_finding in its columns, and what watch knows of it.

    ``cluster``: None for all. Raises InputError if no id begins so, or several do.
    """
    rows = None if cluster is None else RowFilter(cluster)
    is_named = pl.col("finding_id").str.starts_with(beginning)
    judged = of_last_day(warehouse.read(FINDING, rows).filter(is_named), *ID)
    watched = watched_findings(warehouse, rows).filter(is_named)
    known = {tuple(row[name] for name in ID): row for row in plain_rows(watched.collect())}
    watches = {key: {name: row.pop(name) for name in WATCHED} for key, row in known.items()}
    known |= {tuple(row[name] for name in ID): row for row in plain_rows(judged.collect())}
    if not known:
        command = f"mqreplay findings --warehouse {shlex.quote(warehouse.root)}"
        raise InputError(f"no finding has an id that begins with {beginning}; `{command}` lists the findings")
    found = sorted(
        known.values(), key=lambda row: (row["from_ts"] or dt.datetime.min, row["cluster"], row["finding_id"])
    )
    if len(found) > 1:
        several = f"{len(found)} findings have ids that begin with {beginning}; give more of the id, or --cluster"
        more = [f"... and {len(found) - MOST_NAMED} more"] if len(found) > MOST_NAMED else []
        raise InputErrors([several, *map(_line, found[:MOST_NAMED]), *more])
    return found[0], watches.get(tuple(found[0][name] for name in ID))


def _line(finding: dict[str, Any]) -> str:
    when = time_span(finding["from_ts"], finding["to_ts"])
    return f"{finding['finding_id']}  {finding['cluster']}  {finding['kind']}  {when}"
