"""Each function of core judges a table, or docs/decisions.md says why it cannot."""

from __future__ import annotations

from pathlib import Path

from each_case import for_each
from vectors.catalogue import CORE, Function, functions
from vectors.judged import JUDGES_NOTHING, ON_ARRAYS
from vectors.judged_by import called_in_lib, entry_of, judged_by

ROOT = Path(__file__).parents[2]
KEYS = [function.key for function in functions()]


@for_each(KEYS)
def test_a_function_judges_or_says_why_not(key: str) -> None:
    assert judged_by().get(key) or entry_of(key, ON_ARRAYS) or entry_of(key, JUDGES_NOTHING)


@for_each(functions())
def test_a_rule_is_called_or_is_a_law_of_rocketmq_with_a_reason(function: Function) -> None:
    """A SQL function, decode, the recorder, a decision or a finding calls it. A rule of our own must be called."""
    if function.key not in called_in_lib():
        assert function.java, "no code of lib calls it: delete it, or move it to tests/oracles"
        assert entry_of(function.key, ON_ARRAYS) or entry_of(function.key, JUDGES_NOTHING)


@for_each([*ON_ARRAYS, *JUDGES_NOTHING])
def test_an_entry_is_of_a_function_that_imports_do_not_show(name: str) -> None:
    of_entry = [key for key in KEYS if name in (key, key.partition(":")[0])]
    assert any(not judged_by().get(key) for key in of_entry)


@for_each(ON_ARRAYS)
def test_a_kernel_on_arrays_is_compared_with_core(name: str) -> None:
    test = (ROOT / ON_ARRAYS[name].test).read_text(encoding="utf-8")
    stem = name.partition(":")[0]
    rules = (ROOT / "tests" / "queue_rules.py").read_text(encoding="utf-8") if "queue_rules" in test else ""
    assert (CORE / f"{stem}.py").exists()
    assert f"core.{stem} import" in test + rules or f"core import {stem} as law" in test


def test_nothing_is_judged_by_sql_functions_alone() -> None:
    assert judged_by.__module__ == "vectors.judged_by"
    assert "gold.pull_answer" in judged_by()["get_message:place_offset"]
    assert "gold.allocation" in judged_by()["allocation:allocate_averagely"]
    assert not judged_by().get("slave_suggestion:transfer_cost")
