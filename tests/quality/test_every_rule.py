"""Every rule of every contract, violated once: it fails, and its sample has the violating row."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mqreplay.lake.contract import Contract, load_contracts
from mqreplay.quality.conditions import KINDS_OF_TABLE
from mqreplay.quality.result import plain
from mqreplay.quality.suite import Rule, rules
from quality_rows import START, Row, at, epoch_ms

CONTRACTS = load_contracts()
CHECKS: dict[str, Row] = {  # what breaks each CHECK
    "line_not_negative": {"line_number": -1},
    "bytes_not_negative": {"bytes": -1},
    "expired_rows_were_there": {"rows_expired": 2},
    "rows_add_up": {"rows_in": 7},
    "queue_id_not_negative": {"queue_id": -1},
    "something_changed": {"previous_offset": 5, "new_offset": 5},
    "counts_fit": {"changed": -1},
    "is_before_the_day": {"to_ts": at(24 * 60)},
}
END = {"recording_end_ms": epoch_ms(START)}


def sound(contract: Contract) -> Row:
    """A row that breaks nothing."""
    row: Row = {"cluster": "c"}
    for rule in contract.quality:
        arguments = rule["kwargs"]
        if "value_set" in arguments:
            row[arguments["column"]] = arguments["value_set"][0]
        if "min_value" in arguments:
            row[arguments["column"]] = arguments["min_value"]
        if "column_A" in arguments:
            row |= pair(contract, arguments, 1, 0)
    named = {"broker_name": "broker-a", "previous_offset": 1, "new_offset": 2}
    row |= {name: value for name, value in named.items() if name in {c.name for c in contract.columns}}
    if contract.name == "bronze.source_file":
        row |= {"rows_in": 3, "rows_out": 1, "rows_quarantined": 1, "rows_duplicate": 1}
    if contract.name == "silver.offset_checkpoint":
        row |= {"to_ts": at(-24 * 60)}
    return row


def pair(contract: Contract, arguments: dict[str, Any], of_a: int, of_b: int) -> Row:
    """Values of the two columns of a rule: numbers, or instants."""
    types = {c.name: c.type for c in contract.columns}
    pairs = ((arguments["column_A"], of_a), (arguments["column_B"], of_b))
    return {name: at(number) if types[name] == "TIMESTAMP" else number for name, number in pairs}


def marked(contract: Contract, number: int, row: Row) -> Row:
    """The row with a key of its own, by which a sample names it."""
    other: dict[str, Callable[[], Any]] = {
        "STRING": lambda: f"{number:03}",
        "INT": lambda: number,
        "BIGINT": lambda: number,
        "TIMESTAMP": lambda: at(number),
    }
    types = {c.name: c.type for c in contract.columns}
    free = [name for name in contract.key if name not in row and types[name] in other]
    return {name: other[types[name]]() for name in free} | row


def breaking(contract: Contract, rule: Rule) -> tuple[list[Row], dict[str, Any]]:
    """Rows that break the rule, beside the sound row; and what must be known of other tables for it."""
    arguments = rule.arguments
    match rule.type:
        case "expect_column_values_to_not_be_null":
            return [{arguments["column"]: None}], {}
        case "expect_compound_columns_to_be_unique":
            return [{}, {}], {}
        case "expect_column_values_to_be_in_set":
            return [{arguments["column"]: "no such word"}], {}
        case "expect_column_values_to_be_between":
            below = [{arguments["column"]: arguments["min_value"] - 1}]
            return below + ([{arguments["column"]: arguments["max_value"] + 1}] if "max_value" in arguments else []), {}
        case "expect_column_pair_values_a_to_be_greater_than_b":
            return [pair(contract, arguments, 0, 1)], {}
        case "expect_check_constraint_to_hold":
            return [CHECKS[arguments["check"]]], {}
        case "expect_known_brokers":
            return [{arguments["column"]: "broker-z"}], {"known_brokers": ["broker-a"]}
        case "expect_offset_continuity":
            link = {"topic": "broken"}
            return [link | {"to_ts": at(1)}, link | {"to_ts": at(2), "previous_offset": 7}], {}
        case "expect_table_to_be_fresh":
            series = [{} for _ in range(rule.kwargs["min_rows"])]
            return series, {"recording_end_ms": epoch_ms(at(24 * 60))}
        case "expect_rows_conserved":
            return [{"rows_in": 7}], {"silver_rows": {"silver.pull": 1}}
    raise AssertionError(f"no rows break {rule.type}; add some")


def is_of_partition(contract: Contract, rule: Rule) -> bool:
    """Whether the rule is that a column of the partition is not null."""
    is_null_rule = rule.type == "expect_column_values_to_not_be_null"
    return is_null_rule and rule.arguments["column"] in contract.partitioned_by


@pytest.mark.parametrize("contract", CONTRACTS.values(), ids=CONTRACTS)
def test_rows_that_break_nothing_pass_every_rule(judged: Any, contract: Contract) -> None:
    row = sound(contract)
    held = {}
    if contract.name == "bronze.source_file":
        row["kind"] = KINDS_OF_TABLE["silver.pull"][0]
        held = {"silver_rows": {"silver.pull": 1}}
    found = judged.all(contract.name, [row], known_brokers=["broker-a"], **END, **held)
    assert [row for row in found if not row.passed] == []
    assert len(found) == len(rules(contract))


def contracts() -> list[Any]:
    """The contracts as parameters: those that have no type of rule that one before has not are long."""
    seen: set[str] = set()
    cases = []
    for name, contract in sorted(CONTRACTS.items(), key=lambda each: -len({rule.type for rule in rules(each[1])})):
        types = {rule.type for rule in rules(contract)}
        cases.append(pytest.param(contract, id=name, marks=pytest.mark.long if types <= seen else ()))
        seen |= types
    return cases


@pytest.mark.parametrize("contract", contracts())
def test_every_rule_that_is_broken_fails_and_shows_rows(judged: Any, contract: Contract) -> None:
    rows, known, shown = [sound(contract)], {}, []
    # No writer of a Delta table takes a null of these columns (tests/lake/test_delta_table.py).
    breakable = [rule for rule in rules(contract) if not is_of_partition(contract, rule)]
    for number, rule in enumerate(breakable, 10):
        broken, parameters = breaking(contract, rule)
        made = [marked(contract, number, sound(contract) | row) for row in broken]
        rows += made
        known |= parameters
        shown.append(made[-1:])
    judged_rules = zip(judged.all(contract.name, rows, **known), rules(contract), strict=True)
    found = [row for row, rule in judged_rules if not is_of_partition(contract, rule)]
    assert [row.expectation for row in found if row.passed] == []
    for row, made, rule in zip(found, shown, breakable, strict=True):
        sample = json.loads(row.unexpected_sample or "[]")
        assert sample, row
        assert "error" not in sample[0], row
        if rule.type in ("expect_table_to_be_fresh", "expect_rows_conserved"):
            continue
        assert row.unexpected_count is not None
        assert row.unexpected_count >= len(sample)
        named = {name: plain(made[0][name]) for name in contract.key if name in made[0] and name != "cluster"}
        assert named
        assert any(named.items() <= one.items() for one in sample), (row, named)
