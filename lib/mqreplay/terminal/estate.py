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
from mqreplay.report.verdict import verdict_in
from mqreplay.terminal.console import command_text, padded
from mqreplay.words.printable import printable
from mqreplay.words.quantity import counted

if TYPE_CHECKING:
    from mqreplay.answers.outcome import Outcome

LEVELS = {"critical": "red", "warning": "yellow", "unknown": "yellow", "info": "green", "quiet": "green"}
ORDER = tuple(LEVELS)  # the worst first
CLUSTERS_NAMED = 3  # clusters of a line on what recordings cannot show


def print_estate(console: Console, outcomes: list[Outcome], where: str, words: Language) -> None:
    """Print level, cluster and verdict, then what the recordings cannot show, and where all findings are.

    ``where`` is the warehouse as a shell takes it.
    """
    named = max(cell_len(printable(each.cluster)) for each in outcomes)
    levelled = Counter(each.level for each in outcomes)
    counts = words.text(", ").join(words.text(f"{levelled[level]} {level}") for level in ORDER if levelled[level])
    console.print(Text("\n" + words.filled("{n} clusters: {counts}", n=len(outcomes), counts=counts), "bold"))
    for each in sorted(outcomes, key=lambda each: (ORDER.index(each.level), each.cluster)):
        name = padded(printable(each.cluster), min(named, 40))
        level = padded(words.text(each.level), 8)
        line = Text.assemble((f"{level} ", LEVELS[each.level]), (name, "bold"), "  ", _verdict(each, words))
        console.print(line, soft_wrap=True)
        print_older(console, each, where, words)
    _print_limits(console, outcomes, words)
    report = next((each.report for each in outcomes if each.report), None)
    if report is not None:
        path = printable(joined(parent(report), "index.html"))
        console.print(Text(words.filled("Overview: {path}", path=path)), soft_wrap=True)
    total = sum(len(each.findings) for each in outcomes)
    if total:
        command = command_text(f"mqreplay findings --warehouse {where}")
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
    return command_text(" ".join(["mqreplay findings --cluster", cluster, *options, "--warehouse", where]))


def headline(outcome: Outcome, words: Language) -> str:
    """Return the days of the night and the verdict."""
    return words.filled(": ").join(filter(None, (outcome.dates, verdict_in(outcome.verdict, outcome.findings, words))))


def _verdict(outcome: Outcome, words: Language) -> str:
    """Return the verdict, and how many expectations failed."""
    failed = len(outcome.failed_expectations)
    more = words.text(f"{counted(failed, 'expectation')} failed") if failed else ""
    return printable(words.text("; ").join(filter(None, [headline(outcome, words).rstrip(".。"), more])))


def _print_limits(console: Console, outcomes: list[Outcome], words: Language) -> None:
    """Print what recordings cannot show, once for all clusters that lack the same."""
    clusters: dict[str, list[str]] = {}
    for each in outcomes:
        names = [words.text(str(kind["name"])) for kind in each.coverage if kind["state"] == "not judged"]
        if names:
            clusters.setdefault(words.text(", ").join(names), []).append(each.cluster)
    for names_text, of in sorted(clusters.items(), key=lambda both: (-len(both[1]), both[1])):
        several = len(of) > CLUSTERS_NAMED
        who = words.text(counted(len(of), "cluster")) if several else words.text(", ").join(of)
        line = words.filled("The recording of {clusters} cannot show: {names}", clusters=who, names=names_text)
        console.print(Text(printable(line), "dim"), soft_wrap=True)
