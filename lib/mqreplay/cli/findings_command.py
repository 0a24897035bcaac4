"""`mqreplay findings` lists findings, `mqreplay explain` shows the evidence of one; as text or for other programs."""

from __future__ import annotations

import argparse
import datetime as dt
from typing import TYPE_CHECKING, Any

from mqreplay.cli.arguments import add_conf, add_json, add_lang, add_tables, add_warehouse, settings_of
from mqreplay.cli.command import Command
from mqreplay.language.language import language
from mqreplay.words.severity import SEVERITIES

if TYPE_CHECKING:
    import polars as pl

    from mqreplay.lake.warehouse import Warehouse
    from mqreplay.language.language import Language
    from mqreplay.settings import Settings

FILTERS = {"kind": "kind", "group": "consumer_group", "topic": "topic", "broker": "broker_name", "cluster": "cluster"}
FORMATS = ("text", "md", "csv", "json", "junit", "sarif")


def add(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_tables(command)
    command.add_argument("--severity", choices=SEVERITIES, help="only findings of this severity or a higher one")
    for name in FILTERS:
        text = f"only of this {name}, or of those that match a pattern such as 'pay-*'; repeatable"
        command.add_argument(f"--{name}", action="append", default=[], metavar="NAME", help=text)
    command.add_argument(
        "--since", metavar="TIME", help="only what ended at or after this instant, in UTC: 02:30 or 2026-11-21T02:30"
    )
    command.add_argument("--until", metavar="TIME", help="only what began before this instant, in UTC")
    add_lang(command)
    add_json(command, "the same as --format json")
    command.add_argument("--format", choices=FORMATS, default="text", help="how findings are printed (%(default)s)")


def run(args: argparse.Namespace) -> None:
    """Print the findings."""
    from mqreplay.answers.findings import findings, instant, last_recorded
    from mqreplay.lake.warehouse import Warehouse

    last = last_recorded(Warehouse(args.warehouse), args.cluster) if args.since or args.until else None
    since, until = instant(args.since, "--since", last), instant(args.until, "--until", last)
    names = {column: getattr(args, name) for name, column in FILTERS.items()}
    settings = settings_of(args)
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
    from mqreplay.answers.findings import clusters_of, watch_notes
    from mqreplay.cli.finding_formats import junit, markdown, sarif
    from mqreplay.cli.rows import print_rows
    from mqreplay.terminal.outcome import print_findings
    from mqreplay.words.printable import json_text

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
        print_findings(rows, with_cluster, watch_notes(rows, dt.datetime.now(dt.UTC), settings), words)
        if not rows:
            _print_judged_days(warehouse, words)
    else:
        print({"junit": junit, "sarif": sarif}[form](rows, words))


def _print_judged_days(warehouse: Warehouse, words: Language) -> None:
    """Print of which days there are no findings."""
    from mqreplay.answers.findings import judged_days
    from mqreplay.words.printable import printable

    for cluster, days in sorted(judged_days(warehouse).items()):
        span = f"{min(days)}" if len(days) == 1 else f"{min(days)} – {max(days)} ({len(days)})"
        print(f"{words.text('judged')}: {printable(cluster)} {span}")


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def add_explain(command: argparse.ArgumentParser) -> None:
    """Add the options of explain."""
    command.add_argument("finding", metavar="FINDING", help="its finding_id, or enough of its beginning")
    add_warehouse(command)
    command.add_argument("--cluster", metavar="NAME", help="the cluster, where several have it")
    add_conf(command)
    add_lang(command)
    command.add_argument("--limit", type=int, metavar="N", help="rows of evidence at most (50)")
    add_json(command, "print the explanation as JSON")


def run_explain(args: argparse.Namespace) -> None:
    """Print the explanation of a finding."""
    settings = settings_of(args)
    words = language(settings.report.language)
    named = args.warehouse, args.finding, args.cluster
    print_explanation(*named, as_json=args.json, limit=args.limit, words=words, settings=settings)


def print_explanation(
    warehouse: str,
    finding_id: str,
    cluster: str | None,
    *,
    as_json: bool,
    limit: int | None = None,
    words: Language | None = None,
    settings: Settings | None = None,
) -> None:
    """Print the explanation on stdout. ``limit``: rows of evidence at most."""
    from mqreplay.answers.explanation import explain
    from mqreplay.cli.page_line import print_page
    from mqreplay.lake.local_folder import require_warehouse
    from mqreplay.lake.warehouse import Warehouse
    from mqreplay.report.evidence_rows import LIMIT
    from mqreplay.terminal.explanation import print_explained
    from mqreplay.words.printable import json_text, plain_value

    limit = LIMIT if limit is None else limit
    require_warehouse(warehouse)
    explanation = explain(Warehouse(warehouse), finding_id, cluster, limit, None if as_json else words, settings)
    if as_json:
        print(json_text(explanation.as_plain(), indent=1, default=plain_value))
    else:
        print_explained(explanation, limit, words)
        finding = explanation.finding
        print_page(warehouse, finding["cluster"], finding_id=finding["finding_id"], words=words)


COMMANDS = (
    Command("findings", add, run, needs_tables=True),
    Command("explain", add_explain, run_explain, needs_tables=True),
)
