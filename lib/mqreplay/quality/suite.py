"""A table's contract -> its expectation suite.

A contract has rules in three places: required columns, ``quality`` rules, and CHECK constraints. Each becomes one
expectation of Great Expectations; nothing else is checked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import great_expectations as gx
from great_expectations.exceptions import ExpectationNotFoundError
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.registry import get_expectation_impl

import mqreplay.quality.expectations  # noqa: F401 - registers what the contracts name
from mqreplay.errors import ContractError
from mqreplay.ingest.offset_checkpoint import CHAIN
from mqreplay.lake.contract import Contract
from mqreplay.quality.conditions import duckdb_condition
from mqreplay.quality.expectations.check_constraint import check_column
from mqreplay.quality.expectations.offset_continuity import (
    EXPLAINED_COLUMN,
    EXPLAINED_CONDITION,
    LINK,
    LINKED_COLUMN,
    LINKED_CONDITION,
)
from mqreplay.quality.expectations.rows_conserved import COUNTS, EXPIRED
from mqreplay.quality.expectations.unique_key import UNIQUE_COLUMN, unique_condition

NOT_NULL = "expect_column_values_to_not_be_null"
UNIQUE = "expect_compound_columns_to_be_unique"
CHECK = "expect_check_constraint_to_hold"
CHAINED = "expect_offset_continuity"
NUMBER = "rule"  # in the meta of an expectation, because Great Expectations returns results in another order
# Arguments of expectations that come from other tables -> suite parameter of quality/evidence.py.
PARAMETERS = {
    "expect_known_brokers": ("known_brokers",),
    "expect_table_to_be_fresh": ("recording_end_ms",),
    "expect_rows_conserved": ("silver_rows",),
}
# Columns that an expectation reads although they are not arguments.
COLUMNS = {
    CHAINED: (*CHAIN, *LINK),
    "expect_rows_conserved": ("path", "kind", "status", *COUNTS, EXPIRED),
}


@dataclass(frozen=True)
class Rule:
    """One expectation of a table.

    ``arguments`` are those of the contract, ``kwargs`` those for Great Expectations, and ``columns`` the columns of the
    table that it reads, in the table's order.
    """

    type: str
    arguments: dict[str, Any]
    kwargs: dict[str, Any]
    columns: tuple[str, ...]
    description: str

    def expectation(self, number: int) -> Expectation:
        """Return the expectation with its ``number`` in the suite. Raises ContractError for invalid arguments."""
        try:
            implementation = _implementation(self.type)
            return implementation(**self.kwargs, description=self.description, meta={NUMBER: number})
        except (TypeError, ValueError) as wrong:
            raise ContractError(f"{self.type} does not take {self.arguments}: {wrong}") from wrong


def rules(contract: Contract) -> list[Rule]:
    """Return all rules of the contract for its table's rows. Raises ContractError for an unknown rule."""
    required = [c.name for c in contract.columns if not c.nullable]
    asked = [_rule(NOT_NULL, {"column": name}, f"{name} is never null") for name in required]
    if contract.key and not any(rule["type"] == UNIQUE for rule in contract.quality):
        asked.append(_rule(UNIQUE, {"column_list": list(contract.key)}, "The key is unique"))
    asked += [_rule(rule["type"], dict(rule["kwargs"]), rule["description"]) for rule in contract.quality]
    return asked + [_check(contract, name, condition) for name, condition in contract.checks.items()]


def suite(contract: Contract) -> gx.ExpectationSuite:
    """Return the rules as a suite of Great Expectations in the same order."""
    numbered = [rule.expectation(number) for number, rule in enumerate(rules(contract))]
    return gx.ExpectationSuite(name=contract.name, expectations=numbered)


def columns_needed(contract: Contract) -> list[str]:
    """Return the table's columns that its expectations or samples read."""
    needed = {*contract.key, *(column for rule in rules(contract) for column in rule.columns)}
    return [c.name for c in contract.columns if c.name in needed]


def truths(contract: Contract) -> dict[str, str]:
    """Return additional columns for expectations with their SQL: whether a row is valid.

    A query computes only the columns that it selects.
    """
    names = [c.name for c in contract.columns]
    found = {
        check_column(name): f"coalesce({duckdb_condition(condition, names)}, false)"
        for name, condition in contract.checks.items()
    }
    for rule in rules(contract):
        if rule.type == UNIQUE:
            found[UNIQUE_COLUMN] = unique_condition(rule.arguments["column_list"])
        if rule.type == CHAINED:
            found[LINKED_COLUMN] = LINKED_CONDITION
            found[EXPLAINED_COLUMN] = EXPLAINED_CONDITION
    return found


def _rule(kind: str, arguments: dict[str, Any], description: str) -> Rule:
    parameters = {name: {"$PARAMETER": name} for name in PARAMETERS.get(kind, ())}
    named = [arguments[key] for key in ("column", "column_A", "column_B") if key in arguments]
    columns = (*named, *arguments.get("column_list", ()), *COLUMNS.get(kind, ()))
    return Rule(kind, arguments, arguments | parameters, columns, description)


def _check(contract: Contract, name: str, condition: str) -> Rule:
    kwargs = {"column": check_column(name), "condition": condition}
    columns = tuple(c.name for c in contract.columns if re.search(rf"\b{c.name}\b", condition))
    arguments = {"check": name, "condition": condition}
    return Rule(CHECK, arguments, kwargs, columns, f"The CHECK {name} holds: {condition}")


def _implementation(kind: str) -> type[Expectation]:
    try:
        return get_expectation_impl(kind)
    except ExpectationNotFoundError as missing:
        message = f"a contract requires {kind}, which is not an expectation of Great Expectations or mqreplay"
        raise ContractError(message) from missing
