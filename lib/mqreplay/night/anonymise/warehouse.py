"""The tables of a warehouse with replaced names, to read."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final

import polars as pl

from mqreplay.findings.texts import PLACE_NAMES, advice_of, summary_of
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.language.language import in_english
from mqreplay.night.anonymise.columns import CLUSTER, MAP_KEY, MAP_VALUE, SETTING, replaced_columns
from mqreplay.night.anonymise.replacements import Replacements

FINDINGS: Final = ("gold.finding", "gold.open_finding")


class AnonymisedWarehouse(Warehouse):
    """A warehouse whose rows have other names. Clusters are selected by their replacements, too.

    Rows are selected by their new texts: give no condition with a name to RowFilter.
    """

    def __init__(self, warehouse: Warehouse, replacements: Replacements | None = None) -> None:
        """Read all names of the warehouse, unless their replacements are known."""
        super().__init__(warehouse.root, warehouse.contracts)
        self._warehouse = warehouse
        self._replacements = replacements or Replacements(warehouse)
        distinct = warehouse.read("bronze.source_file").select(CLUSTER).unique().collect()[CLUSTER]
        self._clusters = {self._replacements.cluster(name): name for name in distinct}

    def anonymised(self, cluster: str) -> str:
        """Return the replacement of a cluster's name."""
        return self._replacements.cluster(cluster)

    def location(self, name: str) -> str:
        """Return the folder of the table."""
        return self._warehouse.location(name)

    def read(self, name: str, rows: RowFilter | None = None) -> pl.LazyFrame:
        """Return rows of the table, with replaced names, in the contract's column order."""
        here = None if rows is None else replace(rows, cluster=self._clusters[rows.cluster])
        found = self._warehouse.read(name, here)
        names = {real: new for new, real in self._clusters.items()}
        cluster = pl.col(CLUSTER).replace_strict(names, default=None, return_dtype=pl.String)
        others = replaced_columns(name, self.contracts[name].arrow_schema, self._expression)
        renamed = found.with_columns(cluster.alias(CLUSTER), **others)
        return renamed.with_columns(_written_anew()) if name in FINDINGS else renamed

    def _expression(self, role: str, values: pl.Expr, of: pl.DataType) -> pl.Expr:
        new = self._replacements.of_role(role)

        def pairs(series: pl.Series) -> pl.Series:
            made = [_pair(new, pair) for pair in series.to_list()]
            return pl.Series(series.name, made, of)

        def texts(series: pl.Series) -> pl.Series:
            distinct = series.drop_nulls().unique()
            made = pl.Series(map(new, distinct.to_list()), dtype=pl.String)
            return series.replace_strict(distinct, made, default=None, return_dtype=pl.String)

        return values.map_batches(pairs if role == SETTING else texts, return_dtype=of, is_elementwise=True)


def _written_anew() -> list[pl.Expr]:
    """Return the summary and the advice of findings, written with the values that the row has now."""
    row = pl.struct("kind", "summary", "advice", "values", *PLACE_NAMES)
    texts = {"summary": partial(summary_of, words=in_english()), "advice": partial(advice_of, words=in_english())}
    return [row.map_elements(text, pl.String).alias(name) for name, text in texts.items()]


def _pair(new: Any, pair: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a setting with another value."""
    if pair is None or pair[MAP_VALUE] is None:
        return pair
    return {MAP_KEY: pair[MAP_KEY], MAP_VALUE: new((pair[MAP_KEY], pair[MAP_VALUE]))}
