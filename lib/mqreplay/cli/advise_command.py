"""`mqreplay advise`: settings that would have removed findings of a group."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, Any

from mqreplay.cli.arguments import add_conf, add_warehouse, with_examples

if TYPE_CHECKING:
    from mqreplay.night.advise import Advice, Advised
    from mqreplay.settings import Settings

DESCRIPTION = (
    "Name the settings of a consumer group that would have removed findings of its night, among strategies, consumers "
    "and queues: the best ones first, with the queues that move for them. Each is decided again as whatif does, from "
    "the lists that members saw during the finding. For a backlog it says how many consumers or queues keep up by the "
    "rates of the night; for what no such setting removes, its cause or what to do first. Nothing is changed anywhere."
)
HEAD = ("setting", "queues moved", "raises", "removes")
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
    from mqreplay.cli.page_line import print_page
    from mqreplay.cli.terminal import note_interruption
    from mqreplay.night.advise import advise

    note_interruption(args.warehouse)
    found = advise(args.warehouse, settings, args.group, args.day, args.cluster)
    if args.json:
        _print_json(found)
        return
    where = f" --cluster {shlex.quote(args.cluster)}" if args.cluster else ""
    _print(found, f"{where} --warehouse {shlex.quote(args.warehouse)}")
    print_page(args.warehouse, found.cluster, group=found.group)


def _print_json(found: Advised) -> None:
    from mqreplay.printable import json_text

    ids = {"open": found.open, "findings": [row["finding_id"] for row in found.findings]}
    head = {"cluster": found.cluster, "consumer_group": found.group, "day": found.day.isoformat()}
    plain: dict[str, object] = {
        name: [each.as_plain() for each in getattr(found, name)] for name in ("advice", "notes")
    }
    plain |= {"backlogs": {key: each.as_plain() for key, each in found.backlogs.items()}}
    print(json_text({**head, **ids, **plain, "assumption": found.assumption}, indent=1))


def _print(found: Advised, where: str) -> None:
    """Print text. ``where``: the options that name the cluster and the warehouse, for commands to copy."""
    from rich.text import Text

    from mqreplay.cli.terminal import text_console
    from mqreplay.printable import printable

    console = text_console()

    def say(line: str, style: str = "") -> None:
        console.print(Text(printable(line.rstrip()), style), soft_wrap=True)

    number = len(found.findings)
    title = (
        f"{found.cluster}: {found.group}, {number or 'no'} {'finding' if number == 1 else 'findings'} on {found.day}"
    )
    say(title, "bold")
    kinds = {row["finding_id"]: f"{row['kind']} {row['finding_id'][:8]}" for row in found.findings}
    if found.advice:
        lines = [HEAD, *(_columns(each, found.group, kinds) for each in found.advice)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
        for line in lines:
            text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            say(f"  {text}", "dim" if line is HEAD else "")
        for each in found.advice:
            for key, texts in each.rates.items():
                say(f"  {kinds[key]}: {'; '.join(texts)}", "dim")
        if command := next((each.command for each in found.advice if each.command), ""):
            say(f"  who would own which queue: {command}{where}", "dim")
    if found.notes:
        say("  no setting of strategy, consumers or queues is shown to remove:", "bold")
        width = max(len(kinds[each.finding_id]) for each in found.notes)
        for note in found.notes:
            shown = [f"{note.command}{where}"] if note.command else []
            for index, text in enumerate([*note.lines, *shown, note.next]):
                say(f"  {'' if index else kinds[note.finding_id]:{width}}  {text}")
    if found.assumption:
        say(f"  assumed of rates: {found.assumption}", "dim")


def _columns(each: Advice, group: str, kinds: dict[str, str]) -> tuple[str, str, str, str]:
    low, high = each.moved_min, each.moved_max
    moved = f"{low}" if low == high else f"{low} to {high}"
    new = f", {each.new} new" if each.new else ""
    removes = ", ".join(kinds[key] for key in each.removes)
    return _short(each.setting, group), f"{moved} of {each.queues}{new}", ", ".join(each.brings) or "nothing", removes


def _short(setting: str, group: str) -> str:
    return setting.replace(f" in {group}", "")
