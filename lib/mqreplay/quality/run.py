"""All tables of one cluster against their contracts, by Great Expectations.

Each table's rules run together, asking first only whether they hold: one pass over pandas, or on Spark one aggregation
and a job for each rule that needs a window. Only a rule that does not hold is run again, alone, for the rows that break
it. The results go to gold.validation_result, and into Data Docs.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from great_expectations.core import ExpectationValidationResult
from pyspark.sql import functions as F

from mqreplay.lake.contract import Contract
from mqreplay.lake.warehouse import Warehouse
from mqreplay.quality.evidence import before_in_chain, fresh_by, gather, newest_before
from mqreplay.quality.expectations.rows_conserved import COUNTED_BY_RECORD
from mqreplay.quality.frames import ROW_LIMIT, Rows, fetch
from mqreplay.quality.great import Great
from mqreplay.quality.result import ValidationRow, row_of, sample_format
from mqreplay.quality.scope import Scope
from mqreplay.quality.suite import NUMBER, Rule, rules, suite

LEDGER = "bronze.source_file"  # goes last: its rows must add up to those of the others
FEW_BYTES = 2_000_000  # of a table's files: to count their rows before they are read takes as long again
READERS = 4  # tables read at once: most of a small read is planning and waiting


def validate(
    warehouse: Warehouse,
    cluster: str,
    scope: Scope,
    data_docs_dir: str,
    row_limit: int = ROW_LIMIT,
    silver_rows: dict[str, int] | None = None,
    judged_one: Callable[[str], None] = lambda name: None,
) -> list[ValidationRow]:
    """Runs contracts' expectations on the scope's rows of the cluster, and builds Data Docs in ``data_docs_dir``.

    Tables of up to ``row_limit`` rows are judged on pandas, bigger ones on Spark; both give the same rows. Those of
    silver are added up in ``silver_rows``, which rows_conserved is asked with. ``judged_one`` is told each table's name
    when it is done.
    """
    names = sorted(scope.names or warehouse.contracts, key=lambda name: (name == LEDGER, name))
    found: list[ValidationRow] = []
    counts = {} if silver_rows is None else silver_rows
    with ThreadPoolExecutor(READERS) as pool:
        gathered = pool.submit(gather, warehouse, cluster, scope.day)
        reads = {name: pool.submit(_read, warehouse, cluster, name, row_limit, scope) for name in names}
        evidence = gathered.result()
        great = Great(scope.run_id, evidence.end, str(Path(data_docs_dir, scope.title)))
        for name in names:
            contract, (rows, newest_ms) = warehouse.contracts[name], reads.pop(name).result()
            held = rows.distinct("record_id") if name in COUNTED_BY_RECORD else rows.count
            counts[name] = counts.get(name, 0) + held
            judged = judge(great, contract, rows, evidence.parameters(counts, newest_ms))
            found += [row_of(cluster, scope, contract, rule, result) for rule, result in judged]
            judged_one(name)
    great.build_docs()
    return found


def judge(
    great: Great, contract: Contract, rows: Rows, parameters: dict[str, Any]
) -> list[tuple[Rule, ExpectationValidationResult]]:
    """The table's rules, in the contract's order, each with what Great Expectations found."""
    asked, expectations = rules(contract), suite(contract)
    batch = great.batch(contract.name, rows)
    whole = batch.validate(expectations, result_format="BOOLEAN_ONLY", expectation_parameters=parameters)
    numbers = [result.expectation_config.meta[NUMBER] for result in whole.results]
    for place, number in enumerate(numbers):
        if not whole.results[place].success:
            whole.results[place] = batch.validate(
                expectations.expectations[number],
                result_format=sample_format(contract, asked[number]),
                expectation_parameters=parameters,
            )
    found = dict(zip(numbers, whole.results, strict=True))
    great.keep(whole, batch, expectations)
    return [(rule, found[number]) for number, rule in enumerate(asked)]


def _read(warehouse: Warehouse, cluster: str, name: str, row_limit: int, scope: Scope) -> tuple[Rows, int | None]:
    """The table's rows; and, where the day has none, the newest instant before it by which it must be fresh."""
    table, contract = warehouse.read(name).where(F.col("cluster") == cluster), warehouse.contracts[name]
    few = warehouse.file_bytes(name) < FEW_BYTES
    if scope.day is None or not contract.by_day:
        return fetch(table, contract, row_limit, looks_few=few), None
    of_day = table.where(F.col("day") == F.lit(scope.day))
    before = before_in_chain(warehouse, cluster, contract, of_day, scope.day) if scope.goes_on else None
    rows = fetch(of_day, contract, row_limit, before, looks_few=few)
    column = fresh_by(contract) if scope.goes_on and rows.count == 0 else None
    return rows, None if column is None else newest_before(table, column, scope.day)
