"""The outcome of several clusters in the terminal: one line each, the worst first."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from mqreplay.lake.files import joined, parent
from mqreplay.printable import printable

if TYPE_CHECKING:
    from mqreplay.night.outcome import Outcome

LEVELS = {"critical": "red", "warning": "yellow", "unknown": "yellow", "info": "cyan", "quiet": "green"}
ORDER = tuple(LEVELS)  # the worst first
NOUNS = {"critical": ("critical", "critical"), "warning": ("warning", "warnings"), "info": ("info", "info")}


def print_estate(console: Console, outcomes: list[Outcome], where: str) -> None:
    """Print level, cluster, findings by severity, and what was not judged; then where all findings are.

    ``where`` is the warehouse as a shell takes it.
    """
    named = max(len(printable(each.cluster)) for each in outcomes)
    levelled = Counter(each.level for each in outcomes)
    counts = ", ".join(f"{levelled[level]} {level}" for level in ORDER if levelled[level])
    console.print(Text(f"\n{len(outcomes)} clusters: {counts}", "bold"))
    for each in sorted(outcomes, key=lambda each: (ORDER.index(each.level), each.cluster)):
        name = f"{printable(each.cluster):{min(named, 40)}}"
        line = Text.assemble((f"{each.level:9}", LEVELS[each.level]), (name, "bold"), "  ", _summary(each))
        console.print(line, soft_wrap=True)
    report = next((each.report for each in outcomes if each.report), None)
    if report is not None:
        console.print(Text(f"Overview: {printable(joined(parent(report), 'index.html'))}"), soft_wrap=True)
    total = sum(len(each.findings) for each in outcomes)
    if total:
        noun = "finding" if total == 1 else "findings"
        console.print(Text(f"All {total:,} {noun}: mqreplay findings --warehouse {where}"), soft_wrap=True)


def _summary(outcome: Outcome) -> str:
    counts = Counter(str(finding["severity"]) for finding in outcome.findings)
    found = [f"{counts[word]:,} {NOUNS[word][counts[word] > 1]}" for word in NOUNS if counts[word]]
    parts = [", ".join(found) or "no findings"]
    open_ = [str(each["name"]) for each in outcome.coverage if each["state"] == "not judged"]
    if open_:
        parts.append(f"not judged: {', '.join(open_)}")
    if outcome.failed_expectations:
        failed = len(outcome.failed_expectations)
        parts.append(f"{failed} expectation{'s' if failed > 1 else ''} failed")
    return printable("; ".join(parts))
