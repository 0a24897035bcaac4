"""What was judged, what was not, and which evidence would help most."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import polars as pl

from mqreplay.decisions.replay_gap import next_time
from mqreplay.evidence_advice import EVIDENCE, Mode, all_ways, how_to_record, label_of, mode_of
from mqreplay.lake.warehouse import Warehouse
from mqreplay.quantity import listed
from mqreplay.report.undetermined import NO_POLL, plain_reason, reason_of
from mqreplay.report.window import Window

FINDING: Final = "finding "  # begins the decision of a gap that concerns a kind of finding
State = Literal["judged", "partly judged", "not judged", "none"]


@dataclass(frozen=True)
class DecisionKind:
    """One kind of decision: its gold table and its noun. ``rows`` is the table whose rows, or ``count``, are counted.

    Members are no rows of a gold table: their decision is a kind of finding.
    """

    decision: str
    one: str
    many: str
    rows: str = ""
    is_open: pl.Expr | None = None  # a row is undetermined
    reason: pl.Expr | None = None
    count: pl.Expr | None = None


DECISION_KINDS: Final = (
    DecisionKind("gold.allocation", "rebalance", "rebalances"),
    DecisionKind("gold.pull_route", "pull", "pulls"),
    DecisionKind("gold.slave_suggestion", "slave suggestion", "slave suggestions"),
    DecisionKind("gold.pull_answer", "answer to a pull", "answers to pulls"),
    DecisionKind("gold.queue_start", "start of a queue", "starts of queues"),
    DecisionKind("gold.failover_step", "step of a failover", "steps of failovers"),
    DecisionKind("gold.flow_control", "cache of a queue", "caches of queues"),
    DecisionKind("gold.committed_offset", "committed offset", "committed offsets"),
    DecisionKind("gold.queue_lock", "lock of a queue", "locks of queues"),
    DecisionKind("gold.send_attempt", "try of a send", "tries of sends"),
    DecisionKind("gold.retried_message", "message sent back", "messages sent back"),
    DecisionKind("gold.rebalance_round", "round of rebalances", "rounds of rebalances"),
    DecisionKind("gold.rebalance_step", "step of a rebalance", "steps of rebalances"),
    DecisionKind("gold.pull_batch", "batch of a pull", "batches of pulls"),
    DecisionKind("gold.replication", "flush of a commit log", "flushes of commit logs"),
    DecisionKind("gold.slave_copy", "copy of a slave", "copies of slaves"),
    DecisionKind("gold.delay_progress", "reading of a delay level", "readings of delay levels"),
    DecisionKind("gold.slave_sync", "state of a slave by its master", "states of slaves by their masters"),
    DecisionKind("gold.listed_route", "route of a name server", "routes of name servers"),
    DecisionKind("gold.pop_receipt", "message of POP", "messages of POP"),
    DecisionKind("gold.pop_assignment", "assignment by a broker", "assignments by a broker"),
    DecisionKind("gold.offset_continuity", "offset change", "offset changes", "silver.offset_change"),
    DecisionKind("gold.queue_owner", "queue owner", "queue owners", "gold.queue_owner"),
    DecisionKind(
        f"{FINDING}consumer_lost",
        "member",
        "members",
        "silver.heartbeat",
        count=pl.col("client_id").filter(pl.col("kind") == "HEART_BEAT").n_unique(),
    ),
    DecisionKind(
        "gold.group_status",
        "group status",
        "group statuses",
        "gold.group_status",
        pl.col("status") == "undetermined",
        pl.col("reason"),
    ),
    DecisionKind(
        "gold.failover_exposure",
        "failover estimate",
        "failover estimates",
        "gold.failover_exposure",
        pl.col("redelivered").is_null() & pl.col("bytes_behind").is_null(),
        pl.lit(NO_POLL),
    ),
    DecisionKind(
        "gold.delivery_audit",
        "delivery audit",
        "delivery audits",
        "gold.delivery_audit",
        pl.col("lost").is_null(),
        pl.col("reason"),
    ),
)
NAMES: Final = {decision_kind.decision: decision_kind.many for decision_kind in DECISION_KINDS}


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
    def lacks(self) -> str:
        """Why decisions are undetermined, or which evidence is missing; empty if all is known."""
        if self.reasons:
            return "; ".join(list(dict.fromkeys(plain_reason(text) for text, _ in self.reasons))[:2])
        return f"no record of {listed([label_of(kind) for kind in self.missing])}" if self.missing else ""


def coverage(
    warehouse: Warehouse, cluster: str, since: dt.date | None = None, until: dt.date | None = None
) -> list[Coverage]:
    """Return what was judged of each kind of decision from a day to another, in the order of DECISION_KINDS.

    None: all days. Kinds without any are in it, too.
    """
    here = Window(warehouse, cluster, since, until).read
    if not warehouse.exists("gold.judgement"):  # ingested, but not replayed
        return [
            Coverage(decision_kind.decision, decision_kind.one, decision_kind.many) for decision_kind in DECISION_KINDS
        ]
    kinds = here("bronze.source_file").filter(pl.col("rows_in") > 0).select("kind").unique().collect()
    recorded = set(kinds["kind"])
    lacks = _missing(here("gold.replay_gap"))
    judgements = here("gold.judgement").group_by("decision", "judgement", "reason").agg(pl.col("decisions").sum())
    counts = [_Counts() for _ in DECISION_KINDS]
    by_decision = {decision_kind.decision: count for decision_kind, count in zip(DECISION_KINDS, counts, strict=True)}
    for decision, judgement, reason, decisions in judgements.sort("decision", "judgement", "reason").collect().rows():
        if decision in by_decision:
            by_decision[decision].add(judgement, reason, decisions)
    for decision_kind, count in zip(DECISION_KINDS, counts, strict=True):
        if decision_kind.rows:
            _count_rows(count, decision_kind, here(decision_kind.rows))
    return [
        _coverage(decision_kind, count, lacks, recorded)
        for decision_kind, count in zip(DECISION_KINDS, counts, strict=True)
    ]


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


def _count_rows(counts: _Counts, decision_kind: DecisionKind, rows: pl.LazyFrame) -> None:
    is_open = pl.lit(False) if decision_kind.is_open is None else decision_kind.is_open.fill_null(True)
    reason = pl.lit("") if decision_kind.reason is None else decision_kind.reason
    number_of = pl.len() if decision_kind.count is None else decision_kind.count
    counted_rows = rows.group_by(is_open.alias("is_open"), pl.when(is_open).then(reason).alias("reason")).agg(number_of)
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
    decision_kind: DecisionKind, counts: _Counts, lacks: Mapping[str, Sequence[str]], recorded: Collection[str]
) -> Coverage:
    reasons = sorted(counts.undetermined.items(), key=lambda each: (-each[1], each[0]))
    mode, lacked = mode_of(recorded), lacks.get(decision_kind.decision, [])
    missing = list(dict.fromkeys(next_time(decision_kind.decision, kind, recorded) for kind in lacked))
    helps: dict[RecordingAdvice, None] = {}
    for text, _ in reasons:
        known = reason_of(text)
        if known is not None and known.advice:
            helps[RecordingAdvice(known.advice, known.advice)] = None
        elif known is not None and known.kind not in recorded:
            helps[_help(known.kind, mode)] = None
    helps |= dict.fromkeys(_help(kind, mode) for kind in missing)
    findings = [
        decision.removeprefix(FINDING)
        for decision, kinds in lacks.items()
        if decision.startswith(FINDING) and set(kinds) & set(lacked)
    ]
    has_rule = not decision_kind.rows
    return Coverage(
        decision_kind.decision,
        decision_kind.one,
        decision_kind.many,
        counts.judged,
        counts.agreed if has_rule else None,
        counts.differing if has_rule else None,
        sum(counts.undetermined.values()),
        tuple(reasons),
        tuple(missing),
        tuple(findings),
        tuple(helps),
    )


def _help(kind: str, mode: Mode) -> RecordingAdvice:
    return RecordingAdvice(how_to_record(kind, mode), all_ways(kind, mode))


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
