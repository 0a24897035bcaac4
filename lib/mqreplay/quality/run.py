"""All tables of one cluster against their contracts, by Great Expectations.

Each table's rules run together, asking first only whether they hold: one pass over pandas, or on Spark one aggregation
and a job for each rule that needs a window. Only a rule that does not hold is run again, alone, for the rows that break
it. The results go to gold.validation_result, and into Data Docs.
"""

from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from great_expectations.core import ExpectationValidationResult
from pyspark.sql import functions as F

from mqreplay.lake.contract import Contract
from mqreplay.lake.warehouse import Warehouse
from mqreplay.quality.evidence import Evidence, gather
from mqreplay.quality.expectations.rows_conserved import COUNTED_BY_RECORD
from mqreplay.quality.frames import ROW_LIMIT, Rows, fetch
from mqreplay.quality.great import Great
from mqreplay.quality.result import ValidationRow, row_of, sample_format
from mqreplay.quality.suite import NUMBER, Rule, rules, suite

LEDGER = "bronze.source_file"  # goes last: its rows must add up to those of the others
READERS = 4  # tables read at once: most of a small read is planning and waiting
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def validate(
    warehouse: Warehouse, cluster: str, run_id: str, data_docs_dir: str, row_limit: int = ROW_LIMIT
) -> list[ValidationRow]:
    """Runs every contract's expectations on the cluster's rows, and builds Data Docs in ``data_docs_dir``.

    Tables of up to ``row_limit`` rows are judged on pandas, bigger ones on Spark; both give the same rows.
    """
    names = sorted(warehouse.contracts, key=lambda name: (name == LEDGER, name))
    found: list[ValidationRow] = []
    silver_rows: dict[str, int] = {}
    with ThreadPoolExecutor(READERS) as pool:
        gathered = pool.submit(gather, warehouse, cluster)
        reads = {name: pool.submit(_read, warehouse, cluster, name, row_limit) for name in names}
        evidence = gathered.result()
        great = Great(run_id, _end_of(evidence), data_docs_dir)
        for name in names:
            contract, rows = warehouse.contracts[name], reads.pop(name).result()
            silver_rows[name] = rows.distinct("record_id") if name in COUNTED_BY_RECORD else rows.count
            judged = judge(great, contract, rows, evidence.parameters(silver_rows))
            found += [row_of(cluster, run_id, contract, rule, result) for rule, result in judged]
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


def _read(warehouse: Warehouse, cluster: str, name: str, row_limit: int) -> Rows:
    rows = warehouse.read(name).where(F.col("cluster") == cluster)
    return fetch(rows, warehouse.contracts[name], row_limit)


def _end_of(evidence: Evidence) -> dt.datetime:
    return EPOCH + dt.timedelta(milliseconds=evidence.recording_end_ms or 0)
