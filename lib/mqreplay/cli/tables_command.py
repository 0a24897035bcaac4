"""`mqreplay tables`: the tables of a warehouse, or the columns of one, with their comments."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from mqreplay.cli.arguments import add_conf, add_format, add_warehouse, with_examples
from mqreplay.errors import InputError

if TYPE_CHECKING:
    from mqreplay.lake.contract import Contract
    from mqreplay.lake.warehouse import Warehouse

DESCRIPTION = "List the tables of a warehouse: rows, columns, days and content. With TABLE: its columns."
EXAMPLES = with_examples(
    "mqreplay tables --warehouse warehouse/night",
    "mqreplay tables gold.finding --warehouse warehouse/night",
    "mqreplay tables gold.finding --warehouse warehouse/night --format json",
)
HEAD = ["table", "rows", "columns", "first_day", "last_day", "content"]
COLUMNS_HEAD = ["column", "type", "null", "key", "comment"]


def add(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("table", nargs="?", metavar="TABLE", help="show the columns of this table, as gold.finding")
    add_warehouse(command)
    add_conf(command)
    add_format(command)


def run(args: argparse.Namespace) -> None:
    """Print the tables or columns."""
    from mqreplay.lake.existing import require_warehouse

    require_warehouse(args.warehouse)
    from mqreplay.cli.rows import print_rows
    from mqreplay.cli.terminal import note_interruption
    from mqreplay.lake.warehouse import Warehouse

    note_interruption(args.warehouse)
    warehouse = Warehouse(args.warehouse)
    if args.table is None:
        made = [warehouse.contracts[name] for name in warehouse.contracts if warehouse.exists(name)]
        print_rows(HEAD, [table_row(warehouse, contract) for contract in made], args.format)
        return
    print_rows(COLUMNS_HEAD, column_rows(warehouse, args.table), args.format)


def table_row(warehouse: Warehouse, contract: Contract) -> list[Any]:
    """Return a table's row of HEAD. Days are those of partitions, else of the rows."""
    import polars as pl

    files = warehouse.snapshot(contract.name).files
    first = last = None
    if contract.by_day:
        first, last = files["day"].min(), files["day"].max()
    elif contract.has_day:
        days = warehouse.read(contract.name).select(pl.min("day").alias("a"), pl.max("day").alias("b")).collect()
        first, last = days.row(0)
    rows = int(files["num_records"].sum())
    return [contract.name, rows, len(contract.columns), first, last, contract.description]


def column_rows(warehouse: Warehouse, name: str) -> list[list[Any]]:
    """Return the columns of a table as rows of COLUMNS_HEAD. Raises InputError."""
    from mqreplay.lake.similar import unknown_table

    contract = warehouse.contracts.get(name.lower())
    if contract is None:
        raise InputError(unknown_table(name, warehouse.contracts))
    keyed = {column: f"{at}" for at, column in enumerate(contract.key, 1)}
    return [
        [each.name, each.type, "yes" if each.nullable else "", keyed.get(each.name, ""), each.comment]
        for each in contract.columns
    ]
