"""The kinds, groups, topics, brokers and clusters that `mqreplay findings` filters by: names, or patterns of names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final

import polars as pl

from mqreplay.errors import InputError
from mqreplay.findings.every import KINDS
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.names import BROKERS, GROUPS, TOPICS, name_hint, names_in

CLUSTERS: Final = ("bronze.source_file", "bronze.step", "gold.finding", "gold.open_finding")
TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "kind": (),
    "consumer_group": GROUPS,
    "topic": TOPICS,
    "broker_name": BROKERS,
    "cluster": CLUSTERS,
}
WORDS: Final = {"consumer_group": "group", "broker_name": "broker"}


def clusters_of(warehouse: Warehouse) -> set[str]:
    """Return the clusters of the warehouse."""
    return set().union(*(names_in(warehouse, table, "cluster") for table in CLUSTERS))


def matching_names(warehouse: Warehouse, findings: pl.LazyFrame, column: str, patterns: Iterable[str]) -> list[str]:
    """Return the names in a column of the findings that match one of the patterns.

    Raises InputError for a pattern that matches nothing that the warehouse has, so that a typing error is not answered
    by "No findings". Without anything to compare with, no name is refused.
    """
    shown = set(findings.select(pl.col(column).drop_nulls().unique()).collect()[column].to_list())
    chosen: set[str] = set()
    for pattern in patterns:
        found = _matches(shown, pattern)
        if not found:
            _require(warehouse, column, pattern, shown)
        chosen |= found
    return sorted(chosen)


def _matches(names: Collection[str], pattern: str) -> set[str]:
    return {name for name in names if name == pattern or fnmatchcase(name, pattern)}


def _require(warehouse: Warehouse, column: str, pattern: str, shown: set[str]) -> None:
    known = shown | (set(KINDS) if column == "kind" else set())
    for table in TABLES[column]:
        names = names_in(warehouse, table, column)
        if _matches(names, pattern):
            return
        known |= names
    if known and not _matches(known, pattern):
        raise InputError(f"there is no {WORDS.get(column, column)} {pattern}; {name_hint(pattern, known)}")
