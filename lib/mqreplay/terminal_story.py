"""A finding's story in the terminal, or as JSON."""

from __future__ import annotations

import dataclasses
import json

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from mqreplay.night import explain
from mqreplay.settings import Settings
from mqreplay.story import Story, shown
from mqreplay.terminal import COLOURS


def print_story(warehouse: str, finding_id: str, cluster: str | None, settings: Settings, *, as_json: bool) -> None:
    """Tells it on stdout."""
    story = explain(warehouse, finding_id, cluster, settings)
    if as_json:
        print(json.dumps(dataclasses.asdict(story), ensure_ascii=False, indent=1, default=_plain))
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
        console.print(Text("Decisions, as core takes them", "bold"))
        for text in story.decisions:
            console.print(Padding(Text(text), (0, 0, 0, 2)))
    if story.steps:
        console.print(Text(f"Evidence, {len(story.steps)} rows in time order", "bold"))
    for step in story.steps:
        when = step["ts"].strftime("%H:%M:%S.%f")[:-3] if step["ts"] else "            "
        line = Text.assemble((when, "dim"), "  ", (f"{step['table_name']:24}", "cyan"), shown(step["row"]))
        console.print(Padding(line, (0, 0, 0, 2)))
    if story.effects:
        console.print(Text("What follows from it", "bold"))
    for effect in story.effects:
        console.print(Padding(_head(effect), (0, 0, 0, 2)))
        console.print(Padding(Text(str(effect["summary"])), (0, 0, 0, 11)))


def _head(finding: dict[str, object]) -> Text:
    severity = str(finding["severity"])
    when = f"{str(finding['from_ts'])[:19]} to {str(finding['to_ts'])[11:19]} UTC"
    ident = str(finding["finding_id"])[:8]
    return Text.assemble(
        (f"{severity:9}", COLOURS[severity]), (f"{finding['kind']:22}", "bold"), (f"{when}  {ident}", "dim")
    )


def _say(console: Console, label: str, text: object) -> None:
    if text:
        console.print(Text.assemble((f"{label:6}", "bold"), str(text)))
