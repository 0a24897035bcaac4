"""`mqreplay ready`: may a broker be restarted now?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from mqreplay.cli.arguments import add_conf, add_warehouse, with_examples
from mqreplay.cli.exit_status import DONE, FAILED

if TYPE_CHECKING:
    from mqreplay.moment.ready import Readiness

DESCRIPTION = (
    "Say whether a broker may be restarted, by the last recorded minute: yes, no or undetermined, with the reasons. "
    "Exit status 0: yes; 1: no or undetermined."
)
EXAMPLES = with_examples(
    "mqreplay ready broker-a --warehouse warehouse/night",
    "mqreplay ready broker-a --id 1 --at 02:45 --warehouse warehouse/night --json",
)
COLOURS = {"yes": "green", "no": "bold red", "undetermined": "yellow"}


def add(commands: Any) -> None:
    """Add the command."""
    text = "say whether a broker may be restarted, and why"
    command = commands.add_parser("ready", help=text, description=DESCRIPTION, **EXAMPLES)
    command.add_argument("broker", metavar="BROKER", help="the name of the broker, as broker-a")
    add_warehouse(command)
    add_conf(command)
    command.add_argument("--id", type=int, default=0, metavar="N", help="its broker id; 0, the master, by default")
    command.add_argument("--at", metavar="TIME", help="an instant in UTC, in place of the last recorded one")
    command.add_argument("--cluster", metavar="NAME", help="the cluster, where the warehouse has several")
    command.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the answer; return the exit status."""
    from mqreplay.lake.existing import require_warehouse

    require_warehouse(args.warehouse)
    from mqreplay.cli.page_line import print_page
    from mqreplay.cli.terminal import note_interruption
    from mqreplay.errors import InputError
    from mqreplay.lake.warehouse import Warehouse
    from mqreplay.moment.instant import recorded
    from mqreplay.moment.ready import readiness

    note_interruption(args.warehouse)
    night = recorded(Warehouse(args.warehouse), args.cluster)
    at = night.last if args.at is None else night.instant(args.at, "--at")
    found = readiness(night, args.broker, args.id, at)
    if found is None:
        raise InputError(f"nothing is known of broker {args.broker} {args.id} at {at:%Y-%m-%d %H:%M:%S} UTC")
    if args.json:
        _print_json(found)
    else:
        _print(found)
        print_page(args.warehouse, night.cluster, broker=args.broker, at=at)
    return DONE if found.answer == "yes" else FAILED


def _print_json(found: Readiness) -> None:
    from mqreplay.printable import json_text, plain_value

    checks = [{"check": each.name, "answer": each.answer, "text": each.text} for each in found.checks]
    head = {"cluster": found.cluster, "broker_name": found.broker_name, "broker_id": found.broker_id}
    print(json_text({**head, "at": plain_value(found.at), "answer": found.answer, "checks": checks}, indent=1))


def _print(found: Readiness) -> None:
    from rich.text import Text

    from mqreplay.cli.terminal import text_console
    from mqreplay.printable import printable

    console = text_console()
    what = f"restart {printable(found.broker_name)} {found.broker_id} at {found.at:%Y-%m-%d %H:%M:%S} UTC: "
    console.print(Text.assemble((what, "bold"), (found.answer, COLOURS[found.answer])))
    for check in found.checks:
        answer = (f"{check.answer:13}", COLOURS[check.answer])
        console.print(Text.assemble("  ", answer, f"{check.name:12}", printable(check.text)), soft_wrap=True)
