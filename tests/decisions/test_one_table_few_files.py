"""The rules of one gold table are in few files: modules of evidence and decisions that the replay calls for its rows.

The list is derived from the source of the replay (table_modules.py). The language of the rules does not count: keys,
frames, intervals, records, verdicts and the operations of arrays/, which know no rule.
"""

from __future__ import annotations

import ast

import pytest

from decisions.table_modules import FOLDER, Replay
from mqreplay.lake.contract import load_contracts

REPLAY = Replay.read()
LANGUAGE = {path.stem for path in (FOLDER / "evidence" / "arrays").glob("*.py")} | {
    "decision",
    "frames",
    "intervals",
    "keys",
    "verdict",
}
# The modules of evidence and decisions: dotted name -> name.
MODULES = {
    ".".join(("mqreplay", *path.relative_to(FOLDER).with_suffix("").parts)): path.stem
    for room in ("evidence", "decisions")
    for path in (FOLDER / room).rglob("*.py")
    if path.stem != "__init__"
}
# How many files one must read at most. A table that joins the results of several decisions needs more.
MOST_FILES = {
    "gold.allocation": 7,
    "gold.committed_offset": 8,
    "gold.delay_progress": 2,
    "gold.delivery_audit": 11,
    "gold.failover_exposure": 6,
    "gold.failover_step": 14,
    "gold.flow_control": 5,
    "gold.group_status": 10,
    "gold.judgement": 2,
    "gold.listed_route": 5,
    "gold.member": 1,
    "gold.offset_commit": 4,
    "gold.offset_continuity": 15,
    "gold.pop_assignment": 5,
    "gold.pop_receipt": 3,
    "gold.pull_answer": 5,
    "gold.pull_batch": 4,
    "gold.pull_route": 6,
    "gold.queue_lock": 3,
    "gold.queue_owner": 4,
    "gold.queue_progress": 6,
    "gold.queue_start": 9,
    "gold.rebalance_round": 3,
    "gold.rebalance_step": 4,
    "gold.replay_gap": 2,
    "gold.replication": 4,
    "gold.retried_message": 9,
    "gold.send_attempt": 3,
    "gold.slave_copy": 3,
    "gold.slave_suggestion": 3,
    "gold.slave_sync": 4,
}


def imported(module: str) -> set[str]:
    """Return the modules of evidence and decisions that a module imports, without the language of the rules."""
    found = set()
    (path,) = [path for room in ("evidence", "decisions") for path in (FOLDER / room).rglob(f"{module}.py")]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        found |= {MODULES[name] for name in (*names, *(name.rpartition(".")[0] for name in names)) if name in MODULES}
    return found - LANGUAGE


def needed(modules: set[str]) -> set[str]:
    """Return the modules and all that they import, directly or not."""
    found: set[str] = set()
    while modules:
        found |= modules
        modules = set().union(*map(imported, modules)) - found
    return found


def test_the_replay_makes_every_gold_table_of_decisions() -> None:
    # Of findings/, night/ and quality/.
    others = {"gold.finding", "gold.known_issue", "gold.open_finding", "gold.validation_result"}
    others |= {"gold.prediction", "gold.notification", "gold.mute"}  # what users ask for
    assert set(REPLAY.tables) == {name for name in load_contracts() if name.startswith("gold.")} - others
    assert set(MOST_FILES) == set(REPLAY.tables)


@pytest.mark.parametrize("table", MOST_FILES)
def test_a_table_is_decided_in_few_files(table: str) -> None:
    called = REPLAY.called(table)
    assert table.removeprefix("gold.").rstrip("s") in {module.rstrip("s") for module in called}
    assert len(needed(called)) <= MOST_FILES[table], sorted(needed(called))


def test_a_stuck_queue_is_found_in_few_files() -> None:
    # And findings/stuck_queues.py. night_facts.py says of which groups commits were recorded; what it imports more is
    # of pulls.
    called = REPLAY.called_for("held_standstills")
    assert called == {"standstills", "queue_events", "night_facts"}
    assert needed(called - {"night_facts"}) == {"standstills", "queue_events"}


def test_both_halves_of_a_decision_are_followed() -> None:
    """A table may be judged in shards and merged, in an own function, and through a result of a step."""
    assert {"pull_route", "routes", "night_facts", "client_languages"} == REPLAY.called("gold.pull_route")
    assert {"group_status", "status_windows", "queue_events"} <= REPLAY.called("gold.group_status")
    assert {"offset_continuity", "slave_copies", "queue_ends"} <= REPLAY.called("gold.offset_continuity")


def test_arrays_know_no_rule() -> None:
    for path in (FOLDER / "evidence" / "arrays").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "mqreplay.decisions" not in text
        assert "mqreplay.evidence" not in text.replace("mqreplay.evidence.arrays", "")
