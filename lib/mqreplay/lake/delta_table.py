"""Delta tables by delta-rs: create one by its contract, commit files that tasks wrote, restore a version."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from deltalake import CommitProperties, DeltaTable, Field, Schema
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from mqreplay import __version__
from mqreplay.errors import ContractError, InputError
from mqreplay.lake.contract import PROPERTIES, Contract
from mqreplay.lake.files import is_remote, store_error
from mqreplay.lake.lease import require_lease
from mqreplay.lake.storage import storage_options
from mqreplay.lake.table_log import log_changed
from mqreplay.lake.table_writer import WrittenFile

ODD = re.compile(r"[%\\]")  # in a folder's name: delta-rs parses a path as a URL
COMMIT = CommitProperties(custom_metadata={"mqreplay": __version__})


class CommitConflict(Exception):
    """Another writer has changed the table since it was opened."""


def open_table(location: str, version: int | None = None) -> DeltaTable:
    """Open the table, at its last version by default. Raises InputError and the errors of stores."""
    if not is_remote(location) and ODD.search(location):
        raise InputError(f"{location} has a % or \\ in its name, which Delta tables cannot have; use another folder")
    with _store_errors(location):
        return DeltaTable(_uri(location), version=version, storage_options=_options(location))


def create_table(location: str, contract: Contract) -> DeltaTable:
    """Create the empty table of a contract: its columns with comments, partitions, properties and constraints."""
    require_lease(location)
    if not is_remote(location):
        os.makedirs(location, exist_ok=True)
    with _store_errors(location):
        table = DeltaTable.create(
            _uri(location),
            Schema.from_json(json.dumps({"type": "struct", "fields": contract.fields})),
            partition_by=list(contract.partitioned_by),
            description=contract.description,
            configuration=dict(PROPERTIES),
            storage_options=_options(location),
            commit_properties=COMMIT,
        )
        if contract.checks:
            table.alter.add_constraint(dict(contract.checks), commit_properties=COMMIT)
    log_changed(location)
    return table


def add_columns(location: str, table: DeltaTable, fields: Iterable[Mapping[str, Any]]) -> None:
    """Add columns to the table; they are null in the rows that it has. ``fields`` are as in Delta's schema."""
    require_lease(location)
    with _store_errors(location):
        table.alter.add_columns([Field.from_json(json.dumps(field)) for field in fields], commit_properties=COMMIT)
    log_changed(location)


def commit_files(location: str, table: DeltaTable, added: Sequence[WrittenFile], removed: Iterable[str]) -> None:
    """Add files to the table, and remove those with the paths ``removed`` below its folder, in one commit.

    Raises CommitConflict.
    """
    require_lease(location)
    now = time.time_ns() // 1_000_000
    actions: list[AddAction | RemoveAction] = [
        AddAction(f.path, f.bytes, dict(f.partition), now, True, json.dumps({"numRecords": f.rows})) for f in added
    ]
    actions += [RemoveAction(path, True, now) for path in removed]
    try:
        with _store_errors(location):
            table.create_write_transaction(
                actions,
                mode="append",
                schema=table.schema(),
                partition_by=table.metadata().partition_columns,
                commit_properties=COMMIT,
            )
    except CommitFailedError as error:
        raise CommitConflict(str(error)) from None
    finally:
        log_changed(location)


def restore_table(location: str, version: int) -> None:
    """Restore the rows and columns of an earlier version as a new version."""
    require_lease(location)
    table = open_table(location)
    with _store_errors(location):
        table.restore(version, commit_properties=COMMIT)
    log_changed(location)


@contextmanager
def _store_errors(location: str) -> Iterator[None]:
    """Raise the errors that a store's answers cause as mqreplay's own, in one line."""
    try:
        yield
    except CommitFailedError:
        raise
    except (OSError, DeltaError) as error:
        if is_remote(location):
            raise store_error(location, error) from None
        if isinstance(error, OSError):
            raise
        raise ContractError(f"the Delta table {location} cannot be used: {error}") from None


def _uri(location: str) -> str:
    return location.replace("s3a://", "s3://", 1)


def _options(location: str) -> dict[str, str] | None:
    return {name: str(value) for name, value in storage_options().items()} if is_remote(location) else None
