"""`mqreplay compare`: two days of a cluster side by side."""

from __future__ import annotations

import argparse
import datetime as dt
from typing import TYPE_CHECKING, Any

from mqreplay.cli.arguments import add_conf, add_warehouse, with_examples

if TYPE_CHECKING:
    from mqreplay.moment.compare import Comparison

DESCRIPTION = (
    "Compare two judged days of a cluster: findings that are new, gone or recur, and lag, members, queues and settings "
    "that changed."
)
EXAMPLES = with_examples(
    "mqreplay compare 2026-11-20 2026-11-21 --warehouse warehouse/night",
    "mqreplay compare 2026-11-20 2026-11-21 --warehouse warehouse/night --json",
)
MARKS = {"new": ("new", "bold red"), "recurs": ("recurs", "yellow"), "gone": ("gone", "green")}


def add(commands: Any) -> None:
    """Add the command."""
    text = "compare two days: findings, lag, members, settings"
    command = commands.add_parser("compare", help=text, description=DESCRIPTION, **EXAMPLES)
    command.add_argument("before", metavar="DAY", help="the earlier day, in UTC: 2026-11-20")
    command.add_argument("after", metavar="DAY", help="the later day")
    add_warehouse(command)
    add_conf(command)
    command.add_argument("--cluster", metavar="NAME", help="the cluster, where the warehouse has several")
    command.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> None:
    """Print the comparison."""
    from mqreplay.lake.existing import require_warehouse

    require_warehouse(args.warehouse)
    from mqreplay.cli.page_line import print_page
    from mqreplay.cli.terminal import note_interruption
    from mqreplay.lake.warehouse import Warehouse
    from mqreplay.moment.compare import compare, days_of
    from mqreplay.moment.instant import recorded
    from mqreplay.printable import json_text

    note_interruption(args.warehouse)
    night = recorded(Warehouse(args.warehouse), args.cluster)
    judged = days_of(night)
    found = compare(night, _day(args.before, judged), _day(args.after, judged))
    if args.json:
        print(json_text(found.as_plain(), indent=1, default=str))
    else:
        _print(found)
        print_page(args.warehouse, found.cluster)


def _day(text: str, judged: list[dt.date]) -> dt.date:
    """Return the day of a text. Raises InputError if it is none, or was not judged."""
    from mqreplay.errors import InputError

    try:
        day = dt.date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is no day; write it as 2026-11-21") from None
    if day not in judged:
        known = f"{judged[0]} to {judged[-1]}, {len(judged)} in all" if judged else "none"
        raise InputError(f"{day} has not been judged; judged days: {known}")
    return day


def _print(found: Comparison) -> None:
    from rich.text import Text

    from mqreplay.cli.terminal import text_console
    from mqreplay.printable import printable

    console = text_console()
    console.print(Text.assemble((printable(found.cluster), "bold"), f" {found.before} and {found.after}"))
    for row in found.findings.iter_rows(named=True):
        word, colour = MARKS[row["change"]]
        broker = row["broker_name"] if row["broker_id"] is None else f"{row['broker_name']}/{row['broker_id']}"
        names = (row["consumer_group"], row["topic"], broker)
        where = printable(" ".join(each for each in names if each))
        number = f"{row['before']} and {row['after']}"
        head = ("  ", (f"{word:8}", colour), f"{row['severity']:9}", (f"{printable(row['kind']):24}", "bold"))
        console.print(Text.assemble(*head, f"{where}  ", (f"{number}  {row['finding_id'][:8]}", "dim")), soft_wrap=True)
    for row in found.groups.iter_rows(named=True):
        pairs = {
            name: (row[f"{name}_before"], row[f"{name}_after"]) for name in ("members", "queues", "most_lag", "rounds")
        }
        texts = [f"{name.replace('_', ' ')} {_number(a)} to {_number(b)}" for name, (a, b) in pairs.items() if a != b]
        console.print(Text(printable(f"  group {row['consumer_group']}: {', '.join(texts)}")), soft_wrap=True)
    for row in found.settings.iter_rows(named=True):
        what = f"{row['name']} {row['before'] or 'not set'} to {row['after'] or 'not set'}"
        console.print(Text(printable(f"  {row['broker_name']} {row['broker_id']}: {what}")), soft_wrap=True)
    if found.findings.is_empty() and found.groups.is_empty() and found.settings.is_empty():
        console.print("  nothing differs")


def _number(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"
