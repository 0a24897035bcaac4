"""Validate all tables of one cluster against their contracts with Great Expectations.

One query of a table counts the rows that may violate each of its rules. A rule without such a row holds; a night in
which all hold does not even import Great Expectations. The others run as Great Expectations does it: first together for
pass or fail, then those that fail alone for the violating rows. Of tables whose rows stay in Spark, Great Expectations'
Spark engine judges all rules.
The results go to gold.validation_result, and as Great Expectations' JSON into a file for each scope.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import duckdb

from mqreplay.lake.contract import Contract
from mqreplay.lake.duckdb_database import quoted
from mqreplay.lake.files import joined, write_text
from mqreplay.lake.row_filter import Days
from mqreplay.quality import Scope
from mqreplay.quality.conditions import (
    COUNTED_BY_RECORD,
    EXPLAINED_COLUMN,
    LINKED_COLUMN,
    MAY_BE_REWIND,
    REWINDS,
    ROW,
    true_of_all,
)
from mqreplay.quality.evidence import before_in_chain, gather, is_chained, rewinds_without_cause
from mqreplay.quality.result import ValidationRow, row_of, sample_format, written
from mqreplay.quality.suite import NUMBER, Rule, columns_needed, rules, suite, truths
from mqreplay.quality.tables import EVERY, Tables, TableSource
from mqreplay.words.printable import json_text

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.datasource.fluent.interfaces import Batch

    from mqreplay.quality.great import Great

Judged = list[tuple["Rule", "ExpectationValidationResult | None"]]
LEDGER = "bronze.source_file"  # validated last: its counts must match the other tables


def validate(
    warehouse: TableSource,
    cluster: str,
    scope: Scope,
    results_dir: str,
    silver_rows: dict[str, int] | None = None,
    judged_one: Callable[[str], None] = lambda name: None,
) -> list[ValidationRow]:
    """Run contracts' expectations on the scope's rows of the cluster, and write their results into ``results_dir``.

    The rows of silver tables are counted in ``silver_rows`` for rows_conserved. ``judged_one`` is called with each
    table's name when it is done.
    """
    names = sorted(scope.names or warehouse.contracts, key=lambda name: (name == LEDGER, name))
    found: list[ValidationRow] = []
    results: dict[str, list[dict[str, Any]]] = {}  # by table
    counts = {} if silver_rows is None else silver_rows
    in_spark = cache(lambda: SparkRules(warehouse, cluster))
    with Tables(warehouse, cluster) as tables:
        great = cache(lambda: great_expectations(tables))
        evidence = gather(tables, scope.day, lambda *of: in_spark().frames.newest_ms(*of))
        for name in names:
            contract = warehouse.contracts[name]
            is_here = tables.is_here(name, _days(contract, scope))
            size = _size(tables, contract, scope) if is_here else in_spark().frames.count(name, _days(contract, scope))
            counts[name] = counts.get(name, 0) + size
            parameters = evidence.parameters(counts)
            if is_here:
                judged = _judged_here(great, tables, contract, scope, parameters)
            else:
                judged = in_spark().judge(contract, scope, parameters)
            results[name] = [written(rule, result, parameters) for rule, result in judged]
            found += [row_of(cluster, scope, contract, rule, result) for rule, result in judged]
            judged_one(name)
    write_text(joined(results_dir, f"{scope.title}.json"), json_text(results, 1, str))
    return found


def _judged_here(
    great: Callable[[], Great], tables: Tables, contract: Contract, scope: Scope, parameters: dict[str, Any]
) -> Judged:
    days, before = _days(contract, scope), _before(tables, contract, scope)
    has_rows = before is not None or tables.has_files(contract.name, days)
    is_empty = not has_rows and contract.name != LEDGER  # silver may have rows of no file
    if not is_empty or not is_counted(contract, parameters):
        make_views(tables, contract, days, before)
    return judge(great, tables, contract, parameters, is_empty=is_empty)


class SparkRules:
    """Rules of tables whose rows stay in Spark, judged by Great Expectations there."""

    def __init__(self, warehouse: TableSource, cluster: str) -> None:
        """Import Great Expectations and Spark."""
        from mqreplay.quality.great import GreatOnSpark
        from mqreplay.quality.spark_frames import SparkFrames

        self.frames, self._great = SparkFrames(warehouse, cluster), GreatOnSpark()

    def judge(self, contract: Contract, scope: Scope, parameters: dict[str, Any]) -> Judged:
        """As `judge`: the result of a rule that holds is None."""
        asked = dict(enumerate(rules(contract)))
        rows, in_order = self.frames.rows(contract, scope)
        named = (contract.name, rows), (f"{contract.name} in order", in_order)
        results = _run(self._great.batch, *named, contract, asked, parameters)
        return [(rule, None if results[number].success else results[number]) for number, rule in asked.items()]


def _days(contract: Contract, scope: Scope) -> Days:
    return Days(scope.day, scope.day) if contract.is_dated else EVERY


def _size(tables: Tables, contract: Contract, scope: Scope) -> int:
    """Return the number of rows of the table in the scope; records, if a line of a file gives many rows."""
    days = _days(contract, scope)
    if not tables.has_files(contract.name, days):
        return 0
    column = "record_id" if contract.name in COUNTED_BY_RECORD else None
    return tables.count(tables.rows(contract.name, [column or "cluster"], days), column)


def _before(tables: Tables, contract: Contract, scope: Scope) -> str | None:
    """Return a query for the start of the day's chains; None for a table without chains."""
    if scope.day is None or not scope.goes_on or not is_chained(contract):
        return None
    return before_in_chain(tables, columns_needed(contract), scope.day)


def great_expectations(tables: Tables) -> Great:
    """Return Great Expectations, which takes seconds to import, over the tables."""
    from mqreplay.quality.great import Great

    return Great(tables)


def judge(
    great: Callable[[], Great],
    tables: Tables,
    contract: Contract,
    parameters: dict[str, Any],
    *,
    is_empty: bool = False,
) -> Judged:
    """Return the table's rules in the contract's order, each with its result; None if no row can violate it.

    ``great`` is called for the others. ``is_empty``: the view has no row. It need not exist if all rules are counted.
    """
    asked = dict(enumerate(rules(contract)))
    held = held_rules(tables, contract, asked, parameters, is_empty=is_empty)
    others = {number: rule for number, rule in asked.items() if number not in held}
    suspected = {number for number, rule in others.items() if rule.suspects(parameters) is not None}
    view, in_order = view_names(contract)
    named = (contract.name, view), (in_order, in_order)
    results = _run(great().batch, *named, contract, others, parameters, suspected) if others else {}
    return [(rule, results.get(number)) for number, rule in asked.items()]


def is_counted(contract: Contract, parameters: dict[str, Any]) -> bool:
    """Return whether a count of rows may prove each rule."""
    return all(rule.suspects(parameters) is not None for rule in rules(contract))


def held_rules(
    tables: Tables, contract: Contract, asked: Mapping[int, Rule], parameters: dict[str, Any], *, is_empty: bool = False
) -> set[int]:
    """Return the numbers of the rules that no row of the table's view violates, as far as one query proves it.

    An empty view proves all rules that a count can prove.
    """
    suspects = {number: rule.suspects(parameters) for number, rule in asked.items()}
    counted = {number: count for number, count in suspects.items() if count is not None}
    if not counted or is_empty:
        return set(counted)
    try:
        (counts,) = tables.run(f"SELECT {', '.join(counted.values())} FROM {view_names(contract)[0]}")
    except duckdb.Error:  # Great Expectations says which rule cannot be evaluated
        return set()
    return {number for number, count in zip(counted, counts, strict=True) if not count}


def _run(
    batch: Callable[[str, Any], Batch],
    rows: tuple[str, Any],
    in_order: tuple[str, Any],
    contract: Contract,
    asked: dict[int, Rule],
    parameters: dict[str, Any],
    suspected: Collection[int] = (),
) -> dict[int, ExpectationValidationResult]:
    """Return the results of these rules by Great Expectations' own metrics.

    ``batch`` makes a batch of a name, and a view or frame: of the ``rows``, and of the same in the order of the key.
    Those ``suspected`` are not asked first for pass or fail.
    """
    results: dict[int, ExpectationValidationResult] = {}
    if first := [number for number in asked if number not in suspected]:
        whole = batch(*rows).validate(
            suite(contract, first), result_format="BOOLEAN_ONLY", expectation_parameters=parameters
        )
        results = {each.expectation_config.meta[NUMBER]: each for each in whole.results}  # type: ignore[union-attr]
    broken = [number for number in asked if number in suspected or not results[number].success]
    if broken:
        by_key = batch(*in_order)
        for number in broken:
            results[number] = by_key.validate(
                asked[number].expectation(number),
                result_format=sample_format(contract, asked[number]),
                expectation_parameters=parameters,
            )
    return results


def make_views(tables: Tables, contract: Contract, days: Days = EVERY, before: str | None = None) -> None:
    """Make the view of a table for its rules, and the same sorted by key for samples.

    ``before`` is a query for the start of the day's chains.
    """
    needed = columns_needed(contract)
    rows = tables.rows(contract.name, needed, days, lost=True) + (f" UNION ALL {before}" if before else "")
    sound = truths(contract)
    view, ordered = view_names(contract)
    key = ", ".join(f"{quoted(name)} NULLS LAST" for name in contract.key)
    in_order = f"SELECT * FROM {view} ORDER BY {key}"
    judged = ""
    if is_chained(contract):
        tables.table(REWINDS, rewinds_without_cause(tables, days))
        certain = true_of_all(tables.run, rows)
        sound |= certain
        if EXPLAINED_COLUMN not in certain:
            # What is sampled comes first: to sort millions of rows for it would take as long as all other rules.
            first = f"SELECT * FROM {view} WHERE NOT {EXPLAINED_COLUMN} ORDER BY {key}"
            in_order = f"({first}) UNION ALL (SELECT * FROM {view} WHERE {EXPLAINED_COLUMN})"
            if LINKED_COLUMN in certain:  # few rows can be rewinds, and no column needs the row before
                others = _with(sound | {EXPLAINED_COLUMN: "true"}, rows)
                judged = f"{others} WHERE NOT {MAY_BE_REWIND} UNION ALL {_with(sound, rows)} WHERE {MAY_BE_REWIND}"
    tables.view(view, judged or _with(sound, rows))
    tables.view(ordered, in_order)


def _with(sound: Mapping[str, str], rows: str) -> str:
    added = "".join(f", {condition} AS {quoted(name)}" for name, condition in sound.items())
    return f"SELECT *{added} FROM ({rows}) AS {ROW}"


def view_names(contract: Contract) -> tuple[str, str]:
    """Return the names of a table's view, and of the same in the order of its key."""
    name = contract.name.replace(".", "_")  # Great Expectations treats the part before a dot as a schema
    return name, f"{name}_in_order"
