"""The explanation of a finding: its rule, its evidence in time order, its cause and its effects."""

from __future__ import annotations

import datetime as dt
import shlex
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import polars as pl

from mqreplay.answers.findings import clusters_of, named_finding
from mqreplay.answers.open_findings import nightly_states, seconds_until_closed, watch_note, watched_findings
from mqreplay.answers.whole_evidence import MOST_SELECTED, with_whole_evidence
from mqreplay.evidence.brokers.broker_outages import ROUTE
from mqreplay.evidence.intervals import utc
from mqreplay.findings.every import KINDS
from mqreplay.findings.pulls import SLAVE_PULL
from mqreplay.findings.texts import advice_of
from mqreplay.lake.result_cache import first_days
from mqreplay.lake.row_filter import RowFilter, of_last_day, plain_rows
from mqreplay.lake.sql import check_text
from mqreplay.lake.warehouse import Warehouse
from mqreplay.language.language import Language, in_english
from mqreplay.moment.instant import last_window, recorded
from mqreplay.report.evidence_rows import LIMIT, EvidenceRow, EvidenceRows, evidence_of, sufficient
from mqreplay.report.failover_words import timeline_lines
from mqreplay.report.next_step import advice_parts, broker_addresses, names_of, without_explain
from mqreplay.settings import Settings
from mqreplay.words.errors import InputError
from mqreplay.words.time_span import ONE_DAY

NOT_INSTALLED = "The package that defines this kind of finding is not installed here: its rule is not known."
MOST_DECIDED = 5_000  # rows of evidence whose decisions are shown, the first
OF_FAILOVERS = ("broker_down", "master_changed", "slow_failover")
STEP_TABLE = "gold.failover_step"
ISSUES = "gold.known_issue"
EVIDENCE_PARTS: Final = ("What led to it", "While it lasted", "What came after")
SECOND: Final = dt.timedelta(seconds=1)
MOST_HOLDERS: Final = 8  # clients


@dataclass
class Explanation:
    """``finding``, ``cause`` and ``effects`` are rows of gold.finding as plain values.

    ``known_issues`` are rows of gold.known_issue: faults of RocketMQ that the recorded versions have.
    ``timeline`` has the steps of the failover, each a time and a text, for findings of OF_FAILOVERS. ``holders`` are
    the clients that held the queues of the finding at its begin, with their queues; None: no owners are known.
    ``names`` are the words in capitals of its advice, and ``next_command`` shows the state just after its begin.
    ``silver_kept_from`` is the first day that silver tables still have, if the finding began before it. ``watch`` has
    what `nightly --watch` knows of the finding (open_findings.WATCHED), if it reports it. ``is_open``: watch has it
    open, and no nightly run says otherwise; ``watch_note`` says what nightly runs know, or that watch has stopped.
    """

    finding: dict[str, Any]
    rule: str
    follows: str
    evidence: EvidenceRows
    decisions: list[str] = field(default_factory=list)
    timeline: list[tuple[str, str]] = field(default_factory=list)
    holders: dict[str, list[str]] | None = None
    names: dict[str, str] = field(default_factory=dict)
    next_command: str = ""
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

    def advice(self, words: Language | None = None) -> str:
        """Return what to do next, with the names that are known in its commands, none of which is this explanation."""
        words = words or in_english()
        return "`".join(advice_parts(without_explain(advice_of(self.finding, words), words), self.names))

    def evidence_parts(self) -> list[tuple[str, list[EvidenceRow]]]:
        """Return the rows that led to the event, those while it lasted, and those after it, each with a title."""
        begin, end = self.finding["from_ts"], self.finding["to_ts"]
        parts: dict[str, list[EvidenceRow]] = {title: [] for title in EVIDENCE_PARTS}
        for row in self.evidence.rows:
            is_before = row.ts is None or begin is None or utc(row.ts) <= utc(begin)
            is_after = row.ts is not None and end is not None and utc(row.ts) > utc(end)
            parts[EVIDENCE_PARTS[0] if is_before else EVIDENCE_PARTS[2] if is_after else EVIDENCE_PARTS[1]].append(row)
        return [(title, rows) for title, rows in parts.items() if rows]

    def as_plain(self) -> dict[str, Any]:
        """Return the explanation as the command prints it in JSON; docs/operations.md describes it."""
        return {
            "finding": _without_evidence(self.finding),
            "rule": self.rule,
            "follows": self.follows,
            "next": self.advice(),
            "next_command": self.next_command,
            "holders": self.holders,
            "cause": None if self.cause is None else _without_evidence(self.cause),
            "effects": [_without_evidence(effect) for effect in self.effects],
            "known_issues": [
                {name: value for name, value in issue.items() if name not in ("cluster", "day", "finding_id")}
                for issue in self.known_issues
            ],
            "decisions": self.decisions,
            "timeline": [{"when": when, "what": what} for when, what in self.timeline],
            "silver_kept_from": self.silver_kept_from and self.silver_kept_from.isoformat(),
            "watch": self.watch,
            "evidence_total": self.evidence.total,
            "evidence_unnamed": self.evidence.unnamed,
            "evidence_groups": [asdict(group) for group in self.evidence.groups],
            "evidence": [
                {"table_name": row.table_name, "ts": row.ts, "who": row.who, "what": row.what, "row": row.row}
                for row in self.evidence.rows
            ],
        }


def explain(
    warehouse: Warehouse,
    finding_id: str,
    cluster: str | None,
    limit: int = LIMIT,
    words: Language | None = None,
    settings: Settings | None = None,
) -> Explanation:
    """Return the explanation of the finding whose id begins with ``finding_id``: rule, evidence, cause and effects.

    The rule, texts of evidence and the timeline are in the language ``words``; None: English. ``settings`` say how long
    a finding counts as open; None: the shipped ones. Raises InputError if there is no such finding, or several.
    """
    if limit < 0:
        raise InputError(f"--limit is {limit}; give 0 or more rows")
    check_text(finding_id, cluster)
    limit = min(limit, MOST_SELECTED)
    finding, watch = named_finding(warehouse, finding_id, cluster)
    kind = KINDS.get(finding["kind"])
    # Rows of an open finding are in the tables of the last minutes until a nightly run has judged them.
    tables = (last_window(warehouse) if finding["day"] is None else None) or warehouse
    whole = with_whole_evidence(tables, finding)
    found = evidence_of(tables, finding["cluster"], [whole], max(limit, MOST_DECIDED), whole=True, words=words)
    wording = words or in_english()
    if kind is None:
        rule, follows = wording.text(NOT_INSTALLED), ""
    else:
        rule, follows = kind.text("rule", wording.name), kind.text("follows", wording.name)
    explanation = Explanation(finding, rule, follows, found[finding["finding_id"]], watch=watch)
    first = first_days(warehouse, finding["cluster"]).get("silver")
    began = finding["from_ts"]
    if first is not None and began is not None and began.date() < first:
        explanation.silver_kept_from = first
    explanation.known_issues = _known_issues(warehouse, finding)
    if watch is not None and watch["closed_ts"] is None:
        explanation.is_open, explanation.watch_note = _open_state(
            warehouse, finding, watch, seconds_until_closed(settings or Settings())
        )
    for other in _linked(warehouse, finding):
        if other["finding_id"] == finding["follows_from"]:
            explanation.cause = other
        else:
            explanation.effects.append(other)
    explanation.timeline = _timeline(tables, finding, words)
    explanation.holders = _holders(tables, finding)
    holders = list(explanation.holders or ())
    holder = {"CLIENT_ID": holders[0]} if len(holders) == 1 else {}
    explanation.names = holder | names_of(finding, broker_addresses(tables, finding["cluster"]))
    explanation.next_command = _state_command(tables, finding, warehouse.root)
    evidence, rows = explanation.evidence, explanation.evidence.rows
    if not explanation.is_judged:  # the rows that it names may not be in the tables yet
        missing = max(0, (finding["evidence_count"] or 0) - evidence.total)
        evidence.total, evidence.unnamed = evidence.total + missing, evidence.unnamed + missing
    judged = Counter(text for row in rows if (text := decision(row.table_name, row.row)))
    explanation.decisions = [text if n == 1 else f"{n} times: {text}" for text, n in judged.most_common()]
    rows = evidence.rows = sufficient(rows, began, limit)
    if finding["kind"] == SLAVE_PULL.name:
        explanation.evidence.rows = _with_distances(tables, finding, rows, words or in_english())
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


def _open_state(
    warehouse: Warehouse, finding: dict[str, Any], watch: dict[str, Any], limits: Mapping[str, int]
) -> tuple[bool, str]:
    """Return whether a finding that watch has open is still open, and what says so."""
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
    if finding["kind"] not in OF_FAILOVERS or finding["from_ts"] is None or not warehouse.exists(STEP_TABLE):
        return []
    rows = warehouse.read(STEP_TABLE, RowFilter(finding["cluster"])).filter(
        pl.col("broker_name") == finding["broker_name"]
    )
    begun = pl.col("outage_ts").dt.replace_time_zone(None)
    here = begun.is_between(finding["from_ts"], finding["to_ts"] or finding["from_ts"])
    if finding["kind"] == "slow_failover":  # begins when the late step was due
        here = begun <= finding["from_ts"]
    steps = rows.filter(here, pl.col("broker_id") == finding["broker_id"]).collect()
    return timeline_lines(plain_rows(steps.filter(pl.col("outage_ts") == pl.col("outage_ts").max())), words)


def _holders(warehouse: Warehouse, finding: dict[str, Any]) -> dict[str, list[str]] | None:
    """Return the clients that held the queues of the finding at its begin, with "broker/queue"; None: not known."""
    begin, group, topic = finding["from_ts"], finding["consumer_group"], finding["topic"]
    if begin is None or group is None or topic is None:
        return None
    begin = utc(begin)
    days = RowFilter(finding["cluster"], between=(begin.date() - ONE_DAY, begin.date() + ONE_DAY))
    of_topic = (pl.col("consumer_group") == group) & (pl.col("topic") == topic)
    rows = warehouse.read("gold.queue_owner", days).filter(of_topic).collect()
    if rows.is_empty():
        return None
    here = rows.filter(
        pl.col("from_ts") <= begin,
        pl.col("to_ts").is_null() | (pl.col("to_ts") >= begin),
        *(pl.col(name) == finding[name] for name in ("broker_name", "queue_id") if finding[name] is not None),
    )
    columns = ("client_id", "broker_name", "queue_id")
    holders: dict[str, list[str]] = {}
    for client_id, broker_name, queue_id in here.select(columns).unique().sort(columns).rows():
        holders.setdefault(client_id, []).append(f"{broker_name}/{queue_id}")
    return dict(list(holders.items())[:MOST_HOLDERS])


def _state_command(warehouse: Warehouse, finding: dict[str, Any], root: str) -> str:
    """Return the command that shows the group, or else the broker, just after the begin of the finding.

    ``root`` is the warehouse that the command names.
    """
    begin, cluster = finding["from_ts"], finding["cluster"]
    with suppress(InputError):  # nothing was recorded of the cluster: watch alone knows it
        night = recorded(warehouse, cluster)
        if begin is not None and night.first <= (at := utc(begin).replace(microsecond=0) + SECOND) <= night.last:
            named = [("group", finding["consumer_group"]), ("broker", finding["broker_name"])]
            options = [(option, name) for option, name in named if name is not None][:1]
            options += [("cluster", cluster)] if len(clusters_of(warehouse)) > 1 else []
            options += [("warehouse", root)]
            return " ".join([f"mqreplay at {at:%Y-%m-%dT%H:%M:%S}", *(f"--{o} {shlex.quote(n)}" for o, n in options)])
    return ""


def _without_evidence(finding: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in finding.items() if name not in ("evidence", "evidence_count")}


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
