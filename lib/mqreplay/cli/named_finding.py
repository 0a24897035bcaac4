"""The finding that a user names by the beginning of its id."""

from __future__ import annotations

import datetime as dt
import shlex
from typing import Any, Final

import polars as pl

from mqreplay.cli.time_span import time_span
from mqreplay.errors import InputError, InputErrors
from mqreplay.lake.last_day import of_last_day
from mqreplay.lake.plain_rows import plain_rows
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.watched_findings import FINDING, ID, WATCHED, watched_findings

MOST_NAMED: Final = 10  # findings listed whose ids begin alike


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
