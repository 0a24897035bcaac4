"""`mqreplay advise`: settings that would have removed findings of a group."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from mqreplay.cli.arguments import add_conf, add_warehouse, with_examples

if TYPE_CHECKING:
    from mqreplay.night.advise import Advised
    from mqreplay.settings import Settings

DESCRIPTION = (
    "Name the settings of a consumer group that would have removed findings of its night, among strategies, consumers "
    "and queues: the best ones first, with the queues that move for them. Each is decided again as whatif does, from "
    "the lists that members saw during the finding. Nothing is changed anywhere."
)
EXAMPLES = with_examples(
    "mqreplay advise order-group --warehouse warehouse/night",
    "mqreplay advise order-group --warehouse warehouse/night --json",
)


def add(commands: Any) -> None:
    """Add the command."""
    text = "name settings that would have removed findings of a group"
    command = commands.add_parser("advise", help=text, description=DESCRIPTION, **EXAMPLES)
    command.add_argument("group", metavar="GROUP", help="the consumer group")
    add_warehouse(command)
    add_conf(command)
    command.add_argument("--day", metavar="DAY", help="the day of the findings; the last one without it")
    command.add_argument("--cluster", metavar="NAME", help="the cluster, where the warehouse has several")
    command.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Print the settings."""
    from mqreplay.lake.existing import require_warehouse

    require_warehouse(args.warehouse)
    from mqreplay.cli.terminal import note_interruption
    from mqreplay.night.advise import advise

    note_interruption(args.warehouse)
    found = advise(args.warehouse, settings, args.group, args.day, args.cluster)
    _print_json(found) if args.json else _print(found)


def _print_json(found: Advised) -> None:
    from mqreplay.printable import json_text

    ids = {"open": found.open, "findings": [row["finding_id"] for row in found.findings]}
    head = {"cluster": found.cluster, "consumer_group": found.group}
    print(json_text({**head, **ids, "advice": [each.as_plain() for each in found.advice]}, indent=1))


def _print(found: Advised) -> None:
    from rich.console import Console
    from rich.text import Text

    from mqreplay.decisions.suppositions import text_of
    from mqreplay.night.advise import WHY_NOT
    from mqreplay.printable import printable

    console = Console(highlight=False)
    kinds = {row["finding_id"]: f"{row['kind']} {row['finding_id'][:8]}" for row in found.findings}
    console.print(Text(printable(f"{found.cluster}: {found.group}, findings: {len(kinds)}"), "bold"))
    for each in found.advice:
        low, high = each.moved_min, each.moved_max
        price = f"{low}" if low == high else f"{low} to {high}"
        removes = ", ".join(kinds[key] for key in each.removes)
        text = f"  {text_of(each.supposition)}: without {removes}; {price} of {each.queues} queues would move"
        brings = f"; it would bring {', '.join(each.brings)}" if each.brings else ""
        console.print(Text(printable(f"{text}{brings}")), soft_wrap=True)
    if found.open:
        named = ", ".join(kinds[key] for key in found.open)
        console.print(Text(printable(f"  nothing was found against {named}: {WHY_NOT}"), "dim"), soft_wrap=True)
