"""The night in one sentence: what went wrong, or what was judged without a problem; and what could not be judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from mqreplay.quantity import counted, listed
from mqreplay.report.coverage import Coverage, not_judged
from mqreplay.report.data import Row
from mqreplay.report.text import number
from mqreplay.severity import WORST_FIRST

MOST_KINDS: Final = 4  # of decisions in the sentence
Level = Literal["critical", "warning", "unknown", "info", "quiet"]


def level(findings: Sequence[Row], coverages: Sequence[Coverage]) -> Level:
    """Return how bad the night was; "unknown" if no problem was found, but something was not judged."""
    severities = {str(each["severity"]) for each in findings}
    if "critical" in severities:
        return "critical"
    if "warning" in severities:
        return "warning"
    if not any(each.judged for each in coverages) or not_judged(coverages):
        return "unknown"
    return "info" if severities else "quiet"


def verdict(findings: Sequence[Row], coverages: Sequence[Coverage]) -> str:
    """Return one sentence on the night: how bad it was, the worst finding, and what could not be judged.

    ``findings`` are rows of gold.finding. Findings that follow from another one are counted with their cause.
    """
    causes = [each for each in findings if not each["follows_from"]] or list(findings)
    worst = sorted(causes, key=lambda f: (WORST_FIRST.index(f["severity"]), str(f["from_ts"] or "")))
    counts = [(sum(f["severity"] == word for f in causes), word) for word in WORST_FIRST]
    nouns = {"critical": "critical finding", "warning": "warning"}
    worst_counts = [counted(count, nouns[word]) for count, word in counts if count and word in nouns]
    open_ = not_judged(coverages)
    to_know = [f"{counted(len(findings), 'finding')} to know"] if findings else []
    if worst_counts:
        parts = [f"{' and '.join(worst_counts)}, the worst: {_lower(_first_sentence(worst[0]))}"]
    elif not any(each.judged for each in coverages):
        first = f"{to_know[0]}, the first: {_lower(_first_sentence(worst[0]))}; nothing else" if to_know else "Nothing"
        return f"{first} could be judged."
    elif open_:
        parts = [f"Judged: {_judged(coverages)}, without a problem", *to_know]
    else:
        parts = ["A quiet night", *to_know]
    if open_:
        parts.append(f"{listed([each.name for each in open_])} could not be judged")
    undetermined = sum(each.undetermined for each in coverages if each.state != "not judged")
    if undetermined:
        parts.append(f"{number(undetermined)} other decisions are undetermined" if open_ else _some(undetermined))
    return "; ".join(parts) + "."


def _judged(coverages: Sequence[Coverage]) -> str:
    """Return the kinds of decisions that were judged with their counts, the most frequent first."""
    known = sorted((each for each in coverages if each.judged), key=lambda each: -each.judged)
    shown = [counted(each.judged, each.one, each.name) for each in known[:MOST_KINDS]]
    more = len(known) - len(shown)
    return listed([*shown, *([counted(more, "more kind of decision", "more kinds of decisions")] if more else [])])


def _some(undetermined: int) -> str:
    return counted(undetermined, "decision is undetermined", "decisions are undetermined")


def _first_sentence(finding: Row) -> str:
    return str(finding["summary"]).split(". ", 1)[0].rstrip(".")


def _lower(text: str) -> str:
    """Return a sentence for use inside another: its first word in lower case, unless it is a name."""
    return text[:1].lower() + text[1:] if text.split(" ", 1)[0].istitle() else text
