"""A finding's story in the terminal, or as JSON."""

from __future__ import annotations

import dataclasses

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mqreplay.cli.story import Story, explain, shown
from mqreplay.cli.terminal import COLOURS, note_interruption
from mqreplay.printable import json_text, printable


def print_story(warehouse: str, finding_id: str, cluster: str | None, *, as_json: bool) -> None:
    """Tells it on stdout."""
    note_interruption(warehouse)
    story = explain(warehouse, finding_id, cluster)
    if as_json:
        print(json_text(dataclasses.asdict(story), indent=1, default=_plain))
    else:
        _print(story)


def _plain(value: object) -> object:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _print(story: Story) -> None:
    console = Console(highlight=False)
    console.print(_head(story.finding))
    _say(console, "What", story.finding["summary"])
    _say(console, "Rule", story.rule + (f" ({story.follows})" if story.follows else ""))
    _say(console, "Sure", f"{story.finding['confidence']:.0%}")
    _say(console, "Do", story.finding["advice"])
    if story.cause is not None:
        console.print(Text.assemble(("Follows from  ", "bold"), _head(story.cause)))
        _say(console, "", story.cause["summary"])
    if story.decisions:
        console.print(Text("Decisions by RocketMQ's rules", "bold"))
        for text in story.decisions:
            console.print(Padding(Text(printable(text)), (0, 0, 0, 2)))
    if story.steps:
        console.print(Text(f"Evidence, {len(story.steps)} rows in time order", "bold"))
    for step in story.steps:
        when = step["ts"].strftime("%H:%M:%S.%f")[:-3] if step["ts"] else "            "
        table, row = printable(step["table_name"]), printable(shown(step["row"]))
        line = Text.assemble((when, "dim"), "  ", (f"{table:24}", "cyan"), row)
        console.print(Padding(line, (0, 0, 0, 2)))
    if story.effects:
        console.print(Text("What follows from it", "bold"))
    for effect in story.effects:
        console.print(Padding(_head(effect), (0, 0, 0, 2)))
        console.print(Padding(Text(printable(effect["summary"])), (0, 0, 0, 11)))


def _head(finding: dict[str, object]) -> Text:
    severity, kind = str(finding["severity"]), printable(finding["kind"])
    when = f"{str(finding['from_ts'])[:19]} to {str(finding['to_ts'])[11:19]} UTC"
    ident = printable(str(finding["finding_id"])[:8])
    return Text.assemble((f"{severity:9}", COLOURS[severity]), (f"{kind:22}", "bold"), (f"{when}  {ident}", "dim"))


def _say(console: Console, label: str, text: object) -> None:
    if text:
        # In a column of its own: no line of the text begins where a label does.
        grid = Table.grid()
        grid.add_column(width=6)
        grid.add_row(Text(label, "bold"), Text(printable(text)))
        console.print(grid)
