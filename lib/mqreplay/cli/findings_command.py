"""`mqreplay findings`: the findings of a warehouse, filtered, as text, JSON or CSV."""

from __future__ import annotations

import argparse
import datetime as dt
from typing import TYPE_CHECKING, Any

from mqreplay.cli.arguments import add_conf, add_warehouse, with_examples
from mqreplay.errors import InputError

if TYPE_CHECKING:
    import polars as pl

SEVERITIES = ("info", "warning", "critical")
DESCRIPTION = (
    "List the findings of a warehouse, the most severe first. `mqreplay explain ID` shows the evidence of one."
)
EXAMPLES = with_examples(
    "mqreplay findings --warehouse warehouse/night",
    "mqreplay findings --warehouse warehouse/night --severity critical",
    "mqreplay findings --warehouse warehouse/night --group pay-group --since 2026-11-21T02:00 --until 2026-11-21T03:00",
    "mqreplay findings --warehouse warehouse/night --kind broker_down --kind failover_pull --format csv",
)
FILTERS = {"kind": "kind", "group": "consumer_group", "topic": "topic", "broker": "broker_name", "cluster": "cluster"}


def add(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_warehouse(command)
    add_conf(command)
    command.add_argument("--severity", choices=SEVERITIES, help="only findings of this severity or a higher one")
    for name in FILTERS:
        command.add_argument(
            f"--{name}", action="append", default=[], metavar="NAME", help=f"only of this {name}; repeatable"
        )
    command.add_argument(
        "--since", metavar="TIME", help="only what ended at or after this instant, in UTC: 2026-11-21T02:30"
    )
    command.add_argument("--until", metavar="TIME", help="only what began before this instant, in UTC")
    command.add_argument("--json", action="store_true", help="print one JSON object")
    command.add_argument(
        "--format", choices=("text", "csv"), default="text", help="how findings are printed (%(default)s)"
    )


def run(args: argparse.Namespace) -> None:
    """Print the findings."""
    from mqreplay.lake.existing import require_warehouse

    require_warehouse(args.warehouse)
    since, until = instant(args.since, "--since"), instant(args.until, "--until")
    from mqreplay.cli.terminal import note_interruption, print_findings, print_rows
    from mqreplay.printable import json_text

    note_interruption(args.warehouse)
    names = {column: getattr(args, name) for name, column in FILTERS.items()}
    frame = findings(args.warehouse, names, args.severity, since, until)
    if args.json:
        print(json_text({"findings": frame.to_dicts()}, indent=1, default=_plain))
    elif args.format == "csv":
        print_rows(frame.columns, frame.rows(), "csv")
    else:
        print_findings(frame.to_dicts())


def findings(
    root: str,
    names: dict[str, list[str]],
    severity: str | None,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
) -> pl.DataFrame:
    """Return the rows of gold.finding with one of the values of ``names`` in each of its columns; no value: all rows.

    The most severe come first, then the earliest.
    """
    import polars as pl

    from mqreplay.lake.warehouse import Warehouse

    rows = Warehouse(root).read("gold.finding")
    for column, wanted in names.items():
        rows = rows.filter(pl.col(column).is_in(wanted)) if wanted else rows
    rank = pl.col("severity").replace_strict(dict(zip(SEVERITIES, range(3), strict=True)), default=0)
    rows = rows.filter(rank >= SEVERITIES.index(severity)) if severity else rows
    rows = rows.filter(pl.coalesce("to_ts", "from_ts") >= since) if since else rows
    rows = rows.filter(pl.col("from_ts") < until) if until else rows
    return rows.sort(-rank, "from_ts", "cluster", "finding_id").collect()


def instant(text: str | None, option: str) -> dt.datetime | None:
    """Return the instant of an ISO 8601 text, in UTC without a zone. Raises InputError."""
    if text is None:
        return None
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{option} {text!r} is no instant; write it as 2026-11-21T02:30 or 2026-11-21") from None
    return found.replace(tzinfo=dt.UTC) if found.tzinfo is None else found.astimezone(dt.UTC)


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
