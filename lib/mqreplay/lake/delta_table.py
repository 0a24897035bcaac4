"""Delta tables by delta-rs: create one by its contract, commit files that tasks wrote, restore a version."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import polars as pl
from deltalake import CommitProperties, DeltaTable, Field, Schema
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from mqreplay import __version__
from mqreplay.lake.contract import Contract
from mqreplay.lake.files import is_remote, store_error
from mqreplay.lake.lease import require_lease
from mqreplay.lake.local_folder import check_table_folder
from mqreplay.lake.storage import storage_options
from mqreplay.lake.store_protocol import FileInfo, first_line
from mqreplay.lake.table_log import commit_file, log_changed, require_readable_log
from mqreplay.lake.table_writer import WrittenFile
from mqreplay.words.errors import ContractError

COMMITTED_BY = f"mqreplay {__version__}"


def commit_info(what: str = "") -> CommitProperties:
    """Return what a commit says of itself: `userMetadata` in DESCRIBE HISTORY.

    delta-rs writes no metrics, and calls each commit an append.
    """
    return CommitProperties(
        custom_metadata={"mqreplay": __version__, "userMetadata": f"{COMMITTED_BY}: {what}" if what else COMMITTED_BY}
    )


COMMIT_PROPERTIES = commit_info()
ALREADY_EXISTS = "A Delta Lake table already exists"  # delta-rs has no error of its own for it


class UnreadableLog(ContractError):
    """Delta-rs cannot read the log of a table: ``reason`` is its own first line."""

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(
            f"the Delta table {location} cannot be used: {reason}; run `mqreplay maintain`, which removes a damaged "
            "checkpoint, or says what else to do"
        )
        self.location, self.reason = location, reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.location, self.reason)


class CommitConflict(Exception):
    """Another writer has changed the table since it was opened."""


def open_table(location: str, version: int | None = None) -> DeltaTable:
    """Open the table, at its last version by default. Raises InputError and the errors of stores."""
    uri, options = _uri(location), _options(location)
    with table_errors(location):
        kept = None if version is not None else _kept.pop(location, None)
        if kept is not None and kept[1:] == (commit_file(location, kept.table.version()), options):
            kept.table.update_incremental()
            return kept.table
        return DeltaTable(uri, version=version, storage_options=options)


def keep_open(location: str, table: DeltaTable) -> None:
    """Give back a table that is no longer used: `open_table` then reads only the commits since its version."""
    if commit := commit_file(location, table.version()):
        _kept[location] = KeptTable(table, commit, _options(location))


def close_table(location: str) -> None:
    """Let the next `open_table` read the whole log."""
    _kept.pop(location, None)


class KeptTable(NamedTuple):
    """An open table, and what it was opened with: another table may be in its place later."""

    table: DeltaTable
    commit: FileInfo
    options: dict[str, str] | None


_kept: dict[str, KeptTable] = {}


def create_table(location: str, contract: Contract) -> DeltaTable:
    """Create the empty table of a contract: its columns with comments, partitions, properties and constraints.

    Raises CommitConflict if another writer has created it meanwhile.
    """
    uri = _uri(location)
    if not is_remote(location):
        os.makedirs(location, exist_ok=True)
    with changing(location):
        table = DeltaTable.create(
            uri,
            Schema.from_json(json.dumps({"type": "struct", "fields": contract.fields})),
            partition_by=list(contract.partitioned_by),
            description=contract.description,
            configuration=contract.properties,
            storage_options=_options(location),
            commit_properties=COMMIT_PROPERTIES,
        )
        if contract.checks:
            table.alter.add_constraint(dict(contract.checks), commit_properties=COMMIT_PROPERTIES)
    return table


def add_columns(location: str, table: DeltaTable, fields: Iterable[Mapping[str, Any]]) -> None:
    """Add columns to the table; they are null in the rows that it has. ``fields`` are as in Delta's schema."""
    with changing(location):
        table.alter.add_columns(
            [Field.from_json(json.dumps(field)) for field in fields], commit_properties=COMMIT_PROPERTIES
        )


def set_properties(location: str, table: DeltaTable, properties: Mapping[str, str]) -> None:
    """Set properties of the table."""
    with changing(location):
        table.alter.set_table_properties(dict(properties), commit_properties=COMMIT_PROPERTIES)


def allow_nulls(location: str, table: DeltaTable, names: Collection[str]) -> None:
    """Let the columns ``names`` be null, which an older contract did not; no file changes."""
    schema = json.loads(table.schema().to_json())
    schema["fields"] = [f | {"nullable": f["nullable"] or f["name"] in names} for f in schema["fields"]]
    partitions = table.metadata().partition_columns
    with changing(location):
        table.create_write_transaction(
            [],
            mode="overwrite",  # of no partition: only with it delta-rs takes another schema
            schema=Schema.from_json(json.dumps(schema)),
            partition_by=partitions,
            partition_filters=[(partitions[0], "=", "")],
            commit_properties=COMMIT_PROPERTIES,
        )


def commit_files(
    location: str, table: DeltaTable, added: Sequence[WrittenFile], removed: pl.DataFrame, *, changes_rows: bool = True
) -> None:
    """Add files to the table, and remove those in ``removed`` (Snapshot.files), in one commit.

    ``changes_rows``: the files have other rows; else readers of changes skip the commit. Raises CommitConflict.
    """
    check_removable(location, removed["path"])
    now = time.time_ns() // 1_000_000
    actions: list[AddAction | RemoveAction] = [
        AddAction(f.path, f.bytes, dict(f.partition), now, changes_rows, f.stats) for f in added
    ]
    partitions = table.metadata().partition_columns
    # Streams of changes read removed files: for them, the log has their sizes and partitions.
    actions += [
        RemoveAction(row["path"], changes_rows, now, row["size_bytes"], {name: str(row[name]) for name in partitions})
        for row in removed.iter_rows(named=True)
    ]
    rows, gone = sum(f.rows for f in added), removed["num_records"].sum()
    text = f"{rows} rows in {len(added)} files added, {gone} rows in {len(removed)} files removed"
    with changing(location):
        table.create_write_transaction(
            actions, mode="append", schema=table.schema(), partition_by=partitions, commit_properties=commit_info(text)
        )


def restore_table(location: str, version: int) -> None:
    """Restore the rows and columns of an earlier version as a new version."""
    table = open_table(location)
    with changing(location):
        table.restore(version, commit_properties=COMMIT_PROPERTIES)


@contextmanager
def table_errors(location: str) -> Iterator[None]:
    """Raise the errors of delta-rs and of a store as mqreplay's own, in one line, and CommitConflict."""
    try:
        yield
    except CommitFailedError as error:
        raise CommitConflict(str(error)) from None
    except (OSError, DeltaError) as error:
        if ALREADY_EXISTS in str(error):
            raise CommitConflict(str(error)) from None
        if is_remote(location):
            raise store_error(location, error) from None
        if isinstance(error, OSError):
            require_readable_log(location)
            raise
        raise UnreadableLog(location, first_line(error)) from None


@contextmanager
def changing(location: str) -> Iterator[None]:
    """Commit versions of the table: forget its last one afterwards. Raises CommitConflict and the errors of stores."""
    require_lease(location)
    try:
        with table_errors(location):
            yield
    finally:
        log_changed(location)


def check_removable(location: str, paths: Iterable[str]) -> None:
    """Raise ContractError if delta-rs cannot remove one of the files: it writes paths of the log in ASCII alone.

    Spark writes other letters as they are, and for readers of the log these are two files.
    """
    if odd := next((path for path in paths if not path.isascii()), None):
        raise ContractError(
            f"another program wrote {odd} of {location}, a name that is not ASCII, so that its rows cannot be "
            "replaced; delete them by the program that wrote them"
        )


def _uri(location: str) -> str:
    check_table_folder(location)
    return location.replace("s3a://", "s3://", 1)


def _options(location: str) -> dict[str, str] | None:
    return {name: str(value) for name, value in storage_options().items()} if is_remote(location) else None
