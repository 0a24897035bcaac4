"""All tables of a warehouse as rows that can be compared, read by delta-rs, and what else lies in its folders."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from mqreplay.lake.maintenance import remove_unused
from mqreplay.lake.warehouse import Warehouse

# Written by the clock of the run, not by the recording.
NOT_COMPARED = {"gold.validation_result": {"run_id", "run_ts"}}
Tables = dict[str, Counter[str]]


def table_names(root: str | Path) -> list[str]:
    """Names of the tables that have at least one version."""
    logs = {path.parent.parent for path in Path(root).glob("*/*/_delta_log/*.json") if path.stem.isdigit()}
    return sorted(f"{folder.parent.name}.{folder.name}" for folder in logs)


def read_tables(root: str | Path) -> Tables:
    """Return the rows of every table as text, each with how often it occurs. Tables without rows are left out."""
    found = {name: _rows(name, Path(root, *name.split("."))) for name in table_names(root)}
    return {name: rows for name, rows in found.items() if rows}


def difference(found: Tables, wanted: Tables) -> str:
    """Return what differs in words, with one row of each table; empty if nothing does."""
    said = []
    for name in sorted(found.keys() | wanted.keys()):
        extra = found.get(name, Counter()) - wanted.get(name, Counter())
        missing = wanted.get(name, Counter()) - found.get(name, Counter())
        if extra or missing:
            samples = [f"{sign} {next(iter(rows))[:200]}" for sign, rows in (("+", extra), ("-", missing)) if rows]
            said.append(f"{name}: {extra.total()} rows too many, {missing.total()} missing: " + " ".join(samples))
    return "\n".join(said)


def left_by_maintenance(root: str | Path) -> list[str]:
    """Return the Parquet files that no version names and that maintenance leaves, although they are old."""
    for path in unused_files(root):
        os.utime(Path(root, path), (0, 0))
    warehouse = Warehouse(str(root))
    for name in table_names(root):
        remove_unused(warehouse, name, 7)
    return unused_files(root)


def unused_files(root: str | Path) -> list[str]:
    """Return the Parquet files in tables' folders that no version of their table names."""
    found = []
    for folder in sorted(path for layer in ("bronze", "silver", "gold") for path in Path(root, layer).glob("*")):
        named = {name for version in (folder / "_delta_log").glob("*.json") for name in _named(version)}
        found += [str(path.relative_to(root)) for path in folder.rglob("*.parquet") if path.name not in named]
    return sorted(name for name in found if "_delta_log" not in name)


def _named(version: Path) -> set[str]:
    actions = [json.loads(line) for line in version.read_text(encoding="utf-8").splitlines()]
    return {unquote(action["add"]["path"]).rpartition("/")[2] for action in actions if "add" in action}


def _rows(name: str, folder: Path) -> Counter[str]:
    table: pa.Table = DeltaTable(str(folder)).to_pyarrow_table()
    kept = table.drop_columns([c for c in NOT_COMPARED.get(name, ()) if c in table.column_names])
    return Counter(str(_plain(row, kept.schema)) for row in kept.to_pylist())


def _plain(row: Mapping[str, Any], schema: pa.Schema) -> dict[str, Any]:
    """The row with its maps in one order: a map has none."""
    return {f.name: _in_order(row[f.name], f.type) for f in schema}


def _in_order(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_map(kind):
        return sorted((key, _in_order(item, kind.item_type)) for key, item in value)
    if pa.types.is_struct(kind):
        return {field.name: _in_order(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_in_order(item, kind.value_type) for item in value]
    return value
