"""The outcome of a run, and lists of findings, in the terminal."""

from __future__ import annotations

import datetime as dt
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from mqreplay.answers.mutes import mark_text
from mqreplay.findings.texts import summary_of
from mqreplay.language.language import Language, in_english
from mqreplay.terminal.console import (
    COLOURS,
    command_text,
    padded,
    print_row,
    print_table,
    print_text,
    text_console,
)
from mqreplay.terminal.estate import LEVELS, findings_command, headline, print_estate, print_older
from mqreplay.words.printable import printable
from mqreplay.words.quantity import counted
from mqreplay.words.time_span import time_span

if TYPE_CHECKING:
    from mqreplay.answers.outcome import Outcome

FILE_STATES = {  # of bronze.source_file
    "read": "read",
    "duplicate": "read before",
    "superseded": "superseded",
    "late": "late",
    "refused": "refused",
    "not_read": "not needed",
}
SHOWN_FINDINGS = 40  # findings; the report and gold.finding have all


def print_outcome(outcomes: list[Outcome], step: str, warehouse: str, words: Language | None = None) -> None:
    """Print the verdict, the findings, the decisions by kind, failed expectations and the next commands.

    Of several clusters one line each, the worst first.
    """
    words = words or in_english()
    console = text_console()
    where = printable(shlex.quote(warehouse))
    if len(outcomes) > 1 and step != "ingest":
        print_estate(console, outcomes, where, words)
    for outcome in outcomes if len(outcomes) == 1 or step == "ingest" else ():
        head = Text.assemble("\n", (printable(outcome.cluster), "bold"), "  ", _files(outcome, words))
        console.print(head, soft_wrap=True)  # rich would begin a line with any word of a long name
        if step != "ingest":
            console.print(Text(printable(headline(outcome, words)), f"bold {LEVELS[outcome.level]}"))
            if outcome.limits:
                console.print(Text(printable(words.text(outcome.limits)), "dim"))
            _print_findings(console, outcome, where, words)
            print_older(console, outcome, where, words)
            _print_judged(console, outcome, words)
            _print_expectations(console, outcome, where, words)
        if outcome.report:
            console.print(Text(words.filled("Report: {path}", path=printable(outcome.report))), soft_wrap=True)
    first = next((str(f["finding_id"])[:8] for o in outcomes for f in o.findings), None)
    if first and step != "ingest":
        command = command_text(f"mqreplay explain {printable(first)} --warehouse {where}")
        console.print(Text(words.filled("Next:   {command}", command=command)), soft_wrap=True)
    command = command_text(f'mqreplay sql "SELECT * FROM gold.finding" --warehouse {where}')
    console.print(Text(words.filled("Query:  {command}", command=command)), soft_wrap=True)


def _files(outcome: Outcome, words: Language) -> Text:
    files = sum(outcome.files.values())
    states = [f"{outcome.files[state]:,} {word}" for state, word in FILE_STATES.items() if outcome.files.get(state)]
    seen = ["no files"]
    if states:
        seen = [f"{counted(files, 'file')}: {states[0]}", *states[1:]]
    comma = words.text(", ")
    text = comma.join(map(words.text, seen))
    if not outcome.quarantined:
        return Text(text)
    refused = words.text(f"{counted(outcome.quarantined, 'row')} in quarantine")
    return Text.assemble(text, comma, (refused, "yellow"))


def _print_findings(console: Console, outcome: Outcome, where: str, words: Language) -> None:
    # What follows from another finding is counted under its cause: one cause, one line.
    causes = [f for f in outcome.findings if not f["follows_from"]]
    effects = Counter(str(f["follows_from"]) for f in outcome.findings if f["follows_from"])
    for finding in causes[:SHOWN_FINDINGS]:
        follow = effects[str(finding["finding_id"])]
        more = f"{follow} more finding{'s follow' if follow > 1 else ' follows'} from it." if follow else ""
        _print_finding(console, finding, _joined([more, mark_text(finding)], words), words)
    if len(causes) > SHOWN_FINDINGS:
        command = findings_command(outcome, where)
        text = words.filled("... and {n} more: {command}", n=len(causes) - SHOWN_FINDINGS, command=command)
        console.print(Text(text), soft_wrap=True)
    if causes:
        console.print()


def _joined(notes: Sequence[str], words: Language) -> str:
    return " ".join(words.text(note) for note in notes if note)


def _print_finding(console: Console, finding: Mapping[str, Any], more: str, words: Language, cluster: str = "") -> None:
    severity, finding_id = str(finding["severity"]), str(finding["finding_id"])
    is_open = finding.get("open_since") is not None
    when = words.text(time_span(_instant(finding["from_ts"]), None if is_open else _instant(finding["to_ts"])))
    head = [(padded(words.text(severity), 9), COLOURS[severity]), (f"{printable(finding['kind']):22}", "bold")]
    head += [(f"{printable(cluster)}  ", "")] if cluster else []
    head += [(f"{words.text('open')} ", "bold")] if is_open else []
    print_row(console, Text(f"{when}  {printable(finding_id[:8])}", "dim"), head=Text.assemble(*head))
    summary = printable(summary_of(finding, words))
    print_text(console, Text.assemble(summary, (f" {more}" if more else "", "dim")), 9)


def print_findings(
    findings: Sequence[Mapping[str, Any]],
    with_cluster: bool = False,
    notes: Mapping[tuple[str, str], str] | None = None,
    words: Language | None = None,
) -> None:
    """Print each finding on two lines: severity, kind, time and id, then its summary.

    Findings are rows of `answers.findings.findings`. ``notes``: what watch knows of them, by cluster and finding_id.
    """
    words = words or in_english()
    console = text_console()
    for finding in findings:
        cause = finding["follows_from"]
        more = [f"Follows from {printable(str(cause)[:8])}."] if cause else []
        key = finding["cluster"], finding["finding_id"]
        more += [notes[key]] if notes and key in notes else []
        after = _joined([*more, mark_text(finding)], words)
        _print_finding(console, finding, after, words, finding["cluster"] if with_cluster else "")
    if not findings:
        console.print(words.text("No findings."))


def _instant(value: Any) -> dt.datetime | None:
    """Return an instant, also one that is kept as text."""
    return dt.datetime.fromisoformat(value) if isinstance(value, str) else value


def _print_judged(console: Console, outcome: Outcome, words: Language) -> None:
    """Print the judged decisions by kind, the evidence that is missing, and how to record more of it."""
    rows: list[tuple[Text | str, ...]] = []
    for each in outcome.coverage:
        differ = each["differing"]
        is_open = each["state"] == "not judged"
        if each["state"] != "none":
            rows.append(
                (
                    printable(words.text(str(each["name"]))),
                    Text(words.text("none"), "yellow") if is_open else f"{each['judged']:,}",
                    "" if differ is None or is_open else Text(f"{differ:,}", "bold red" if differ else ""),
                    f"{each['undetermined']:,}" if each["undetermined"] else "",
                    printable(words.text(str(each["lacks"]))),
                )
            )
    if rows:
        heads = ("decisions", "judged", "differ", "undetermined", "what is missing")
        print_table(console, [words.text(head) for head in heads], rows, range(1, 4))
    if outcome.helps:
        console.print(words.text("To judge more next time:"))
    for best, names in outcome.helps:
        what = words.text(", ").join(map(words.text, names))
        text = words.filled("{text}: {more}", text=words.text(best), more=what)
        print_text(console, Text(printable(text)), 2)


def _print_expectations(console: Console, outcome: Outcome, warehouse: str, words: Language) -> None:
    failed = len(outcome.failed_expectations)
    if outcome.expectations:
        text = f"Expectations: {outcome.expectations - failed:,} of {outcome.expectations:,} hold"
        console.print(Text(words.text(text), "bold red" if failed else ""))
    for row in outcome.failed_expectations[:SHOWN_FINDINGS]:
        where = f"{row['table_name']}, {row['day']}" if row["day"] else row["table_name"]
        broken, seen = row["unexpected_count"], row["unexpected_sample"]
        # One about a table as a whole is broken by no row: what was seen of the table tells why.
        why = words.text(
            f"{broken} {'row breaks' if broken == 1 else 'rows break'} it"
            if broken is not None
            else str(seen or "reason unknown")
        )
        text = printable(f"{where}: {row['expectation']} {row['arguments']}: {why}")
        console.print(Text(f"  {text}", "red"), soft_wrap=True)
    if failed > SHOWN_FINDINGS:
        query = "SELECT * FROM gold.validation_result WHERE NOT passed"
        command = command_text(f'mqreplay sql "{query}" --warehouse {warehouse}')
        more = words.filled("... and {n} more: {command}", n=failed - SHOWN_FINDINGS, command=command)
        console.print(Text(f"  {more}"), soft_wrap=True)
