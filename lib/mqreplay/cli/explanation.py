"""The explanation of a finding: its rule, its evidence in time order, its cause and its effects."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from mqreplay.cli.named_finding import named_finding
from mqreplay.evidence.brokers.broker_outages import ROUTE
from mqreplay.findings.every import KINDS
from mqreplay.findings.pulls import SLAVE_PULL
from mqreplay.lake.existing import require_warehouse
from mqreplay.lake.kept_days import first_days
from mqreplay.lake.last_day import of_last_day
from mqreplay.lake.plain_rows import plain_rows
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.sql import check_text
from mqreplay.lake.warehouse import Warehouse
from mqreplay.language.language import Language, in_english
from mqreplay.night.open_findings import seconds_until_closed
from mqreplay.night.watched_findings import nightly_states, watch_note, watched_findings
from mqreplay.night.whole_evidence import with_whole_evidence
from mqreplay.report.evidence_rows import LIMIT, ONE_DAY, EvidenceRow, EvidenceRows, evidence_of
from mqreplay.report.failover_words import timeline_lines
from mqreplay.settings import Settings

NOT_INSTALLED = "The package that defines this kind of finding is not installed here: its rule is not known."
MOST_DECIDED = 5_000  # rows of evidence whose decisions are shown, the first
OF_FAILOVERS = ("broker_down", "master_changed", "slow_failover")
STEPS = "gold.failover_step"
ISSUES = "gold.known_issue"


@dataclass
class Explanation:
    """``finding``, ``cause`` and ``effects`` are rows of gold.finding as plain values.

    ``known_issues`` are rows of gold.known_issue: faults of RocketMQ that the recorded versions have.
    ``timeline`` has the steps of the failover, each a time and a text, for findings of OF_FAILOVERS.
    ``silver_kept_from`` is the first day that silver tables still have, if the finding began before it. ``watch`` has
    what `nightly --watch` knows of the finding (watched_findings.WATCHED), if it reports it. ``is_open``: watch has it
    open, and no nightly run says otherwise; ``watch_note`` says what nightly runs know, or that watch has stopped.
    """

    finding: dict[str, Any]
    rule: str
    follows: str
    evidence: EvidenceRows
    decisions: list[str] = field(default_factory=list)
    timeline: list[tuple[str, str]] = field(default_factory=list)
    cause: dict[str, Any] | None = None
    effects: list[dict[str, Any]] = field(default_factory=list)
    known_issues: list[dict[str, Any]] = field(default_factory=list)
    silver_kept_from: dt.date | None = None
    watch: dict[str, Any] | None = None
    is_open: bool = False
    watch_note: str = ""

    @property
    def is_judged(self) -> bool:
        """Return whether a nightly run has judged the finding: its evidence is in the tables."""
        return self.finding["day"] is not None


def explain(
    root: str, finding_id: str, cluster: str | None, limit: int = LIMIT, words: Language | None = None
) -> Explanation:
    """Return the explanation of a finding: its rule, its evidence in time order, its cause and what follows from it.

    Texts of evidence and the timeline are in the language ``words``; None: English.
    """
    check_text(finding_id, cluster)
    require_warehouse(root)
    return explanation_of(Warehouse(root), finding_id, cluster, limit, words)


def explanation_of(
    warehouse: Warehouse, finding_id: str, cluster: str | None, limit: int = LIMIT, words: Language | None = None
) -> Explanation:
    """Return the explanation of the finding whose id begins with ``finding_id``.

    Raises InputError if there is none, or several.
    """
    finding, watch = named_finding(warehouse, finding_id, cluster)
    kind = KINDS.get(finding["kind"])
    whole = with_whole_evidence(warehouse, finding)
    found = evidence_of(warehouse, finding["cluster"], [whole], max(limit, MOST_DECIDED), whole=True, words=words)
    rule, follows = (NOT_INSTALLED, "") if kind is None else (kind.rule, kind.follows)
    explanation = Explanation(finding, rule, follows, found[finding["finding_id"]], watch=watch)
    first = first_days(warehouse, finding["cluster"]).get("silver")
    began = finding["from_ts"]
    if first is not None and began is not None and began.date() < first:
        explanation.silver_kept_from = first
    explanation.known_issues = _known_issues(warehouse, finding)
    if watch is not None and watch["closed_ts"] is None:
        explanation.is_open, explanation.watch_note = _open_state(warehouse, finding, watch)
    for other in _linked(warehouse, finding):
        if other["finding_id"] == finding["follows_from"]:
            explanation.cause = other
        else:
            explanation.effects.append(other)
    explanation.timeline = _timeline(warehouse, finding, words)
    evidence, rows = explanation.evidence, explanation.evidence.rows
    if not explanation.is_judged:  # the rows that it names may not be in the tables yet
        missing = max(0, (finding["evidence_count"] or 0) - evidence.total)
        evidence.total, evidence.unnamed = evidence.total + missing, evidence.unnamed + missing
    judged = Counter(text for row in rows if (text := decision(row.table_name, row.row)))
    explanation.decisions = [text if n == 1 else f"{n} times: {text}" for text, n in judged.most_common()]
    del rows[limit:]
    if finding["kind"] == SLAVE_PULL.name:
        explanation.evidence.rows = _with_distances(warehouse, finding, rows, words or in_english())
    return explanation


def _with_distances(
    warehouse: Warehouse, finding: dict[str, Any], rows: list[EvidenceRow], words: Language
) -> list[EvidenceRow]:
    """Add to each pull how far what it read lay from the end of the commit log, by its answer."""
    ids = [row.row["record_id"] for row in rows if row.table_name == ROUTE]
    days = sorted({row.ts.date() for row in rows if row.ts})
    if not ids:
        return rows
    near = (days[0] - ONE_DAY, days[-1] + ONE_DAY)
    judged = warehouse.read("gold.slave_suggestion", RowFilter(finding["cluster"], between=near))
    named = judged.filter(pl.col("record_id").is_in(ids)).select("record_id", "diff_min", "diff_max", "memory")
    texts = {record_id: distance_text(*numbers, words=words) for record_id, *numbers in named.collect().iter_rows()}
    unknown = distance_text(None, None, None, words=words)

    def with_distance(row: EvidenceRow) -> EvidenceRow:
        more = texts.get(row.row["record_id"], unknown)
        return replace(row, what=words.filled("{text}, {more}", text=row.what, more=more))

    return [with_distance(row) if row.table_name == ROUTE else row for row in rows]


def distance_text(least: int | None, most: int | None, memory: int | None, *, words: Language | None = None) -> str:
    """Return the distance of a read from the end of the commit log, in bytes.

    >>> distance_text(1000, 2000, 500), distance_text(None, 2000, None)
    ('1,000 to 2,000 bytes behind, 500 in memory', 'distance not known')
    """
    filled = (words or in_english()).filled
    if least is None or most is None:
        return filled("distance not known")
    known = {"least": f"{least:,}", "most": f"{most:,}"}
    if memory is None:
        return filled("{least} to {most} bytes behind", **known)
    return filled("{least} to {most} bytes behind, {memory} in memory", memory=f"{memory:,}", **known)


def _open_state(warehouse: Warehouse, finding: dict[str, Any], watch: dict[str, Any]) -> tuple[bool, str]:
    """Return whether a finding that watch has open is still open, and what says so."""
    limits = seconds_until_closed(Settings())
    is_it = pl.col("finding_id") == finding["finding_id"]
    watched = watched_findings(warehouse, RowFilter(finding["cluster"])).filter(is_it).collect().to_dicts()
    (state,) = nightly_states(warehouse, watched, limits).values()
    if state.finding is not None and state.finding["finding_id"] != finding["finding_id"]:
        return not state.is_over, f"The nightly run has it as finding {state.finding['finding_id'][:8]}."
    if state.is_over:
        has = "its end" if state.finding is not None else "no such finding"
        return False, f"The nightly run has judged this time, and has {has}."
    note = watch_note(watch, limits.get(finding["kind"], 0), dt.datetime.now(dt.UTC))
    return True, note if state.finding is not None else f"{note} It is provisional until the nightly run.".lstrip()


def _linked(warehouse: Warehouse, finding: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the finding's cause and its effects."""
    same = of_last_day(warehouse.read("gold.finding", RowFilter(finding["cluster"])), "finding_id")
    is_cause = pl.col("finding_id") == pl.lit(finding["follows_from"], pl.String)
    is_effect = pl.col("follows_from") == finding["finding_id"]
    return plain_rows(same.filter(is_cause | is_effect).sort("from_ts", "kind", "finding_id").collect())


def _known_issues(warehouse: Warehouse, finding: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the known issues of the finding, on its last day; none before a nightly run has judged it."""
    if finding["day"] is None:
        return []
    of_day = warehouse.read(ISSUES, RowFilter(finding["cluster"], days=frozenset({finding["day"]})))
    return plain_rows(of_day.filter(pl.col("finding_id") == finding["finding_id"]).sort("issue").collect())


def _timeline(warehouse: Warehouse, finding: dict[str, Any], words: Language | None) -> list[tuple[str, str]]:
    """Return the steps of the failover that the finding is about, in words."""
    if finding["kind"] not in OF_FAILOVERS or finding["from_ts"] is None or not warehouse.exists(STEPS):
        return []
    rows = warehouse.read(STEPS, RowFilter(finding["cluster"])).filter(pl.col("broker_name") == finding["broker_name"])
    begun = pl.col("outage_ts").dt.replace_time_zone(None)
    here = begun.is_between(finding["from_ts"], finding["to_ts"] or finding["from_ts"])
    if finding["kind"] == "slow_failover":  # begins when the late step was due
        here = begun <= finding["from_ts"]
    steps = rows.filter(here, pl.col("broker_id") == finding["broker_id"]).collect()
    return timeline_lines(plain_rows(steps.filter(pl.col("outage_ts") == pl.col("outage_ts").max())), words)


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return "/".join(_short(v) for v in value.values() if v is not None)[:120]
    if isinstance(value, (list, tuple)):
        inner = ", ".join(_short(v) for v in value)
        return f"[{inner}]" if len(inner) <= 160 else f"[{inner[:150]}... {len(value)} in all]"
    return str(value)


def decision(table: str, row: dict[str, Any]) -> str | None:
    """Return the decision of a judged row as a call with its arguments and its result."""
    if table == "gold.allocation":
        call = f"allocate({row['strategy']!r}, {row['consumer_group']!r}, {row['client_id']!r}, mq_all, cid_all)"
        lists = f"mq_all={_short(row['mq_all'] or [])} cid_all={_short(row['cid_all'] or [])}"
        return f"{call} = {_short(row['expected'] or [])}; it took {_short(row['actual'] or [])}; {lists}"
    if table == "gold.pull_route":
        call = f"find_broker_address_in_subscribe(route, {row['broker_name']!r}, {row['pull_from_which_node']})"
        return f"{call} = broker id {row['expected_broker_id']}; it asked {row['actual_broker_id']}: {row['reason']}"
    if table == "gold.slave_suggestion":
        call = f"slave_suggestion(diff {row['diff_min']} to {row['diff_max']} bytes, memory {row['memory']})"
        return f"{call} -> broker id {row['expected_suggest']}; the broker said {row['recorded_suggest']}"
    if table == "gold.pop_assignment":
        call = f"query_assignment({row['topic']!r}, {row['consumer_group']!r}, {row['client_id']!r})"
        return f"{call}: the broker assigned {_short(row['actual'] or [])}: {row['reason']}"
    if table == "gold.offset_continuity" and row["kind"] == "stale":
        return (
            f"sync_consumer_offset({row['new_offset']}, {row['previous_offset']}) = {row['previous_offset']}: not done,"
            f" {row['broker_name']}-{row['broker_id']} queue {row['queue_id']} kept {row['new_offset']}"
        )
    if table == "gold.offset_continuity":
        return (
            f"update_offset({row['previous_offset']}, {row['new_offset']}, increase_only=False)"
            f" = {row['new_offset']}: {row['kind']} of {row['size']} on {row['broker_name']}-{row['broker_id']}"
            f" queue {row['queue_id']}, cause {row['cause']}"
        )
    return None
