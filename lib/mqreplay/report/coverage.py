"""What was judged, what was not, and which evidence would help most."""

from __future__ import annotations

import datetime as dt
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import polars as pl

from mqreplay.decisions.decision import Decision, RowCount
from mqreplay.decisions.registry import DECISIONS
from mqreplay.decode.recording.advice import (
    EVIDENCE,
    Mode,
    all_ways,
    how_to_record,
    is_ordinary,
    label_of,
    mode_of,
    with_capture,
)
from mqreplay.lake.warehouse import Warehouse
from mqreplay.report.undetermined import plain_reason, reason_of
from mqreplay.report.window import Window
from mqreplay.words.quantity import listed

CAPTURES: Final = re.compile(r"\.(pcap|pcapng|cap)(\.gz|\.xz|\.zst|\.bz2)?$", re.IGNORECASE)
FINDING_PREFIX: Final = "finding "  # begins the decision of a gap that concerns a kind of finding
State = Literal["judged", "partly judged", "not judged", "none"]


DECISION_NAMES: Final = {decision.name: decision.many for decision in DECISIONS.values()}


@dataclass(frozen=True)
class RecordingAdvice:
    """What to do so that more can be judged next time: the best way, and all ways."""

    best: str
    ways: str


@dataclass(frozen=True)
class Coverage:
    """One kind of decision: how many were judged, how many not and why.

    ``judged`` does not count the undetermined ones. ``agreed`` and ``differing`` are None where RocketMQ has no rule to
    compare with. ``reasons`` are those of the undetermined ones with their counts, the most frequent first. The
    recording lacks the kinds of files ``missing``, without which no ``findings`` of these kinds can be found. ``helps``
    says what to record or to add, the most helpful first.
    """

    decision: str
    one: str
    name: str
    judged: int = 0
    agreed: int | None = None
    differing: int | None = None
    undetermined: int = 0
    reasons: tuple[tuple[str, int], ...] = ()
    missing: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    helps: tuple[RecordingAdvice, ...] = ()

    @property
    def state(self) -> State:
        """Whether the decisions were judged; "none" if there were none and nothing is missing."""
        if self.judged:
            return "partly judged" if self.undetermined or self.missing else "judged"
        return "not judged" if self.undetermined or self.missing else "none"

    @property
    def lacks_ordinary(self) -> bool:
        """Return whether a kind of file is missing that each recording of `mqreplay record` has."""
        return any(map(is_ordinary, self.missing))

    @property
    def lacks(self) -> str:
        """Why decisions are undetermined, or which evidence is missing; empty if all is known."""
        if self.reasons:
            return "; ".join(list(dict.fromkeys(plain_reason(text) for text, _ in self.reasons))[:2])
        return f"no record of {listed([label_of(kind) for kind in self.missing])}" if self.missing else ""


def coverage(
    warehouse: Warehouse, cluster: str, since: dt.date | None = None, until: dt.date | None = None
) -> list[Coverage]:
    """Return what was judged of each kind of decision from a day to another, in the order of DECISIONS.

    None: all days. Kinds without any are in it, too.
    """
    here = Window(warehouse, cluster, since, until).read
    if not warehouse.exists("gold.judgement"):  # ingested, but not replayed
        return [Coverage(each.name, each.one, each.many) for each in DECISIONS.values()]
    files = here("bronze.source_file").filter(pl.col("rows_in") > 0).select("recording", "kind").unique().collect()
    recorded, capture = set(files["kind"]), _capture_of(sorted(set(files["recording"].drop_nulls())))
    lacks = _missing(here("gold.replay_gap"))
    judgements = here("gold.judgement").group_by("decision", "judgement", "reason").agg(pl.col("decisions").sum())
    counts = {each.name: _Counts() for each in DECISIONS.values()}
    for decision, judgement, reason, decisions in judgements.sort("decision", "judgement", "reason").collect().rows():
        if decision in counts:
            counts[decision].add(judgement, reason, decisions)
    for each in DECISIONS.values():
        if each.count is not None:
            _count_rows(counts[each.name], each.count, here(each.count.table))
    return [_coverage(each, counts[each.name], lacks, recorded, capture) for each in DECISIONS.values()]


@dataclass
class _Counts:
    agreed: int = 0
    differing: int = 0
    judged: int = 0
    undetermined: dict[str, int] = field(default_factory=dict)

    def add(self, judgement: str, reason: str, decisions: int) -> None:
        if judgement == "undetermined":
            self.undetermined[reason] = self.undetermined.get(reason, 0) + decisions
            return
        self.judged += decisions
        self.agreed += decisions if judgement == "agree" else 0
        self.differing += decisions if judgement == "differ" else 0


def _count_rows(counts: _Counts, count: RowCount, rows: pl.LazyFrame) -> None:
    is_open = pl.lit(value=False) if count.is_open is None else count.is_open.fill_null(value=True)
    reason = pl.lit("") if count.reason is None else count.reason
    number = pl.len() if count.number is None else count.number
    counted_rows = rows.group_by(is_open.alias("is_open"), pl.when(is_open).then(reason).alias("reason")).agg(number)
    for open_, why, decisions in counted_rows.collect().rows():
        counts.add("undetermined" if open_ else "judged", why or "", decisions)


def _missing(gaps: pl.LazyFrame) -> dict[str, list[str]]:
    """Return the kinds of files that each decision lacks on any day, the most important first."""
    order = list(EVIDENCE)
    rows = gaps.filter(pl.col("evidence").is_in(order)).select("decision", "evidence").unique().collect().rows()
    found: dict[str, list[str]] = {}
    for decision, kind in sorted(rows, key=lambda row: (order.index(row[1]), row)):
        found.setdefault(decision, []).append(kind)
    return found


def _coverage(
    decision: Decision, counts: _Counts, lacks: Mapping[str, Sequence[str]], recorded: Collection[str], capture: str
) -> Coverage:
    reasons = sorted(counts.undetermined.items(), key=lambda each: (-each[1], each[0]))
    mode, lacked = mode_of(recorded), lacks.get(decision.name, [])
    missing = list(dict.fromkeys(decision.next_time(kind, recorded) for kind in lacked))
    helps: dict[RecordingAdvice, None] = {}
    for text, _ in reasons:
        known = reason_of(text)
        if known is not None and known.advice:
            helps[RecordingAdvice(known.advice, known.advice)] = None
        elif known is not None and known.kind not in recorded:
            helps[_help(known.kind, mode, capture)] = None
    helps |= dict.fromkeys(_help(kind, mode, capture) for kind in missing)
    findings = [
        name.removeprefix(FINDING_PREFIX)
        for name, kinds in lacks.items()
        if name.startswith(FINDING_PREFIX) and set(kinds) & set(lacked)
    ]
    has_rule = decision.count is None
    return Coverage(
        decision.name,
        decision.one,
        decision.many,
        counts.judged,
        counts.agreed if has_rule else None,
        counts.differing if has_rule else None,
        sum(counts.undetermined.values()),
        tuple(reasons),
        tuple(missing),
        tuple(findings),
        tuple(helps),
    )


def _help(kind: str, mode: Mode, capture: str) -> RecordingAdvice:
    return RecordingAdvice(*(with_capture(ways, capture) for ways in (how_to_record(kind, mode), all_ways(kind, mode))))


def _capture_of(recordings: Sequence[str]) -> str:
    """Return what to do with the first packet capture in a recording; empty if there is none, or it was imported."""
    for folder in map(Path, recordings):
        imported = Path(f"{folder}-packets")
        with suppress(OSError):  # the recording is in an object store, or was moved
            names = sorted(each.name for each in folder.iterdir() if CAPTURES.search(each.name))
            if names and not imported.exists():
                path, out = (shlex.quote(_short(each)) for each in (folder / names[0], imported))
                return f"run `mqreplay import {path} --out {out}`, and give both folders to `mqreplay nightly`"
    return ""


def _short(path: Path) -> str:
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def most_helpful(coverages: Sequence[Coverage], most: int = 3) -> list[tuple[str, list[str]]]:
    """Return what to do so that more is judged next time, at most ``most``, and what it is good for; the best first.

    Each kind of decision counts for what it lacks most.
    """
    good_for: dict[str, list[Coverage]] = {}
    for each in coverages:
        for help_ in each.helps[:1]:
            good_for.setdefault(help_.best, []).append(each)

    def worth(best: str) -> tuple[int, int, int]:
        known = good_for[best]
        return (sum(not each.judged for each in known), sum(each.undetermined for each in known), len(known))

    best_first = sorted(good_for, key=worth, reverse=True)
    return [(best, [each.name for each in good_for[best]]) for best in best_first[:most]]


def not_judged(coverages: Sequence[Coverage]) -> list[Coverage]:
    """Return the kinds of decisions of which none could be judged."""
    return [each for each in coverages if each.state == "not judged"]
