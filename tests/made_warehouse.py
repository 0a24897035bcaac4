"""A warehouse of a few rows: given columns of a row, and valid values in all others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mqreplay.lake.warehouse import Warehouse
from quality_rows import filled

CLUSTER = "c"


def made_warehouse(root: Path, tables: dict[str, list[dict[str, Any]]]) -> Warehouse:
    """Return a warehouse that holds these rows, of one cluster unless they say another. Each table is one commit."""
    warehouse = Warehouse(str(root))
    for name, rows in tables.items():
        contract = warehouse.contracts[name]
        warehouse.put(name, [filled(contract, {"cluster": CLUSTER, **row}) for row in rows], None)
    return warehouse
