"""What a person sees in the terminal: progress on stderr, findings and rows on stdout. NO_COLOR is kept (by rich)."""

from __future__ import annotations

import csv
import json
import sys
import threading
import time
from collections import Counter
from typing import TextIO

from pyspark.errors import PySparkException
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mqreplay.errors import InputError
from mqreplay.night import query
from mqreplay.outcome import Outcome
from mqreplay.settings import Settings

COLOURS = {"critical": "bold red", "warning": "yellow", "info": "cyan"}
SHOWN = 40  # findings; the report and gold.finding have all


class Progress:
    """Says on stderr what goes on; on a terminal, a line that also counts the seconds."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, highlight=False)
        self._status = self._console.status("starting Spark") if stream.isatty() else None
        self._began = time.monotonic()
        self._lock = threading.Lock()

    def __enter__(self) -> Progress:
        if self._status is not None:
            self._status.start()
        else:
            self("starting Spark")
        return self

    def __exit__(self, *exc: object) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, what: str) -> None:
        """Tells one thing."""
        seconds = time.monotonic() - self._began
        with self._lock:
            self._console.print(f"[dim]{seconds:6.1f} s[/dim]  {escape(what)}", soft_wrap=True)
            if self._status is not None:
                self._status.update(escape(what))


def print_outcome(outcomes: list[Outcome], step: str, warehouse: str) -> None:
    """Findings, what was judged, what failed, and where the report lies."""
    console = Console(highlight=False)
    for outcome in outcomes:
        console.print(f"\n[bold]{escape(outcome.cluster)}[/bold]  {_files(outcome)}")
        if step != "ingest":
            _print_findings(console, outcome)
            _print_judged(console, outcome)
            _print_expectations(console, outcome)
        if outcome.report:
            console.print(f"Report: {outcome.report}", soft_wrap=True)
    console.print(f'Ask:    mqreplay sql "SELECT * FROM gold.finding" --warehouse {warehouse}', soft_wrap=True)
    told = next((str(f["finding_id"])[:8] for o in outcomes for f in o.findings), None)
    if told and step != "ingest":
        console.print(f"Why:    mqreplay explain {told} --warehouse {warehouse}", soft_wrap=True)


def _files(outcome: Outcome) -> str:
    read = outcome.files.get("read", 0)
    quarantined = f", [yellow]{outcome.quarantined} rows in quarantine[/yellow]" if outcome.quarantined else ""
    return f"{sum(outcome.files.values())} files seen, {read} read{quarantined}"


def _print_findings(console: Console, outcome: Outcome) -> None:
    if not outcome.findings:
        console.print("A quiet night: no findings.")
        return
    # What follows from another finding is counted under its cause: one cause, one line.
    causes = [f for f in outcome.findings if not f["follows_from"]]
    effects = Counter(str(f["follows_from"]) for f in outcome.findings if f["follows_from"])
    for finding in causes[:SHOWN]:
        severity, finding_id = str(finding["severity"]), str(finding["finding_id"])
        when = f"{_time(finding['from_ts'], date=True)} to {_time(finding['to_ts'])} UTC"
        head = (f"{severity:9}", COLOURS[severity]), (f"{finding['kind']:22}", "bold"), (when, "dim")
        console.print(Text.assemble(*head, (f"  {finding_id[:8]}", "dim")))
        follow = effects[finding_id]
        more = f" {follow} more finding{'s follow' if follow > 1 else ' follows'} from it." if follow else ""
        console.print(Padding(Text.assemble(str(finding["summary"]), (more, "dim")), (0, 0, 0, 9)))
    if len(causes) > SHOWN:
        console.print(f"... and {len(causes) - SHOWN} more in gold.finding")


def _time(value: object, date: bool = False) -> str:
    text = str(value)
    return (text[:10] + " " if date else "") + text[11:19] if value else "?"


def _print_judged(console: Console, outcome: Outcome) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("decisions judged", header_style="dim")
    for word in ("agree", "differ", "undetermined"):
        table.add_column(word, justify="right", header_style="dim")
    for name, counts in sorted(outcome.judgements.items()):
        differ = counts.get("differ", 0)
        table.add_row(
            name,
            f"{counts.get('agree', 0):,}",
            Text(f"{differ:,}", "bold red" if differ else ""),
            f"{counts.get('undetermined', 0):,}",
        )
    if outcome.judgements:
        console.print(table)


def _print_expectations(console: Console, outcome: Outcome) -> None:
    failed = len(outcome.failed_expectations)
    if outcome.expectations:
        text = f"Expectations: {outcome.expectations - failed} of {outcome.expectations} hold"
        console.print(text if not failed else f"[bold red]{text}[/bold red]")
    for row in outcome.failed_expectations[:SHOWN]:
        where = f"{row['table_name']}, {row['day']}" if row["day"] else row["table_name"]
        broken, seen = row["unexpected_count"], row["unexpected_sample"]
        # One about a table as a whole is broken by no row: what was seen of the table tells why.
        why = f"{broken} rows break it" if broken is not None else seen or "not told why"
        console.print(Text(f"  {where}: {row['expectation']} {row['arguments']}: {why}", "red"), soft_wrap=True)


def print_query(warehouse: str, text: str, settings: Settings, form: str) -> None:
    """The rows of a query on stdout, as a table, CSV or one JSON object a line."""
    rows = query(warehouse, text, settings)
    names = rows.columns
    try:
        found = [row.asDict(recursive=True) for row in rows.collect()]
    except PySparkException as error:
        raise InputError(f"query: {str(error).splitlines()[0]}") from None
    if form == "json":
        for row in found:
            print(json.dumps(row, ensure_ascii=False, default=_text))
    elif form == "csv":
        writer = csv.writer(sys.stdout)
        writer.writerow(names)
        writer.writerows([_cell(row[n]) for n in names] for row in found)
    else:
        _print_table(names, found)


def _print_table(names: list[str], found: list[dict[str, object]]) -> None:
    table = Table(pad_edge=False)
    for name in names:
        table.add_column(Text(name), overflow="fold")
    for row in found:
        table.add_row(*[Text(_cell(row[n])) for n in names])
    # Piped somewhere there is no terminal to fit into: wide rows stay on their lines.
    width = None if sys.stdout.isatty() else 10_000
    Console(width=width, highlight=False).print(table if names else "")


def _cell(value: object) -> str:
    if value is None:
        return ""
    return (
        json.dumps(value, ensure_ascii=False, default=_text) if isinstance(value, (list, dict)) else str(_text(value))
    )


def _text(value: object) -> object:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "backslashreplace")
    return (
        value.isoformat() if hasattr(value, "isoformat") else value if isinstance(value, (int, float)) else str(value)
    )
