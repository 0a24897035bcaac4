"""The names of groups, topics and brokers that a recording knows."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from typing import Final

import polars as pl

from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import Recorded
from mqreplay.words.errors import InputError
from mqreplay.words.similar import did_you_mean

KNOWN: Final = 8
# Clients behind a proxy are in findings alone.
GROUP_TABLES: Final = ("gold.member", "silver.rebalance", "silver.offset_checkpoint", "gold.finding")
TOPIC_TABLES: Final = ("silver.rebalance", "silver.topic_config")
BROKER_TABLES: Final = ("silver.broker", "silver.broker_runtime", "silver.pull")


def require_names(
    recorded: Recorded, groups: Iterable[str] = (), topics: Iterable[str] = (), brokers: Iterable[str] = ()
) -> None:
    """Raise InputError for the first name that the recording does not know; it names similar ones."""
    for what, column, tables, names in (
        ("group", "consumer_group", GROUP_TABLES, groups),
        ("topic", "topic", TOPIC_TABLES, topics),
        ("broker", "broker_name", BROKER_TABLES, brokers),
    ):
        for name in sorted(names):
            known: set[str] = set()
            for table in tables:
                known |= names_in(recorded.warehouse, table, column, recorded.cluster)
                if name in known:
                    break
            else:
                raise InputError(f"nothing is recorded of the {what} {name}; {name_hint(name, known)}")


def names_in(warehouse: Warehouse, table: str, column: str, cluster: str | None = None) -> set[str]:
    """Return the values of a column, of one cluster or of all."""
    rows = warehouse.read(table, None if cluster is None else RowFilter(cluster))
    return set(rows.select(pl.col(column).drop_nulls().unique()).collect()[column].to_list())


def name_hint(name: str, known: Iterable[str]) -> str:
    """Return what to say of a name that is not known: the one that was meant, or some that are known."""
    known = set(known)
    if matching := sorted(fnmatch.filter(known, name)):
        return f"a pattern is no name: name one of {_listed(matching)}"
    meant = did_you_mean(name, known)
    if meant is not None:
        return f"did you mean {meant}?"
    some = sorted(each for each in known if not each.startswith("%"))
    if not some:
        return "it has none"
    return f"known are {_listed(some)}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - KNOWN} more" if len(names) > KNOWN else ""
    return f"{', '.join(names[:KNOWN])}{more}"
