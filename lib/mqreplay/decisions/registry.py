"""The gold tables of decisions: the records in the modules of this package."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final

from mqreplay import decisions
from mqreplay.decisions.decision import Decision


def _records() -> dict[str, Decision]:
    """Return the records of all modules of this package by table, the most important first."""
    names = [f"{decisions.__name__}.{module.name}" for module in pkgutil.iter_modules(decisions.__path__)]
    modules = [import_module(name) for name in names if name != __name__]
    # A module may also import the record of another one: the table counts once.
    records = {id(value): value for module in modules for value in vars(module).values() if isinstance(value, Decision)}
    tables = {record.table: record for record in records.values()}
    if len(tables) < len(records):
        raise ValueError("two decisions have one table")
    return dict(sorted(tables.items(), key=lambda item: (item[1].importance, item[0])))


DECISIONS: Final[Mapping[str, Decision]] = MappingProxyType(_records())
