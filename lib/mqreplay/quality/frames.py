"""A table's rows as an expectation suite is to see them: on pandas while they are few, on Spark when they are
many.

Great Expectations takes a Spark job or more for each table and each failed expectation, which on a small
table is nearly all waiting: pandas answers in milliseconds. So a table of up to ``row_limit`` rows is
fetched once, as Arrow, and a bigger one stays with Spark. Only the columns that its expectations look at
are read.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from mqreplay.lake.contract import Contract
from mqreplay.lake.session import is_small
from mqreplay.lake.sql import holds
from mqreplay.quality.expectations.check_constraint import check_column
from mqreplay.quality.suite import columns_needed

ROW_LIMIT = 200_000
# pandas would make floats of integers with nulls, and lose the last digits of a commit log offset.
PANDAS_TYPES = {
    pa.int64(): pd.Int64Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}


@dataclass(frozen=True)
class Rows:
    """The rows of one table: ``frame`` is a pandas DataFrame, or Spark's where they are many.

    ``count`` is without the rows before them, which are there to be gone on from.
    """

    frame: pd.DataFrame | DataFrame
    count: int

    @property
    def on_spark(self) -> bool:
        """Whether Spark is to do the counting."""
        return isinstance(self.frame, DataFrame)

    def distinct(self, column: str) -> int:
        """How many values the column has."""
        if isinstance(self.frame, DataFrame):
            return self.frame.select(column).distinct().count()
        return int(self.frame[column].nunique())


def fetch(
    table: DataFrame,
    contract: Contract,
    row_limit: int = ROW_LIMIT,
    before: DataFrame | None = None,
    *,
    looks_few: bool = False,
) -> Rows:
    """Reads what the contract's expectations need of ``table``, with the truth of its CHECKs as columns.

    ``before`` are rows of the same table that those of a chain go on from (evidence.py). ``looks_few``: its files are
    small, so that they had better be read at once.
    """
    needed = _needed(table, contract)
    # Of a large night some tables are large, and to count one takes a tenth of what it takes to fetch its first rows.
    if looks_few or is_small(table.sparkSession) or (count := table.count()) <= row_limit:
        few = needed.limit(row_limit + 1).toArrow()
        if few.num_rows <= row_limit:
            count = few.num_rows
            if before is not None:
                few = pa.concat_tables([few, _needed(before, contract).toArrow()], promote_options="default")
            # In the key's order: a sample of what is wrong then does not hang on how files were written.
            return Rows(to_pandas(few.sort_by([(name, "ascending") for name in contract.key])), count)
        count = table.count()
    # Not kept in memory: of a large table each pass reads the few columns it needs sooner than Spark keeps them all.
    return Rows(needed if before is None else needed.unionByName(_needed(before, contract)), count)


def _needed(table: DataFrame, contract: Contract) -> DataFrame:
    checks = [holds(condition).alias(check_column(name)) for name, condition in contract.checks.items()]
    return table.select(*columns_needed(contract), *checks)


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Arrow -> pandas without loss: integers stay integers, whatever is null among them.

    A NUL in a text becomes its picture (U+2400): pandas compares texts no further than to the first one.
    """
    for number, field in enumerate(table.schema):
        if pa.types.is_string(field.type) and pc.any(pc.match_substring(table[number], "\0")).as_py():
            table = table.set_column(number, field, pc.replace_substring(table[number], "\0", "\u2400"))
    return table.to_pandas(types_mapper=PANDAS_TYPES.get)
