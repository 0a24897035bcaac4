"""A table's contract -> its expectation suite.

A contract has rules in three places: required columns, ``quality`` rules, and CHECK constraints. Each becomes one
expectation of Great Expectations; nothing else is checked.

CHECK conditions are Spark SQL, and evaluated by DuckDB. Only a part of the language with the same meaning in both is
supported (a test compares them): comparisons, AND, OR, NOT, IS [NOT] NULL, sums and differences of columns and
integers, and CAST to TIMESTAMP.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mqreplay.ingest.offset_checkpoint import CHAIN
from mqreplay.lake.contract import Contract
from mqreplay.lake.duckdb_database import literal, quoted
from mqreplay.quality.conditions import (
    EXPLAINED_COLUMN,
    EXPLAINED_CONDITION,
    LINK,
    LINKED_COLUMN,
    LINKED_CONDITION,
    ROW_COUNTS,
    ROWS_EXPIRED,
    UNIQUE_COLUMN,
    check_column,
    rows_lost,
    unique_condition,
)
from mqreplay.words.errors import ContractError

if TYPE_CHECKING:
    from great_expectations import ExpectationSuite
    from great_expectations.expectations.expectation import Expectation

NOT_NULL = "expect_column_values_to_not_be_null"
UNIQUE = "expect_compound_columns_to_be_unique"
CHECK = "expect_check_constraint_to_hold"
CHAINED = "expect_offset_continuity"
CONSERVED = "expect_rows_conserved"
NUMBER = "rule"  # in the meta of an expectation, because Great Expectations returns results in another order
# Arguments of expectations that come from other tables -> suite parameter of quality/evidence.py.
PARAMETERS = {
    "expect_known_brokers": ("known_brokers",),
    "expect_table_to_be_fresh": ("recording_end_ms",),
    CONSERVED: ("silver_rows",),
}
# Columns that an expectation reads although they are not arguments.
OWN_COLUMNS = {
    CHAINED: (*CHAIN, *LINK),
    CONSERVED: ("path", "kind", "status", *ROW_COUNTS, ROWS_EXPIRED),
}
TOKEN = re.compile(r"\s*(\w+|<=>|<>|<=|>=|!=|[-+=<>(),])|\s*(\S)")
NULL_SAFE = "IS NOT DISTINCT FROM"
EXPECTATION_WORDS = frozenset({"AND", "OR", "NOT", "IS", "NULL", "CAST", "AS", "TIMESTAMP", "TRUE", "FALSE"})


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

    def expectation(self, number: int, parameters: Mapping[str, Any] | None = None) -> Expectation:
        """Return the expectation with its ``number`` in the suite. Raises ContractError for invalid arguments.

        Without ``parameters``, its suite parameters are open.
        """
        kwargs = self.filled(parameters) if parameters else self.kwargs
        try:
            implementation = _implementation(self.type)
            return implementation(**kwargs, description=self.description, meta={NUMBER: number})
        except (TypeError, ValueError) as wrong:
            raise ContractError(f"{self.type} does not take {self.arguments}: {wrong}") from wrong

    def filled(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments for Great Expectations with the values of its suite parameters."""
        return self.kwargs | {name: parameters[name] for name in PARAMETERS.get(self.type, ())}

    def suspects(self, parameters: dict[str, Any]) -> str | None:
        """Return an SQL aggregate over the table's view that is 0 only if no row violates the rule.

        None: only Great Expectations can judge the rule.
        """
        aggregate = SUSPECTS.get(self.type)
        try:
            return None if aggregate is None else aggregate(**self.kwargs | parameters)
        except TypeError:  # a wrong argument: Great Expectations says which
            return None


def rules(contract: Contract) -> list[Rule]:
    """Return all rules of the contract for its table's rows. Raises ContractError for an unknown rule."""
    required = [c.name for c in contract.columns if not c.nullable]
    asked = [_rule(NOT_NULL, {"column": name}, f"{name} is never null") for name in required]
    if contract.key and not any(rule["type"] == UNIQUE for rule in contract.quality):
        asked.append(_rule(UNIQUE, {"column_list": list(contract.key)}, "The key is unique"))
    asked += [_rule(rule["type"], dict(rule["kwargs"]), rule["description"]) for rule in contract.quality]
    return asked + [_check(contract, name, condition) for name, condition in contract.checks.items()]


def suite(contract: Contract, numbers: Collection[int] | None = None) -> ExpectationSuite:
    """Return the rules, or those with these numbers, as a suite of Great Expectations in the same order."""
    from great_expectations import ExpectationSuite

    asked = [(number, rule) for number, rule in enumerate(rules(contract)) if numbers is None or number in numbers]
    return ExpectationSuite(contract.name, expectations=[rule.expectation(number) for number, rule in asked])


def _counted(condition: str) -> str:
    return f"count(*) FILTER (WHERE {condition})"


def _outside(column: str, values: Iterable[object]) -> str:
    return _counted(f"{quoted(column)} NOT IN ({', '.join(literal(str(value)) for value in values)})")


def _not_null(column: str, **_: Any) -> str:
    return _counted(f"{quoted(column)} IS NULL")


def _in_set(column: str, value_set: Iterable[object], **_: Any) -> str:
    return _outside(column, value_set)


def _known_brokers(column: str, known_brokers: Sequence[str], **_: Any) -> str:
    return _outside(column, known_brokers) if known_brokers else "0"


def _between(
    column: str, *, min_value: float | None = None, max_value: float | None = None, **others: Any
) -> str | None:
    bounds = [f"{quoted(column)} < {min_value}"] if min_value is not None else []
    bounds += [f"{quoted(column)} > {max_value}"] if max_value is not None else []
    is_known = bounds and not others.keys() & {"strict_min", "strict_max"}
    return _counted(" OR ".join(bounds)) if is_known else None


def _greater(column_A: str, column_B: str, *, or_equal: bool = False, **_: Any) -> str:
    return _counted(f"NOT {quoted(column_A)} {'>=' if or_equal else '>'} {quoted(column_B)}")


def _unique(column_list: Iterable[str], **_: Any) -> str:
    """Distinct hashes prove distinct rows."""
    return f"count(*) - count(DISTINCT hash({', '.join(map(quoted, column_list))}))"


def _check_holds(column: str, **_: Any) -> str:
    return _counted(f"NOT {quoted(column)}")


def _chained(**_: Any) -> str:
    return _counted(f"NOT ({LINKED_COLUMN} AND {EXPLAINED_COLUMN})")


def _fresh(column: str, max_age_minutes: float, recording_end_ms: int | None, **_: Any) -> str:
    if recording_end_ms is None:
        return "0"
    return f"coalesce({recording_end_ms} - epoch_ms(max({quoted(column)})) > {max_age_minutes} * 60000, false)::INT"


def _conserved(silver_rows: Mapping[str, int], **_: Any) -> str:
    return rows_lost(silver_rows)


# Expectation -> its aggregate (Rule.suspects) by the arguments of the rule and the suite parameters.
SUSPECTS: Mapping[str, Callable[..., str | None]] = {
    NOT_NULL: _not_null,
    "expect_column_values_to_be_in_set": _in_set,
    "expect_known_brokers": _known_brokers,
    "expect_column_values_to_be_between": _between,
    "expect_column_pair_values_a_to_be_greater_than_b": _greater,
    UNIQUE: _unique,
    CHECK: _check_holds,
    CHAINED: _chained,
    CONSERVED: _conserved,
    "expect_table_to_be_fresh": _fresh,
}


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
    columns = (*named, *arguments.get("column_list", ()), *OWN_COLUMNS.get(kind, ()))
    return Rule(kind, arguments, arguments | parameters, columns, description)


def _check(contract: Contract, name: str, condition: str) -> Rule:
    kwargs = {"column": check_column(name), "condition": condition}
    columns = tuple(c.name for c in contract.columns if re.search(rf"\b{c.name}\b", condition))
    arguments = {"check": name, "condition": condition}
    return Rule(CHECK, arguments, kwargs, columns, f"The CHECK {name} holds: {condition}")


def _implementation(kind: str) -> type[Expectation]:
    from great_expectations.exceptions import ExpectationNotFoundError
    from great_expectations.expectations.registry import get_expectation_impl

    import mqreplay.quality.expectations  # noqa: F401 - registers what the contracts name

    try:
        return get_expectation_impl(kind)
    except ExpectationNotFoundError as missing:
        message = f"a contract requires {kind}, which is not an expectation of Great Expectations or mqreplay"
        raise ContractError(message) from missing


def duckdb_condition(condition: str, columns: Collection[str]) -> str:
    """Return Spark's condition in DuckDB's SQL. Raises ContractError for unsupported syntax.

    >>> duckdb_condition("NOT (a <=> b)", {"a", "b"})
    'NOT ( "a" IS NOT DISTINCT FROM "b" )'
    """
    return " ".join(_word(found[1], found[2], condition, columns) for found in TOKEN.finditer(condition))


def _word(word: str | None, other: str | None, condition: str, columns: Collection[str]) -> str:
    if word in columns:
        return f'"{word}"'
    if word is None or (re.match(r"\w", word) and not word.isdigit() and word.upper() not in EXPECTATION_WORDS):
        raise ContractError(f"CHECK ({condition}) has {word or other!r}, which mqreplay does not evaluate")
    return NULL_SAFE if word == "<=>" else word
