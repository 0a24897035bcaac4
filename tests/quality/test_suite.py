"""Suites have exactly the rules of their contracts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from great_expectations.core import ExpectationValidationResult

from each_case import for_each
from mqreplay.lake.contract import Contract, load_contracts
from mqreplay.quality.conditions import KINDS_OF_TABLE
from mqreplay.quality.result import written
from mqreplay.quality.suite import CHECK, NOT_NULL, UNIQUE, columns_needed, rules, suite
from mqreplay.words.errors import ContractError

CONTRACTS = load_contracts()


@for_each(CONTRACTS.values())
def test_every_contract_is_a_suite(contract: Contract) -> None:
    asked = rules(contract)
    of_type = [rule.type for rule in asked]
    assert [r.arguments["column"] for r in asked if r.type == NOT_NULL] == [
        c.name for c in contract.columns if not c.nullable
    ]
    assert of_type.count(UNIQUE) == 1
    assert of_type.count(CHECK) == len(contract.checks)
    assert {rule["type"] for rule in contract.quality} <= set(of_type)
    assert [e.expectation_type for e in suite(contract).expectations] == of_type
    assert set(contract.key) <= set(columns_needed(contract)) <= {c.name for c in contract.columns}


@for_each(CONTRACTS.values())
def test_a_rule_that_holds_is_written_as_great_expectations_does(contract: Contract) -> None:
    known = {"known_brokers": ["a"], "recording_end_ms": 1, "silver_rows": {"silver.pull": 3}}
    for number, rule in enumerate(rules(contract)):
        configuration = rule.expectation(number, known).configuration
        result = ExpectationValidationResult(success=True, expectation_config=configuration, result={})
        assert written(rule, None, known) == written(rule, result, known)


@for_each(CONTRACTS.values())
def test_no_two_rules_are_the_same_row_of_the_results(contract: Contract) -> None:
    named = [(rule.type, str(rule.arguments)) for rule in rules(contract)]
    assert len(named) == len(set(named))


def test_our_own_expectations_are_asked_for() -> None:
    asked = {rule["type"] for contract in CONTRACTS.values() for rule in contract.quality}
    own = {"expect_known_brokers", "expect_offset_continuity", "expect_rows_conserved", "expect_table_to_be_fresh"}
    assert own <= asked


def test_rows_are_counted_of_tables_there_are() -> None:
    assert KINDS_OF_TABLE.keys() <= CONTRACTS.keys()


def test_a_key_is_unique_even_where_no_rule_says_so() -> None:
    contract = replace(CONTRACTS["silver.pull"], quality=())
    assert UNIQUE in [rule.type for rule in rules(contract)]


def test_an_expectation_nobody_has_is_an_error_of_the_contract() -> None:
    rule = {"type": "expect_the_unexpected", "kwargs": {}, "description": "no such thing"}
    with pytest.raises(ContractError, match="expect_the_unexpected"):
        suite(replace(CONTRACTS["silver.pull"], quality=(rule,)))


def test_arguments_it_does_not_take_are_too() -> None:
    rule = {"type": "expect_known_brokers", "kwargs": {"colum": "broker_name"}, "description": "a slip"}
    with pytest.raises(ContractError, match="colum"):
        suite(replace(CONTRACTS["silver.pull"], quality=(rule,)))
