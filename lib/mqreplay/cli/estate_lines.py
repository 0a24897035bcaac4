"""The outcome of several clusters in the terminal: one line each, the worst first."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from mqreplay.lake.files import joined, parent
from mqreplay.language.language import Language
from mqreplay.printable import printable
from mqreplay.quantity import counted

if TYPE_CHECKING:
    from mqreplay.night.outcome import Outcome

LEVELS = {"critical": "red", "warning": "yellow", "unknown": "yellow", "info": "cyan", "quiet": "green"}
ORDER = tuple(LEVELS)  # the worst first
NOUNS = {"critical": ("critical", "critical"), "warning": ("warning", "warnings"), "info": ("info", "info")}


def print_estate(console: Console, outcomes: list[Outcome], where: str, words: Language) -> None:
    """Print level, cluster, findings by severity, and what was not judged; then where all findings are.

    ``where`` is the warehouse as a shell takes it.
    """
    named = max(cell_len(printable(each.cluster)) for each in outcomes)
    levelled = Counter(each.level for each in outcomes)
    counts = words.text(", ").join(words.text(f"{levelled[level]} {level}") for level in ORDER if levelled[level])
    console.print(Text("\n" + words.filled("{n} clusters: {counts}", n=len(outcomes), counts=counts), "bold"))
    for each in sorted(outcomes, key=lambda each: (ORDER.index(each.level), each.cluster)):
        name = padded(printable(each.cluster), min(named, 40))
        level = padded(words.text(each.level), 8)
        line = Text.assemble((f"{level} ", LEVELS[each.level]), (name, "bold"), "  ", _summary(each, words))
        console.print(line, soft_wrap=True)
        print_older(console, each, where, words)
    report = next((each.report for each in outcomes if each.report), None)
    if report is not None:
        path = printable(joined(parent(report), "index.html"))
        console.print(Text(words.filled("Overview: {path}", path=path)), soft_wrap=True)
    total = sum(len(each.findings) for each in outcomes)
    if total:
        command = f"mqreplay findings --warehouse {where}"
        console.print(Text(words.text(f"All {counted(total, 'finding')}: {command}")), soft_wrap=True)


def print_older(console: Console, outcome: Outcome, where: str, words: Language) -> None:
    """Print how many findings of nights before this one the page shows, and the command that lists them."""
    older = outcome.older
    if older:
        since = min(str(each["from_ts"])[:10] for each in older)
        command = findings_command(outcome, where, f"--since {since}")
        line = f"{counted(len(older), 'older finding')} since {since}: {command}"
        console.print(Text(words.text(line), "dim"), soft_wrap=True)


def findings_command(outcome: Outcome, where: str, *options: str) -> str:
    """Return the command that lists the findings of a cluster."""
    cluster = printable(shlex.quote(outcome.cluster))
    return " ".join(["mqreplay findings --cluster", cluster, *options, "--warehouse", where])


def headline(outcome: Outcome, words: Language) -> str:
    """Return the days of the night and the verdict."""
    return words.filled(": ").join(filter(None, (outcome.dates, words.text(outcome.verdict))))


def padded(text: str, width: int) -> str:
    """Return a text with spaces up to ``width`` cells of a terminal; a Chinese character takes two.

    >>> padded("ok", 4), padded("严重", 4)
    ('ok  ', '严重')
    """
    return text + " " * max(0, width - cell_len(text))


def _summary(outcome: Outcome, words: Language) -> str:
    counts = Counter(str(finding["severity"]) for finding in outcome.findings)
    found = [words.text(f"{counts[word]:,} {NOUNS[word][counts[word] > 1]}") for word in NOUNS if counts[word]]
    comma = words.text(", ")
    parts = [outcome.dates] if outcome.dates else []
    parts.append(comma.join(found) or words.text("no findings"))
    open_ = [str(each["name"]) for each in outcome.coverage if each["state"] == "not judged"]
    if open_:
        parts.append(words.filled("not judged: {names}", names=comma.join(map(words.text, open_))))
    if outcome.failed_expectations:
        parts.append(words.text(f"{counted(len(outcome.failed_expectations), 'expectation')} failed"))
    return printable(words.text("; ").join(parts))
