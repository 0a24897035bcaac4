"""A warehouse keeps the kind that it began with: tables by path, or by these names in a catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from made_warehouse import made_warehouse
from mqreplay.lake.catalog import MARK, require_names
from mqreplay.lake.registration import CatalogNames
from mqreplay.words.errors import InputError

ORDERS = CatalogNames("unity", "orders_")


def test_a_warehouse_that_began_with_names_keeps_them(tmp_path: Path) -> None:
    root = str(tmp_path / "w")
    require_names(root, None)
    assert not Path(root).exists()
    require_names(root, ORDERS)
    (tmp_path / "w" / "bronze").mkdir()
    require_names(root, ORDERS)
    for others in (None, CatalogNames("unity"), CatalogNames("spark_catalog", "orders_")):
        with pytest.raises(InputError, match="w was begun with --catalog unity --prefix orders_, so its tables are"):
            require_names(root, others)


def test_a_warehouse_that_began_by_path_gets_no_names(tmp_path: Path) -> None:
    warehouse = made_warehouse(tmp_path, {"silver.broker": [{}]})
    require_names(warehouse.root, None)
    with pytest.raises(InputError, match="was begun without --catalog, so its tables are read by path: leave out"):
        require_names(warehouse.root, ORDERS)
    assert not (tmp_path / MARK).exists()


def test_a_damaged_mark_is_one_line(tmp_path: Path) -> None:
    (tmp_path / MARK).write_text("{")
    with pytest.raises(InputError, match=rf"{MARK} is damaged; give a new --warehouse"):
        require_names(str(tmp_path), ORDERS)
