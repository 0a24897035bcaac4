"""All rows of evidence of a finding: gold.finding keeps the keys of the first ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from mqreplay.evidence.intervals import utc
from mqreplay.findings.evidence_rules import EvidenceRule, rules_of
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.report.evidence_rows import EFFECTS
from mqreplay.words.time_span import ONE_DAY

MOST_SELECTED: Final = 100_000  # rows that are selected again


def with_whole_evidence(warehouse: Warehouse, finding: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row of gold.finding with the keys of all its evidence; as it is if they are not found again.

    The rows are selected by the rules of its kind. They are taken only if all rows that the finding names are among
    them, and if they are not more than it counts: otherwise something else is selected too.
    """
    items = finding["evidence"] or []
    kept = [item for item in items if item["table_name"] != EFFECTS]
    count = finding["evidence_count"] or 0
    if not 0 < len(kept) < count <= MOST_SELECTED or finding["from_ts"] is None or finding["to_ts"] is None:
        return finding
    rules = rules_of(finding["kind"], {item["table_name"] for item in kept})
    found = {(rule.table, record_id) for rule in rules for record_id in _record_ids(warehouse, rule, finding)}
    named = {(item["table_name"], item["record_id"]) for item in kept}
    if len(found) > count or not named < found:
        return finding
    nothing = dict.fromkeys(kept[0])
    whole = [nothing | {"table_name": table, "record_id": record_id} for table, record_id in sorted(found)]
    effects = [item for item in items if item["table_name"] == EFFECTS]
    return {**finding, "evidence": [*whole, *effects], "evidence_count": len(whole)}


def _record_ids(warehouse: Warehouse, rule: EvidenceRule, finding: Mapping[str, Any]) -> list[str]:
    begin, end = utc(finding["from_ts"]) - rule.before, utc(finding["to_ts"]) + rule.after
    # A gold row has the day that was replayed, which may be the day after.
    days = ((begin - ONE_DAY).date(), (end + ONE_DAY).date())
    rows = warehouse.read(rule.table, RowFilter(finding["cluster"], between=days))
    columns = set(rows.collect_schema().names())
    same = [name for name in rule.place if name in columns and finding[name] is not None]
    here = rows.filter(pl.col(rule.instant).is_between(begin, end), *[pl.col(name) == finding[name] for name in same])
    in_utc = {**finding, "from_ts": utc(finding["from_ts"]), "to_ts": utc(finding["to_ts"])}
    return rule.rows(here.collect(), in_utc)["record_id"].unique().to_list()
