"""The rules of one gold table are in few files: at most four modules of evidence and decisions, by their imports."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import mqreplay
from mqreplay.lake.contract import load_contracts

MOST_FILES = 4
FOLDER = Path(mqreplay.__file__).parent
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
    """Return the modules of evidence and decisions that a module imports."""
    found = set()
    (path,) = [path for room in ("evidence", "decisions") for path in (FOLDER / room).rglob(f"{module}.py")]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        parts = [name.removeprefix("mqreplay.").replace("evidence.arrays", "evidence").split(".") for name in names]
        found |= {part[1] for part in parts if part[0] in ("evidence", "decisions") and len(part) > 1}
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
