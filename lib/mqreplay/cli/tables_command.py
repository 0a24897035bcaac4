"""`mqreplay tables`: the tables of a warehouse, or the columns of one, with their comments; or SQL for a catalog."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from mqreplay.cli.arguments import add_format, add_prefix, add_tables
from mqreplay.cli.command import Command
from mqreplay.words.errors import InputError

if TYPE_CHECKING:
    from mqreplay.lake.contract import Contract
    from mqreplay.lake.warehouse import Warehouse

HEAD = ["table", "rows", "columns", "first_day", "last_day", "content"]
COLUMNS_HEAD = ["column", "type", "null", "key", "comment"]


def add(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("table", nargs="?", metavar="TABLE", help="show the columns of this table, as gold.finding")
    add_tables(command)
    add_format(command)
    command.add_argument("--sql", action="store_true", help="print SQL that registers the tables in a catalog")
    text = "with --sql: catalog of the databases (default: the session's own)"
    command.add_argument("--catalog", metavar="NAME", help=text)
    add_prefix(command)
    text = "with --sql: scheme of locations in S3 (s3a, as Spark knows them; s3 for EMR and Databricks)"
    command.add_argument("--s3-scheme", choices=("s3a", "s3"), help=text)


def run(args: argparse.Namespace) -> None:
    """Print the tables or columns."""
    from mqreplay.cli.rows import print_rows
    from mqreplay.lake.warehouse import Warehouse

    warehouse = Warehouse(args.warehouse)
    if args.sql:
        _print_registration(warehouse, args)
        return
    if args.catalog or args.prefix or args.s3_scheme:
        raise InputError("--catalog, --prefix and --s3-scheme belong to --sql")
    if args.table is None:
        made = [warehouse.contracts[name] for name in warehouse.contracts if warehouse.exists(name)]
        print_rows(HEAD, [table_row(warehouse, contract) for contract in made], args.format)
        return
    print_rows(COLUMNS_HEAD, column_rows(warehouse, args.table), args.format)


def _print_registration(warehouse: Warehouse, args: argparse.Namespace) -> None:
    """Print one statement a line."""
    from mqreplay.lake.registration import CatalogNames, registration

    if args.table is not None:
        raise InputError("--sql is about all tables; leave TABLE out")
    for statement in registration(warehouse, CatalogNames(args.catalog, args.prefix), args.s3_scheme or "s3a"):
        print(statement)


def table_row(warehouse: Warehouse, contract: Contract) -> list[Any]:
    """Return a table's row of HEAD. Days are those of the log, or of the rows if it lacks them."""
    import polars as pl

    files = warehouse.snapshot(contract.name).files
    first = last = None
    if not files["first_day"].has_nulls():
        first, last = files["first_day"].min(), files["last_day"].max()
    elif contract.has_day_column:
        days = warehouse.read(contract.name).select(pl.min("day").alias("a"), pl.max("day").alias("b")).collect()
        first, last = days.row(0)
    rows = int(files["num_records"].sum())
    return [contract.name, rows, len(contract.columns), first, last, contract.description]


def column_rows(warehouse: Warehouse, name: str) -> list[list[Any]]:
    """Return the columns of a table as rows of COLUMNS_HEAD. Raises InputError."""
    from mqreplay.words.similar import unknown_table

    contract = warehouse.contracts.get(name.lower())
    if contract is None:
        raise InputError(unknown_table(name, warehouse.contracts))
    keyed = {column: f"{at}" for at, column in enumerate(contract.key, 1)}
    return [
        [each.name, each.type, "yes" if each.nullable else "", keyed.get(each.name, ""), each.comment]
        for each in contract.columns
    ]


COMMAND = Command("tables", add, run, needs_tables=True)
