"""`mqreplay explain`: the explanation of a finding in the terminal, or as JSON."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mqreplay.cli.estate_lines import padded
from mqreplay.cli.evidence_text import of_total, print_evidence
from mqreplay.cli.explanation import Explanation, explain
from mqreplay.cli.page_line import print_page
from mqreplay.cli.terminal import COLOURS, note_interruption, text_console
from mqreplay.cli.time_span import time_span
from mqreplay.errors import InputError
from mqreplay.language.language import Language, in_english
from mqreplay.printable import json_text, plain_value, printable
from mqreplay.report.evidence_rows import LIMIT
from mqreplay.report.known_issue import known_issue_text
from mqreplay.report.next_step import advice_parts, names_of

LABEL = 12  # characters
MOST_EFFECTS = 20
MOST_DECISIONS = 10


def print_explanation(
    warehouse: str,
    finding_id: str,
    cluster: str | None,
    *,
    as_json: bool,
    limit: int | None = None,
    words: Language | None = None,
) -> None:
    """Print the explanation on stdout. ``limit``: rows of evidence at most."""
    if limit is not None and limit < 0:
        raise InputError(f"--limit is {limit}; give 0 or more rows")
    note_interruption(warehouse)
    limit = LIMIT if limit is None else limit
    explanation = explain(warehouse, finding_id, cluster, limit, None if as_json else words)
    if as_json:
        print(json_text(as_plain(explanation), indent=1, default=plain_value))
    else:
        print_explained(explanation, limit, words)
        finding = explanation.finding
        print_page(warehouse, finding["cluster"], finding_id=finding["finding_id"], words=words)


def as_plain(explanation: Explanation) -> dict[str, Any]:
    """Return the explanation as the command prints it in JSON; docs/operations.md describes it."""
    return {
        "finding": _without_evidence(explanation.finding),
        "rule": explanation.rule,
        "follows": explanation.follows,
        "cause": None if explanation.cause is None else _without_evidence(explanation.cause),
        "effects": [_without_evidence(effect) for effect in explanation.effects],
        "known_issues": [
            {name: value for name, value in issue.items() if name not in ("cluster", "day", "finding_id")}
            for issue in explanation.known_issues
        ],
        "decisions": explanation.decisions,
        "timeline": [{"when": when, "what": what} for when, what in explanation.timeline],
        "silver_kept_from": explanation.silver_kept_from and explanation.silver_kept_from.isoformat(),
        "watch": explanation.watch,
        "evidence_total": explanation.evidence.total,
        "evidence_unnamed": explanation.evidence.unnamed,
        "evidence_groups": [asdict(group) for group in explanation.evidence.groups],
        "evidence": [
            {"table_name": row.table_name, "ts": row.ts, "who": row.who, "what": row.what, "row": row.row}
            for row in explanation.evidence.rows
        ],
    }


def _without_evidence(finding: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in finding.items() if name not in ("evidence", "evidence_count")}


def print_explained(explanation: Explanation, limit: int, words: Language | None = None) -> None:
    """Print an explanation, made in the language ``words``, as text.

    ``limit``: the rows of evidence that were asked for, at most.
    """
    words = words or in_english()
    console = text_console()
    watch = explanation.watch
    console.print(_head(explanation.finding, words, is_open=explanation.is_open), soft_wrap=True)
    say = partial(_say, console, words)
    say("Watch", "" if watch is None else words.text(_watch_text(watch, explanation)))
    say("Summary", words.text(explanation.finding["summary"]))
    say("Rule", words.text(explanation.rule) + (f" ({words.text(explanation.follows)})" if explanation.follows else ""))
    say("Confidence", f"{explanation.finding['confidence']:.0%}")
    say("Next", _advice(explanation.finding, explanation, words))
    for issue in explanation.known_issues:
        say("Known issue", words.text(known_issue_text(issue)))
        say(" ", _advice(issue, explanation, words))
        say(" ", issue["url"])
    if explanation.cause is not None:
        console.print(Text(words.text("Follows from"), "bold"))
        _print_other(console, explanation.cause, words)
    if explanation.effects:
        number = len(explanation.effects)
        console.print(Text(words.text(f"Effects: {of_total(min(number, MOST_EFFECTS), number, 'finding')}"), "bold"))
    for effect in explanation.effects[:MOST_EFFECTS]:
        _print_other(console, effect, words)
    if explanation.decisions:
        console.print(Text(words.text("Decisions by RocketMQ's rules"), "bold"))
    for text in explanation.decisions[:MOST_DECISIONS]:
        console.print(Padding(Text(printable(words.text(text))), (0, 0, 0, 2)))
    left = len(explanation.decisions) - MOST_DECISIONS
    if left > 0:
        others = words.text(f"and {left:,} {'other' if left == 1 else 'others'} (--json has all)")
        console.print(Text(f"  {others}", "dim"))
    if explanation.timeline:
        console.print(Text(words.text("Timeline of the failover"), "bold"))
        console.print(_table_of(explanation.timeline))
    print_evidence(console, explanation, limit, words)


def _advice(row: dict[str, Any], explanation: Explanation, words: Language) -> str:
    return "`".join(advice_parts(words.text(str(row["advice"])), names_of(explanation.finding)))


def _table_of(timeline: Iterable[tuple[str, str]]) -> Padding:
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(overflow="fold")
    for when, what in timeline:
        grid.add_row(Text(when, "dim"), Text(printable(what)))
    return Padding(grid, (0, 0, 0, 2))


def _print_other(console: Console, finding: dict[str, Any], words: Language) -> None:
    console.print(Padding(_head(finding, words), (0, 0, 0, 2)))
    console.print(Padding(Text(printable(words.text(finding["summary"]))), (0, 0, 0, 11)))


def _watch_text(watch: dict[str, Any], explanation: Explanation) -> str:
    """Return since when the finding is open, or why it was closed."""
    if watch["closed_ts"] is not None:
        return f"Closed at {_second(watch['closed_ts'])}: {watch['closed_reason']}."
    seen = f"First found at {_second(watch['first_seen_ts'])}, last evidence at {_second(watch['last_seen_ts'])}."
    return f"{'Open' if explanation.is_open else 'Not open any more'}. {seen} {explanation.watch_note}".rstrip()


def _second(ts: dt.datetime) -> str:
    return f"{ts:%Y-%m-%d %H:%M:%S} UTC"


def _head(finding: dict[str, Any], words: Language, is_open: bool = False) -> Text:
    severity, kind = str(finding["severity"]), printable(finding["kind"])
    when = words.text(time_span(finding["from_ts"], None if is_open else finding["to_ts"]))
    ident = printable(str(finding["finding_id"])[:8])
    state = f"{words.text('open')} " if is_open else ""
    head = (
        (padded(words.text(severity), 9), COLOURS[severity]),
        (f"{kind:22}", "bold"),
        (state, "bold"),
        (f"{when}  {ident}", "dim"),
    )
    return Text.assemble(*head)


def _say(console: Console, words: Language, label: str, text: object) -> None:
    if text:
        # In a column of its own: no line of the text begins where a label does.
        grid = Table.grid()
        grid.add_column(width=LABEL)
        grid.add_column(overflow="fold")  # Chinese has no spaces to wrap at
        grid.add_row(Text(words.text(label), "bold"), Text(printable(text)))
        console.print(grid)
