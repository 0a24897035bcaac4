"""A prediction beside what came, as text in the terminal or as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rich.text import Text

from mqreplay.cli.terminal import text_console
from mqreplay.night.prediction_check import FAILED, HELD, OUTSIDE, UNDETERMINED, WITHIN, Checked
from mqreplay.night.predictions import MILLION
from mqreplay.printable import json_text, printable
from mqreplay.quantity import counted

COLOURS = {WITHIN: "green", HELD: "bold green", OUTSIDE: "red", FAILED: "bold red", UNDETERMINED: "yellow"}
MOST_ROWS = 40  # values within or undetermined; all that came outside are shown
WHAT = {
    "members": "members of",
    "owner": "owner of",
    "to_slave": "answers that send to a slave,",
    "redelivered": "messages delivered again to",
    "again": "messages delivered again to",
}
VERDICTS = {
    HELD: "the prediction held",
    FAILED: "the prediction failed",
    UNDETERMINED: "the prediction is undetermined",
}


def print_checked(found: Checked, *, as_json: bool) -> None:
    """Print what came of a prediction on stdout."""
    if as_json:
        head = {"prediction_id": found.prediction_id, "supposed": found.supposed, "of_day": found.of_day}
        print(json_text({**head, "day": found.day, "answer": found.answer, "rows": found.rows}, indent=1, default=str))
        return
    console = text_console()
    console.print(Text(printable(f"prediction {found.prediction_id}: {found.supposed}"), "bold"), soft_wrap=True)
    console.print(Text(f"  made of {found.of_day}, compared with {found.day}"))
    left = 0
    for judgement in (OUTSIDE, WITHIN, UNDETERMINED):
        rows = [row for row in found.rows if row["judgement"] == judgement]
        shown = rows if judgement == OUTSIDE else rows[:MOST_ROWS]
        left += len(rows) - len(shown)
        for row in shown:
            console.print(Text.assemble("  ", (f"{judgement:13}", COLOURS[judgement]), _row(row)), soft_wrap=True)
    if left:
        console.print(Text(f"  ... and {counted(left, 'more value')}; --json has all", "dim"))
    counts = Counter(row["judgement"] for row in found.rows)
    numbers = ", ".join(f"{counts[name]:,} {name}" for name in (WITHIN, OUTSIDE, UNDETERMINED))
    console.print(Text.assemble(f"  {numbers}: ", (VERDICTS[found.answer], COLOURS[found.answer])), soft_wrap=True)


def _row(row: dict[str, Any]) -> str:
    names = (row["consumer_group"], row["topic"], row["broker_name"], row["queue_id"])
    place = " ".join(str(name) for name in names if name is not None)
    low, high, measure = row["after_min"], row["after_max"], row["measure"]
    bounds = _value(measure, low) if low == high else f"{_value(measure, low)} to {_value(measure, high)}"
    came = f", came {_value(measure, row['came'])}" if row["came"] is not None else ""
    reason = f"; {row['reason']}" if row["reason"] else ""
    return printable(f"{WHAT[measure]} {place}: predicted {bounds}{came}{reason}")


def _value(measure: str, value: int | None) -> str:
    """Return a value in words. The owner of a queue is a place in the sorted list of members, from 1.

    >>> _value("owner", 2), _value("owner", 0), _value("to_slave", 682_836), _value("members", 3)
    ('member 2', 'nobody', '68.2836 %', '3')
    """
    if value is None:
        return "unknown"
    if measure == "owner":
        return f"member {value}" if value else "nobody"
    return f"{round(100 * value / MILLION, 4):g} %" if measure == "to_slave" else f"{value:,}"
