"""The rules of one gold table are in few files: a reader opens at most four modules of judge, by its own imports."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mqreplay import judge
from mqreplay.lake.contract import load_contracts

MOST_FILES = 4
FOLDER = Path(judge.__file__).parent
# They know arrays, frames and times, but no rule.
TOOLS = {"distinct", "frame_arrays", "nearest", "saturating", "sorted_runs", "time_spans", "wide_rows"}
# The modules that run/ calls for the table's rows. Outages of brokers, with which stale copies are compared, and facts
# of the whole night are results of their own.
CALLED = {
    "gold.allocation": {"allocation"},
    "gold.delivery_audit": {"delivery_audit", "audit_scope", "membership"},
    "gold.failover_exposure": {"failover_exposure", "slave_copies", "queue_events"},
    "gold.group_status": {"group_status", "status_windows", "queue_events"},
    "gold.judgement": {"judgement"},
    "gold.offset_continuity": {"offset_continuity", "offset_causes", "slave_copies", "queue_events"},
    "gold.pop_assignment": {"pop_assignments"},
    "gold.pop_receipt": {"pop_receipts"},
    "gold.pull_route": {"pull_route", "route_changes"},
    "gold.queue_owner": {"queue_owner", "membership"},
    "gold.queue_progress": {"queue_progress", "queue_events"},
    "gold.replay_gap": {"replay_gap"},
    "gold.slave_suggestion": {"slave_suggestion"},
}


def imported(module: str) -> set[str]:
    """Return the modules of judge that a module imports."""
    found = set()
    for node in ast.walk(ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        parts = [name.split(".") for name in names]
        found |= {part[2] for part in parts if part[:2] == ["mqreplay", "judge"]}
    return found


def needed(modules: set[str]) -> set[str]:
    """Return the modules and all that they import, directly or not."""
    found: set[str] = set()
    while modules:
        found |= modules
        modules = set().union(*map(imported, modules)) - found
    return found


def test_every_gold_table_of_judge_is_listed() -> None:
    others = {"gold.finding", "gold.open_finding", "gold.validation_result"}  # of findings/, night/ and quality/
    assert set(CALLED) == {name for name in load_contracts() if name.startswith("gold.")} - others


@pytest.mark.parametrize("table", CALLED)
def test_a_table_is_decided_in_few_files(table: str) -> None:
    rules = needed(CALLED[table]) - TOOLS
    assert len(rules) <= MOST_FILES, sorted(rules)


def test_tools_know_no_rule() -> None:
    assert needed(TOOLS) == TOOLS
