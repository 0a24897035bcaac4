"""`mqreplay register`: SQL that registers the tables of a warehouse in a catalog."""

from __future__ import annotations

import argparse
from typing import TextIO

from mqreplay.cli.arguments import add_conf, add_prefix, add_warehouse, with_examples

EXAMPLES = with_examples(
    "mqreplay register --warehouse warehouse/night",
    "mqreplay register --warehouse warehouse/night --prefix orders_ > register.sql",
)


def add(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_warehouse(command)
    add_conf(command)
    command.add_argument("--catalog", metavar="NAME", help="catalog of the databases (default: the session's own)")
    add_prefix(command)
    command.add_argument(
        "--s3-scheme",
        choices=("s3a", "s3"),
        default="s3a",
        help="scheme of locations in S3 (%(default)s, as Spark knows them; s3 for EMR and Databricks)",
    )


def print_registration(root: str, catalog: str | None, prefix: str, s3_scheme: str, out: TextIO) -> None:
    """Print one statement per line. No table is read."""
    from mqreplay.lake.existing import require_warehouse
    from mqreplay.lake.registration import CatalogNames, registration
    from mqreplay.lake.warehouse import Warehouse

    require_warehouse(root)
    for statement in registration(Warehouse(root), CatalogNames(catalog, prefix), s3_scheme):
        print(statement, file=out)
