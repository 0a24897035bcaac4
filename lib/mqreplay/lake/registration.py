"""SQL that registers the tables of a warehouse in a metastore (spark-sql, the Thrift server, Databricks)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mqreplay.errors import InputError
from mqreplay.lake.existing import LAYERS
from mqreplay.lake.sql import check_text
from mqreplay.lake.storage import spark_location
from mqreplay.lake.warehouse import Warehouse

# Characters that every client keeps unchanged: spark-sql and beeline replace ${...} and split at semicolons.
PLAIN = re.compile(r"[A-Za-z0-9/._~+@=,: -]")


def registration(warehouse: Warehouse, catalog: str | None = None, prefix: str = "") -> Iterator[str]:
    """Yield the statements that register each table of the warehouse by its location. No table is read or changed.

    ``prefix`` begins the name of each database, so that the tables of several warehouses fit into one metastore.
    """
    names = [name for name in warehouse.contracts if warehouse.exists(name)]
    for layer in LAYERS:
        tables = [name.partition(".")[2] for name in names if name.startswith(f"{layer}.")]
        if not tables:
            continue
        database = ".".join(map(identifier, [*([] if catalog is None else [catalog]), prefix + layer]))
        yield f"CREATE DATABASE IF NOT EXISTS {database};"
        for table in tables:
            place = literal(spark_location(warehouse.location(f"{layer}.{table}")))
            yield f"CREATE TABLE IF NOT EXISTS {database}.{table} USING delta LOCATION {place};"


def identifier(name: str) -> str:
    """Return ``name`` if it can name a catalog or database of Spark. Raises InputError otherwise.

    >>> identifier("orders_gold")
    'orders_gold'
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise InputError(f"{name!r} cannot name a catalog or database: use letters, digits and _, and no digit first")
    return name


def literal(text: str) -> str:
    r"""Return ``text`` as a string literal of Spark SQL that no client changes.

    >>> print(literal("/data/night"), literal("/it's/${HOME};"))
    '/data/night' '/it\u0027s/\u0024\u007BHOME\u007D\u003B'
    """
    check_text(text)
    return "'" + "".join(c if PLAIN.match(c) else _escaped(c) for c in text) + "'"


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
