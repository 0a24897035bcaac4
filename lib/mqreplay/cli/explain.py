"""`mqreplay explain`: the explanation of a finding in the terminal, or as JSON."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mqreplay.cli.explanation import Explanation, explain
from mqreplay.cli.terminal import COLOURS, note_interruption
from mqreplay.cli.time_span import time_span
from mqreplay.errors import InputError
from mqreplay.printable import json_text, printable
from mqreplay.report.evidence_rows import LIMIT
from mqreplay.report.next_step import advice_parts, names_of

LABEL = 12  # characters
MOST_EFFECTS = 20


def print_explanation(
    warehouse: str, finding_id: str, cluster: str | None, *, as_json: bool, limit: int | None = None
) -> None:
    """Print the explanation on stdout. ``limit``: rows of evidence at most."""
    if limit is not None and limit < 0:
        raise InputError(f"--limit is {limit}; give 0 or more rows")
    note_interruption(warehouse)
    limit = LIMIT if limit is None else limit
    explanation = explain(warehouse, finding_id, cluster, limit)
    if as_json:
        print(json_text(as_plain(explanation), indent=1, default=_plain))
    else:
        _print(explanation, limit)


def as_plain(explanation: Explanation) -> dict[str, Any]:
    """Return the explanation as the command prints it in JSON; docs/operations.md describes it."""
    return {
        "finding": _without_evidence(explanation.finding),
        "rule": explanation.rule,
        "follows": explanation.follows,
        "cause": None if explanation.cause is None else _without_evidence(explanation.cause),
        "effects": [_without_evidence(effect) for effect in explanation.effects],
        "decisions": explanation.decisions,
        "timeline": [{"when": when, "what": what} for when, what in explanation.timeline],
        "silver_kept_from": explanation.silver_kept_from and explanation.silver_kept_from.isoformat(),
        "evidence_total": explanation.evidence.total,
        "evidence": [
            {"table_name": row.table_name, "ts": row.ts, "who": row.who, "what": row.what, "row": row.row}
            for row in explanation.evidence.rows
        ],
    }


def _without_evidence(finding: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in finding.items() if name not in ("evidence", "evidence_count")}


def _plain(value: object) -> str:
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value)


def _print(explanation: Explanation, limit: int) -> None:
    console = Console(highlight=False)
    console.print(_head(explanation.finding), soft_wrap=True)
    _say(console, "Summary", explanation.finding["summary"])
    _say(console, "Rule", explanation.rule + (f" ({explanation.follows})" if explanation.follows else ""))
    _say(console, "Confidence", f"{explanation.finding['confidence']:.0%}")
    _say(console, "Next", "`".join(advice_parts(str(explanation.finding["advice"]), names_of(explanation.finding))))
    if explanation.cause is not None:
        console.print(Text("Follows from", "bold"))
        _print_other(console, explanation.cause)
    if explanation.effects:
        console.print(
            Text(
                f"Effects: {_of(min(len(explanation.effects), MOST_EFFECTS), len(explanation.effects), 'finding')}",
                "bold",
            )
        )
    for effect in explanation.effects[:MOST_EFFECTS]:
        _print_other(console, effect)
    if explanation.decisions:
        console.print(Text("Decisions by RocketMQ's rules", "bold"))
    for text in explanation.decisions:
        console.print(Padding(Text(printable(text)), (0, 0, 0, 2)))
    if explanation.timeline:
        console.print(Text("Timeline of the failover", "bold"))
        console.print(_table_of(explanation.timeline))
    shown = explanation.evidence.rows
    total = explanation.evidence.total
    more = f" (--limit {total} shows all)" if limit <= len(shown) < total else ""
    console.print(Text.assemble((f"Evidence: {_of(len(shown), total, 'row')}", "bold"), (more, "dim")))
    if explanation.silver_kept_from is not None:
        text = f"silver rows before {explanation.silver_kept_from} are no longer kept (mqreplay maintain)"
        console.print(Text(f"  {text}", "dim"), soft_wrap=True)
    for row in shown:
        when = row.ts.strftime("%H:%M:%S.%f")[:-3] if row.ts else ""
        table = (f"{printable(row.table_name):22}", "cyan")
        line = Text.assemble("  ", (f"{when:12}", "dim"), "  ", table, "  ", _row_text(row.who, row.what))
        console.print(line, soft_wrap=True)  # one line a row, for grep


def _table_of(timeline: Iterable[tuple[str, str]]) -> Padding:
    grid = Table.grid(padding=(0, 2))
    for when, what in timeline:
        grid.add_row(Text(when, "dim"), Text(printable(what)))
    return Padding(grid, (0, 0, 0, 2))


def _row_text(who: str, what: str) -> str:
    return printable(f"{who}: {what}" if who and what else who or what)


def _of(shown: int, total: int, one: str) -> str:
    """Return how many of how many are shown: "3 rows", "50 of 1,315 rows", "none"."""
    if not total:
        return "none"
    noun = one if total == 1 else f"{one}s"
    return f"{total:,} {noun}" if shown == total else f"{shown:,} of {total:,} {noun}"


def _print_other(console: Console, finding: dict[str, Any]) -> None:
    console.print(Padding(_head(finding), (0, 0, 0, 2)))
    console.print(Padding(Text(printable(finding["summary"])), (0, 0, 0, 11)))


def _head(finding: dict[str, Any]) -> Text:
    severity, kind = str(finding["severity"]), printable(finding["kind"])
    when = time_span(finding["from_ts"], finding["to_ts"])
    ident = printable(str(finding["finding_id"])[:8])
    return Text.assemble((f"{severity:9}", COLOURS[severity]), (f"{kind:22}", "bold"), (f"{when}  {ident}", "dim"))


def _say(console: Console, label: str, text: object) -> None:
    if text:
        # In a column of its own: no line of the text begins where a label does.
        grid = Table.grid()
        grid.add_column(width=LABEL)
        grid.add_row(Text(label, "bold"), Text(printable(text)))
        console.print(grid)
