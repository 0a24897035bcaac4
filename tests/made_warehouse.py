"""A warehouse of a few rows: given columns of a row, and valid values in all others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mqreplay.lake.table_files import snapshot
from mqreplay.lake.warehouse import Warehouse
from quality_rows import filled

CLUSTER = "c"


def made_warehouse(root: Path, tables: dict[str, list[dict[str, Any]]]) -> Warehouse:
    """Return a warehouse that holds these rows, of one cluster unless they say another. Each table is one commit."""
    warehouse = Warehouse(str(root))
    for name, rows in tables.items():
        contract = warehouse.contracts[name]
        warehouse.replace_rows(name, [filled(contract, {"cluster": CLUSTER, **row}) for row in rows], None)
    return warehouse


def live_files(warehouse: Warehouse, name: str) -> list[str]:
    """Return the paths of the files of the table's last version, below its folder."""
    return snapshot(warehouse.location(name)).files["path"].to_list()
