"""The Delta tables of one warehouse folder, as their contracts define them; read and written without Java."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from mqreplay import __version__
from mqreplay.errors import ContractError
from mqreplay.lake.buckets import key_of
from mqreplay.lake.contract import KEPT_LOG, Contract, load_contracts
from mqreplay.lake.delta_files import Snapshot, opened, scan_files, snapshot, write_checkpoint
from mqreplay.lake.delta_log import (
    Action,
    CommitConflict,
    added,
    added_before,
    commit,
    created,
    metadata,
    metadata_at,
    removed,
)
from mqreplay.lake.files import for_each, is_remote, joined
from mqreplay.lake.landing import Landed, Landing, as_table, land, repeating
from mqreplay.lake.orphans import last_commit, last_version, remove_table, remove_unborn
from mqreplay.lake.rows import Rows

BATCH_ROWS = 50_000  # rows in memory of a file that is rewritten
COMMITS = 10  # attempts of a commit while others commit versions
CHECKPOINT_EVERY = 10  # versions between checkpoints, so that readers need not read the whole log


class Warehouse:
    """The tables under ``root``: read and replace rows. Safe for threads that write different tables."""

    def __init__(self, root: str, contracts: dict[str, Contract] | None = None) -> None:
        """Take the folder ``root``, which need not exist. A table is made when it is first written."""
        self.root = root.rstrip("/") if is_remote(root) else str(Path(root).resolve())
        self.contracts = contracts if contracts is not None else load_contracts()

    def location(self, name: str) -> str:
        """Return the folder of the table."""
        return joined(self.root, name.replace(".", "/"))

    def version(self, name: str) -> int | None:
        """Return the last version of the table; None without a table. No table is read."""
        return last_version(self.location(name))

    def exists(self, name: str) -> bool:
        """Return whether the table has a version. A folder whose writer died before version 0 is not a table."""
        return self.version(name) is not None

    def file_bytes(self, name: str, rows: Rows) -> int:
        """Return the size of the files that may hold these rows. No file is read."""
        return int(rows.may_be_in(snapshot(self.location(name)).files)["size_bytes"].sum()) if self.exists(name) else 0

    def state(self) -> str:
        """Return a digest of mqreplay's version and the state of all tables: each commit changes it. No table is read.

        Version numbers alone would not show that a table was replaced by another.
        """
        commits = for_each(lambda name: last_commit(self.location(name)), sorted(self.contracts), self.root)
        last = {name: commit for name, commit in commits.items() if commit is not None}
        return hashlib.sha256(json.dumps([__version__, last]).encode()).hexdigest()[:32]

    def read(self, name: str, rows: Rows | None = None) -> pl.LazyFrame:
        """Return rows of the table in the contract's column order; none if it does not exist.

        Files without ``rows`` by Delta's bounds are not read.
        """
        schema = self.contracts[name].arrow_schema
        if not self.exists(name):
            return scan_files(schema, [])
        files = snapshot(self.location(name)).files
        if rows is None:
            return scan_files(schema, self._paths(name, files))
        return scan_files(schema, self._paths(name, rows.may_be_in(files))).filter(rows.condition)

    def landed_rows(self, name: str, landed: Iterable[Landed]) -> pl.LazyFrame:
        """Return the rows in files of a landing before they are committed."""
        paths = [f"{self.location(name)}/{file.name}" for file in landed]
        return scan_files(self.contracts[name].arrow_schema, paths)

    def landing(self, name: str, same: dict[str, str] | None = None, day_of: str | None = None) -> Landing:
        """Return a landing for tasks to write rows of the table as Parquet files. Readers see them after ``take``.

        The journal removes files that no ``take`` commits, after all threads have ended. ``same`` are columns of one
        value; ``day_of`` is the instant whose date is the row's day. Rows have all other columns.
        """
        if not self.exists(name):
            remove_unborn(self.location(name))
            if not is_remote(self.root):  # the commit of the rows creates the table
                os.makedirs(self.location(name), exist_ok=True)
        return self._landing(name, same, day_of)

    def _landing(self, name: str, same: dict[str, str] | None = None, day_of: str | None = None) -> Landing:
        contract, schema = self.contracts[name], self.contracts[name].arrow_schema
        return Landing(
            self.location(name),
            schema,
            tuple((same or {}).items()),
            day_of,
            tuple(c.name for c in contract.columns if not c.nullable),
            contract.looked_for,
            repeating(schema, contract.alone),
            key_of(contract.shard_key),
            tuple(contract.checks.values()),
        )

    def thinned(self, name: str, landed: Iterable[Landed], gone: pl.Expr) -> list[Landed]:
        """Return files of a landing without the rows for which ``gone`` is true; rewrite files that have some."""
        made: list[Landed] = []
        for file in landed:
            kept = self._rewritten(name, file.name, gone)
            made += [file] if kept is None else kept
        return made

    def put(self, name: str, rows: pl.DataFrame | Iterable[Sequence[Any]], replaced: Rows | None) -> None:
        """Replace the rows ``replaced``, if given, by ``rows``, which must be among them, in one commit.

        Rows without names are in the contract's column order. Raises ContractError.
        """
        place = self.landing(name)
        table = (
            as_table(rows, place.schema, name) if isinstance(rows, pl.DataFrame) else _table(list(rows), place.schema)
        )
        if replaced is not None and not pl.DataFrame(pl.from_arrow(table)).filter(~replaced.condition).is_empty():
            raise ContractError(f"rows for {name} are not among those that they replace; a bug in mqreplay")
        self.take(name, land(table.to_batches(BATCH_ROWS), place), replaced)

    def take(self, name: str, landed: Sequence[Landed], replaced: Rows | None) -> None:
        """Replace the rows ``replaced``, if given, by those in files of a landing, in one commit.

        The first commit creates the table. Raises ContractError if the table is of an incompatible version.
        """
        place = self.location(name)
        for _ in range(COMMITS):
            version = self.version(name)
            if version is None:
                actions = created(self.contracts[name])
            else:
                now = snapshot(place)
                version, actions = now.version, self._mended(name, now)
                if replaced is not None:
                    actions += self._without(name, now, replaced)
                if not landed and not actions:
                    return
            try:
                number = 0 if version is None else version + 1
                commit(place, number, [*actions, *map(added, landed)], overwrites=replaced is not None)
            except CommitConflict:
                continue
            if number and number % CHECKPOINT_EVERY == 0:
                write_checkpoint(place)
            return
        raise ContractError(f"table {name} in {self.root} is constantly written by other programs; run it again later")

    def _without(self, name: str, now: Snapshot, replaced: Rows) -> list[Action]:
        """Return the actions that remove rows: files with only these rows are removed, others are rewritten."""
        actions: list[Action] = []
        for file in replaced.may_be_in(now.files).iter_rows(named=True):
            kept = [] if replaced.are_all_of(file) else self._rewritten(name, file["path"], replaced.condition)
            if kept is not None:
                actions += [removed(file["path"], file["size_bytes"]), *map(added, kept)]
        return actions

    def _rewritten(self, name: str, file: str, gone: pl.Expr) -> list[Landed] | None:
        """Rewrite a file without the rows for which ``gone`` is true; None if it has none of them."""
        path, schema = joined(self.location(name), file), self.contracts[name].arrow_schema
        rows, without = scan_files(schema, [path]).select(pl.len(), gone.sum().alias("gone")).collect().row(0)
        if not without:
            return None
        return land(file_batches(path, schema, ~gone.fill_null(False)), self._landing(name)) if without < rows else []

    def _mended(self, name: str, now: Snapshot) -> list[Action]:
        """Return the action that updates the metadata of an older table; none if it is current."""
        contract, said = self.contracts[name], now.configuration
        has = {field["name"]: field for field in now.fields}
        fields = dict(has)
        for field, column in zip(contract.fields, contract.columns, strict=True):
            old = has.get(field["name"])
            if old is None and not column.nullable:
                raise ContractError(
                    f"table {name} in {self.root} was made by another version and lacks {column.name}; "
                    "use a new --warehouse and run the recordings again"
                )
            if old is not None and not _fits(old["type"], field["type"]):
                raise ContractError(
                    f"table {name} in {self.root} was made by another version: {column.name} is "
                    f"{_shape(old['type'])}, should be {_shape(field['type'])}; "
                    "use a new --warehouse and run the recordings again"
                )
            changed = old is not None and _shape(old["type"]) != _shape(field["type"])
            if old is None or changed or (column.nullable and not old["nullable"]):
                fields[field["name"]] = field
        # Delta deletes old versions of older tables: from now on they keep them too.
        if fields == has and KEPT_LOG.keys() <= said.keys():
            return []
        return [metadata(contract, list(fields.values()), now.table_id, {**KEPT_LOG, **said})]

    def _paths(self, name: str, files: pl.DataFrame) -> list[str]:
        return [f"{self.location(name)}/{path}" for path in files["path"]]

    def live_files(self, name: str) -> list[str]:
        """Return the names of the files of the table's last version."""
        return snapshot(self.location(name)).files["path"].to_list()

    def restore(self, name: str, version: int) -> None:
        """Restore the rows and columns of an earlier version as a new version."""
        place = self.location(name)
        now, then = snapshot(place), snapshot(place, version)
        old, new = set(then.files["path"]), set(now.files["path"])
        actions = [removed(p, s) for p, s in now.files.select("path", "size_bytes").iter_rows() if p not in old]
        actions += added_before(place, old - new, version)
        if (now.fields, now.configuration) != (then.fields, then.configuration):
            actions.append(metadata_at(place, version))
        commit(place, now.version + 1, actions, overwrites=True)

    def drop(self, name: str) -> None:
        """Remove the table, at once for readers. Other files in its folder stay."""
        remove_table(self.location(name))


def file_batches(path: str, schema: pa.Schema, wanted: pl.Expr | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, or those that are wanted, in batches with the table's columns."""
    with opened(path) as stream, pq.ParquetFile(stream) as file:
        there = [name for name in schema.names if name in file.schema_arrow.names]
        for batch in file.iter_batches(BATCH_ROWS, columns=there):
            nulls = {f.name: pa.nulls(batch.num_rows, f.type) for f in schema if f.name not in there}
            columns = [nulls[f.name] if f.name in nulls else batch.column(f.name).cast(f.type) for f in schema]
            whole = pa.RecordBatch.from_arrays(columns, schema=schema)
            if wanted is None:
                yield whole
                continue
            keep = pl.DataFrame(pl.from_arrow(whole)).select(wanted.alias("keep"))["keep"].to_arrow()
            yield whole.filter(keep)


def _table(rows: list[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    columns: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else ([] for _ in schema)
    return pa.Table.from_arrays([_array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def _array(column: Iterable[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_map(kind):
        column = [None if value is None else list(value.items()) for value in column]
    return pa.array(list(column), kind)


def _fits(old: Any, new: Any) -> bool:
    """Whether readers can read values of the old type as the new one: the fields of a struct in an array may differ.

    Fields of the same name have the same type. Those that a file lacks are null; those that the table lacks are not
    read. At least one is in both: without any, readers could not tell an empty struct from none.
    """
    if _shape(old) == _shape(new):
        return True
    before, after = _item_fields(old), _item_fields(new)
    shared = before.keys() & after.keys()
    return bool(shared) and all(before[name] == after[name] for name in shared)


def _item_fields(kind: Any) -> dict[str, str]:
    """The fields of the struct that an array has as items, by name; none of another type."""
    item = kind.get("elementType") if isinstance(kind, dict) else None
    fields = item["fields"] if isinstance(item, dict) and item["type"] == "struct" else []
    return {field["name"]: _shape(field["type"]) for field in fields}


def _shape(kind: Any) -> str:
    """Return the Spark SQL name of a type of Delta's schema, without nullability."""
    if isinstance(kind, str):
        return {"long": "bigint", "integer": "int"}.get(kind, kind)
    if kind["type"] == "array":
        return f"array<{_shape(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{_shape(kind['keyType'])},{_shape(kind['valueType'])}>"
    fields = ",".join(f"{field['name']}:{_shape(field['type'])}" for field in kind["fields"])
    return f"struct<{fields}>"
