"""`mqreplay register`: SQL that registers the tables of a warehouse in a metastore."""

from __future__ import annotations

import argparse
from typing import TextIO

from mqreplay.cli.arguments import add_conf, add_warehouse, with_examples

EXAMPLES = with_examples(
    "mqreplay register --warehouse warehouse/night",
    "mqreplay register --warehouse warehouse/night --prefix orders_ > register.sql",
)


def add(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_warehouse(command)
    add_conf(command)
    command.add_argument("--catalog", metavar="NAME", help="catalog of the databases (default: the session's own)")
    command.add_argument(
        "--prefix", metavar="TEXT", default="", help="prefix of each database name: orders_ gives orders_gold"
    )


def print_registration(root: str, catalog: str | None, prefix: str, out: TextIO) -> None:
    """Print one statement per line. No table is read."""
    from mqreplay.lake.existing import require_warehouse
    from mqreplay.lake.registration import registration
    from mqreplay.lake.warehouse import Warehouse

    require_warehouse(root)
    for statement in registration(Warehouse(root), catalog, prefix):
        print(statement, file=out)
