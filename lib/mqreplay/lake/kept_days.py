"""The first day that each layer of a cluster still has, after ``mqreplay maintain --keep`` removed older days."""

from __future__ import annotations

import datetime as dt
from typing import Any

from mqreplay.lake.remembered import Question, Remembered
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse

TABLE = "bronze.retention"
LAYERS = ("bronze", "silver", "gold")


def first_days(warehouse: Warehouse, cluster: str) -> dict[str, dt.date]:
    """Return layer -> the first day that is kept; nothing for a layer from which no day was removed."""
    rows = Remembered(warehouse).rows(kept_days(cluster))
    return {layer: dt.date.fromisoformat(first_day) for layer, first_day in rows}


def kept_days(cluster: str) -> Question:
    """Return the query for layer and first_day (ISO 8601) of the cluster's rows of bronze.retention."""

    def read(warehouse: Warehouse) -> list[tuple[Any, ...]]:
        rows = warehouse.read(TABLE, RowFilter(cluster)).select("layer", "first_day").sort("layer").collect().rows()
        return [(layer, first_day.isoformat()) for layer, first_day in rows]

    return Question(f"kept days of {cluster}", read)
