"""Everything about one kind of finding, in one record beside the code that finds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from mqreplay.decode.recording.advice import Need
from mqreplay.findings.finding_evidence import FindingEvidence
from mqreplay.findings.limits import Limits
from mqreplay.findings.texts import texts_of
from mqreplay.language.language import ENGLISH

# Both return findings of shape.SCHEMA's columns. The second one also gets the findings of all other kinds.
Find = Callable[[FindingEvidence, Limits], pl.DataFrame]
FindInFindings = Callable[[FindingEvidence, Limits, pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True)
class Cause:
    """Findings of this kind follow from one of kind ``name`` at the same place, up to ``after_s`` seconds after it."""

    name: str
    same: tuple[str, ...]  # columns of gold.finding in which both agree
    after_s: int = 60
    before_s: int = 30  # a cause is seen a little later than what it did: polls and copies are seconds apart
    of_master: bool = False  # only a finding of a master (broker id 0) is the cause
    overlaps: bool = False  # an effect known to a span follows, too, if the cause began within the span
    critical: bool = False  # only a critical finding is the cause, and only of a lesser one


@dataclass(frozen=True)
class FindingKind:
    """One kind of finding. docs/findings.md is generated from these records and their text files.

    ``find`` returns the findings; kinds that one function finds together name the same function. A kind that is made of
    other findings has ``find_in_findings`` instead.
    ``needs`` are the kinds of files without which it cannot be judged, and what replaces them. ``thresholds`` are the
    settings that decide, as ``section.key``. ``causes`` are in the order of their priority. ``ends_after`` is the
    setting, in seconds, after which `nightly --watch` closes a finding without new evidence; None: only the complete
    day can decide, so watch does not report this kind.

    The texts of a kind are in NAME.toml beside its module, see texts.py. A record of a package may have it here
    instead, in English. ``meaning`` says what an operator must understand by it. ``rule`` says when there is one;
    ``follows`` names RocketMQ's class and method behind it, if there is one. ``advice`` names what to do next, with the
    command or the log to read. ``example`` is a possible summary.
    """

    name: str
    confidence: float
    find: Find | None = None
    find_in_findings: FindInFindings | None = None
    needs: tuple[Need, ...] = ()
    thresholds: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    ends_after: str | None = "findings.same_cause_gap_s"
    meaning: str = ""
    rule: str = ""
    follows: str = ""
    advice: str = ""
    example: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for a kind with no function, or with both."""
        if (self.find is None) == (self.find_in_findings is None):
            raise ValueError(f"{self.name}: give either find or find_in_findings")

    def text(self, part: str, lang: str = ENGLISH) -> str:
        """Return its meaning, rule, follows, advice or example."""
        return str(getattr(self, part)) or texts_of(self.name).text(part, lang)
