"""The night in one sentence: what went wrong, when and where, or what was judged without a problem.

What the recording cannot show is a sentence of its own: a night without packets can be free of problems.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from mqreplay.findings.texts import summary_of
from mqreplay.language.language import ENGLISH, Language, in_english
from mqreplay.report.coverage import Coverage, not_judged
from mqreplay.report.data import Row
from mqreplay.report.text import lasting, number
from mqreplay.words.quantity import counted, listed
from mqreplay.words.severity import WORST_FIRST

MOST_KINDS: Final = 4  # of decisions in a sentence
NAMED: Final = "\ufffc"  # in the place of a sentence
CLAUSE_END: Final = re.compile(r"; |\. |\.$|[；。]")
Level = Literal["critical", "warning", "unknown", "info", "quiet"]


class NightTime(NamedTuple):
    """From when to when the night was recorded; None where no instant is known."""

    first: dt.datetime | None = None
    last: dt.datetime | None = None

    @property
    def day(self) -> dt.date | None:
        """Return the day of a night of one day: a reader knows it."""
        is_one = self.first is not None and self.last is not None and self.first.date() == self.last.date()
        return self.first.date() if is_one and self.first is not None else None


NOT_KNOWN: Final = NightTime()


def level(findings: Sequence[Row], coverages: Sequence[Coverage]) -> Level:
    """Return how bad the night was.

    It is "unknown" if no problem was found, but the recording lacks what each recording of `mqreplay record` has.
    """
    severities = {str(each["severity"]) for each in findings}
    if "critical" in severities:
        return "critical"
    if "warning" in severities:
        return "warning"
    if not any(each.judged for each in coverages) or any(each.lacks_ordinary for each in not_judged(coverages)):
        return "unknown"
    return "info" if severities else "quiet"


def verdict(findings: Sequence[Row], coverages: Sequence[Coverage], recorded: NightTime = NOT_KNOWN) -> str:
    """Return one sentence on the night: the worst finding, when and where; or what was judged, and for how long.

    ``findings`` are rows of gold.finding. Findings that follow from another one are counted with their cause.
    """
    causes = [each for each in findings if not each["follows_from"]] or list(findings)
    worst = sorted(causes, key=lambda f: (WORST_FIRST.index(f["severity"]), str(f["from_ts"] or "")))
    to_know = f"{counted(len(findings), 'finding')} to know" if findings else ""
    nouns = {"critical": ("critical", "critical"), "warning": ("warning", "warnings")}
    counts = {word: sum(f["severity"] == word for f in causes) for word in nouns}
    first, *others = [counted(counts[word], *nouns[word]) for word in nouns if counts[word]] or [""]
    if first:
        return "; ".join([f"{first}: {clause_of(worst[0], recorded.day)}", *others]) + "."
    if not any(each.judged for each in coverages):
        return f"{to_know}, the first: {clause_of(worst[0], recorded.day)}." if to_know else "Nothing could be judged."
    time = "" if None in recorded else f" in {lasting(*recorded)}"
    if any(each.lacks_ordinary for each in not_judged(coverages)):
        text = f"No problem found in what could be judged: {_judged(coverages)}{time}"
    else:
        text = f"No problem found{time}: {_judged(coverages)} judged"
    return "; ".join(filter(None, [text, to_know])) + "."


def limits(coverages: Sequence[Coverage]) -> str:
    """Return one sentence on what the recording cannot show; empty if it shows all."""
    open_ = [each.name for each in not_judged(coverages)]
    more = len(open_) - MOST_KINDS
    shown = [*open_[:MOST_KINDS], *([_more_kinds(more)] if more > 0 else [])]
    undetermined = sum(each.undetermined for each in coverages if each.state != "not judged")
    parts = [f"This recording cannot show: {listed(shown)}"] if shown else []
    if undetermined:
        parts.append(f"{number(undetermined)} other decisions are undetermined" if shown else _some(undetermined))
    return "; ".join(parts) + "." if parts else ""


def verdict_in(verdict: str, findings: Iterable[Row], words: Language) -> str:
    """Return a verdict in a language. ``findings`` have the one whose sentence is in it."""
    if words.name == ENGLISH:
        return verdict
    for finding in findings:
        for day in _days(finding):
            before, sentence, after = verdict.partition(f": {clause_of(finding, day)}")
            if sentence:
                return words.text(f"{before}: {NAMED}{after}").replace(NAMED, sentence_of(finding, day, words))
    return words.text(verdict)


def first_clause(finding: Row, words: Language | None = None) -> str:
    """Return what happened, without its details: the first clause of the summary.

    >>> first_clause({"summary": "The master of a did not answer for 88 s; 3 pulls went to a slave. More."})
    'The master of a did not answer for 88 s'
    """
    summary = str(finding["summary"]) if words is None else summary_of(finding, words)
    return CLAUSE_END.split(summary, maxsplit=1)[0]


def sentence_of(finding: Row, day: dt.date | None = None, words: Language | None = None) -> str:
    """Return what happened, where and when, as one sentence. The ``day`` of a time is left out."""
    words = words or in_english()
    when = _when(finding, day)
    if words.name == ENGLISH:
        return first_clause(finding) + when
    return first_clause(finding, words) + (words.text(f"({when.strip()})") if when else "")


def clause_of(finding: Row, day: dt.date | None, words: Language | None = None) -> str:
    """Return the sentence of `sentence_of`, for use inside another."""
    return _lower(sentence_of(finding, day, words))


def _when(finding: Row, day: dt.date | None) -> str:
    """Return the begin of a finding, to the nearest second: " from 02:51:31", " at 02:45:40"."""
    begin, end = _instant(finding["from_ts"]), _instant(finding.get("to_ts"))
    if begin is None:
        return ""
    nearest = (begin + dt.timedelta(milliseconds=500)).replace(microsecond=0)
    clock = f"{nearest:%H:%M:%S}" if nearest.date() == day else f"{nearest:%Y-%m-%d %H:%M:%S}"
    is_instant = end is not None and end - begin < dt.timedelta(seconds=1)
    return f" at {clock}" if is_instant else f" from {clock}"


def _days(finding: Row) -> Iterable[dt.date | None]:
    """Return the days that `verdict` may have left out of the time of a finding."""
    begin = _instant(finding["from_ts"])
    if begin is not None:  # a time is rounded, also to the next day
        yield from sorted({begin.date(), (begin + dt.timedelta(seconds=1)).date()})
    yield None


def _instant(value: object) -> dt.datetime | None:
    if isinstance(value, str):
        return dt.datetime.fromisoformat(value)
    return value if isinstance(value, dt.datetime) else None


def _judged(coverages: Sequence[Coverage]) -> str:
    """Return the kinds of decisions that were judged with their counts, the most frequent first."""
    known = sorted((each for each in coverages if each.judged), key=lambda each: -each.judged)
    shown = [counted(each.judged, each.one, each.name) for each in known[:MOST_KINDS]]
    more = len(known) - len(shown)
    return listed([*shown, *([_more_kinds(more)] if more else [])])


def _more_kinds(number_of_kinds: int) -> str:
    return counted(number_of_kinds, "more kind of decision", "more kinds of decisions")


def _some(undetermined: int) -> str:
    return counted(undetermined, "decision is undetermined", "decisions are undetermined")


def _lower(text: str) -> str:
    """Return a sentence for use inside another: its first word in lower case, unless it is a name."""
    return text[:1].lower() + text[1:] if text.split(" ", 1)[0].istitle() else text
