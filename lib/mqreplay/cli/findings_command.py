"""`mqreplay findings`: the findings of a warehouse, filtered, as text or in a format of other programs."""

from __future__ import annotations

import argparse
import datetime as dt
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mqreplay.cli.arguments import add_conf, add_lang, add_warehouse, with_examples
from mqreplay.errors import InputError
from mqreplay.language.language import language
from mqreplay.severity import SEVERITIES

if TYPE_CHECKING:
    import polars as pl

    from mqreplay.lake.warehouse import Warehouse
    from mqreplay.language.language import Language
    from mqreplay.settings import Settings

DESCRIPTION = (
    "List the findings of a warehouse, the most severe first; also those that `nightly --watch` reports as open. "
    "`mqreplay explain ID` shows the evidence of one."
)
EXAMPLES = with_examples(
    "mqreplay findings --warehouse warehouse/night",
    "mqreplay findings --warehouse warehouse/night --severity critical",
    "mqreplay findings --warehouse warehouse/night --group pay-group --since 2026-11-21T02:00 --until 2026-11-21T03:00",
    "mqreplay findings --warehouse warehouse/night --kind 'broker_*' --kind failover_pull --format csv",
    "mqreplay findings --warehouse warehouse/night --severity warning --format junit > findings.xml",
)
FILTERS = {"kind": "kind", "group": "consumer_group", "topic": "topic", "broker": "broker_name", "cluster": "cluster"}
FORMATS = ("text", "md", "csv", "json", "junit", "sarif")


def add(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_warehouse(command)
    add_conf(command)
    command.add_argument("--severity", choices=SEVERITIES, help="only findings of this severity or a higher one")
    for name in FILTERS:
        text = f"only of this {name}, or of those that match a pattern such as 'pay-*'; repeatable"
        command.add_argument(f"--{name}", action="append", default=[], metavar="NAME", help=text)
    command.add_argument(
        "--since", metavar="TIME", help="only what ended at or after this instant, in UTC: 2026-11-21T02:30"
    )
    command.add_argument("--until", metavar="TIME", help="only what began before this instant, in UTC")
    add_lang(command)
    command.add_argument("--json", action="store_true", help="the same as --format json")
    command.add_argument("--format", choices=FORMATS, default="text", help="how findings are printed (%(default)s)")


def run(args: argparse.Namespace) -> None:
    """Print the findings."""
    from mqreplay.lake.existing import require_warehouse

    require_warehouse(args.warehouse)
    since, until = instant(args.since, "--since"), instant(args.until, "--until")
    from mqreplay.cli.terminal import note_interruption
    from mqreplay.lake.warehouse import Warehouse
    from mqreplay.settings import load_settings

    note_interruption(args.warehouse)
    names = {column: getattr(args, name) for name, column in FILTERS.items()}
    settings = load_settings(args.conf).in_language(args.lang)
    frame = findings(args.warehouse, names, args.severity, since, until, settings)
    form = "json" if args.json else args.format
    _print(frame, form, Warehouse(args.warehouse), settings)
    if form == "text":
        from mqreplay.cli.page_line import print_page_of_findings

        print_page_of_findings(
            args.warehouse, frame.select("cluster", "finding_id").to_dicts(), language(settings.report.language)
        )


def _print(frame: pl.DataFrame, form: str, warehouse: Warehouse, settings: Settings) -> None:
    """Print the findings. Where the warehouse has several clusters, text names that of each finding."""
    from mqreplay.cli.finding_formats import junit, markdown, sarif
    from mqreplay.cli.finding_names import clusters_of
    from mqreplay.cli.rows import print_rows
    from mqreplay.cli.terminal import print_findings
    from mqreplay.printable import json_text

    with_cluster = len(clusters_of(warehouse)) > 1
    words = language(settings.report.language)
    rows = frame.to_dicts()
    if form == "json":
        print(json_text({"findings": rows}, indent=1, default=_plain))
    elif form == "csv":
        flat = frame.drop("evidence")
        print_rows(flat.columns, flat.rows(), "csv")
    elif form == "md":
        print(markdown(rows, with_cluster, words))
    elif form == "text":
        print_findings(rows, with_cluster, _watch_notes(rows, dt.datetime.now(dt.UTC), settings), words)
        if not rows:
            _print_judged_days(warehouse, words)
    else:
        print({"junit": junit, "sarif": sarif}[form](rows, words))


def _print_judged_days(warehouse: Warehouse, words: Language) -> None:
    """Print of which days there are no findings."""
    from mqreplay.printable import printable
    from mqreplay.report.overview import judged_days

    for cluster, days in sorted(judged_days(warehouse).items()):
        span = f"{min(days)}" if len(days) == 1 else f"{min(days)} – {max(days)} ({len(days)})"
        print(f"{words.text('judged')}: {printable(cluster)} {span}")


def _watch_notes(rows: Iterable[dict[str, Any]], now: dt.datetime, settings: Settings) -> dict[tuple[str, str], str]:
    """Return what watch knows of open findings, by cluster and finding_id."""
    from mqreplay.night.open_findings import seconds_until_closed
    from mqreplay.night.watched_findings import watch_note

    limits = seconds_until_closed(settings)
    found = {}
    for row in rows:
        if (last := row["last_seen_ts"]) is not None:
            notes = [f"Last evidence: {last:%Y-%m-%d %H:%M:%S} UTC.", watch_note(row, limits.get(row["kind"], 0), now)]
            found[row["cluster"], row["finding_id"]] = " ".join(filter(None, notes))
    return found


def findings(
    root: str,
    names: dict[str, list[str]],
    severity: str | None,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    settings: Settings | None = None,
) -> pl.DataFrame:
    """Return the findings of nightly runs and those that are open: `watched_findings.all_findings`, then mutes.MARKS.

    ``names`` has names or patterns by column; none: all. The most severe findings come first, then the earliest.
    Raises InputError for a name that the warehouse does not have, and if nothing was judged yet: then there are no
    findings for want of a run.
    """
    import polars as pl

    from mqreplay.cli.finding_names import matching_names
    from mqreplay.lake.warehouse import Warehouse
    from mqreplay.night.notify.mutes import MARKS, marked, valid_mutes
    from mqreplay.night.open_findings import seconds_until_closed
    from mqreplay.night.watched_findings import all_findings
    from mqreplay.report.overview import judged_days
    from mqreplay.settings import Settings

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
