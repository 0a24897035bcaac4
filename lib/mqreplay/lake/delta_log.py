"""Commits to the log of a Delta table without Java: add files of landings and remove others in one version.

Follows "Actions" of Delta's protocol. delta-rs, which reads these tables, refuses to write to clustered ones.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote, unquote

import polars as pl

from mqreplay import __version__
from mqreplay.lake.contract import Contract
from mqreplay.lake.files import files_of, joined
from mqreplay.lake.landing import Landed
from mqreplay.lake.lease import require_lease
from mqreplay.lake.orphans import LOG, log_changed

Action = dict[str, Any]
# Fixed properties, whatever the defaults of a session: polars and DuckDB cannot read these features.
PLAIN = {
    "delta.enableDeletionVectors": "false",
    "delta.enableTypeWidening": "false",
    "delta.enableRowTracking": "false",
    "delta.checkpointPolicy": "classic",
    "delta.columnMapping.mode": "none",
}


class CommitConflict(Exception):
    """Another writer has committed the version."""


def commit(
    location: str, version: int, actions: Iterable[Action], *, overwrites: bool, operation: str = "WRITE"
) -> None:
    """Commit ``version`` of the table with these actions, completely or not at all. Raises CommitConflict."""
    info = {
        "timestamp": _now_ms(),
        "operation": operation,
        "operationParameters": {"mode": "Overwrite" if overwrites else "Append"} if operation == "WRITE" else {},
        "isBlindAppend": not overwrites,
        "engineInfo": f"mqreplay/{__version__}",
        "txnId": str(uuid.uuid4()),
    }
    lines = [json.dumps(action) for action in ({"commitInfo": info}, *actions)]
    path, data = joined(location, LOG, f"{version:020d}.json"), ("\n".join(lines) + "\n").encode()
    require_lease(path)
    try:
        files_of(path).create(path, data)
    except FileExistsError:
        # A request whose answer was lost is sent again, and finds its own file.
        if files_of(path).read(path) != data:
            raise CommitConflict(path) from None
    finally:
        log_changed(location)


def added(file: Landed, *, changes: bool = True) -> Action:
    """Return the action that adds a file of a landing. ``changes``: its rows are new to the table."""
    return {
        "add": {
            "path": quote(file.name),
            "partitionValues": {},
            "size": file.bytes,
            "modificationTime": _now_ms(),
            "dataChange": changes,
            "stats": file.stats,
        }
    }


def removed(path: str, size: int, *, changes: bool = True) -> Action:
    """Return the action that removes a file; ``path`` as in the log. ``changes``: its rows leave the table."""
    return {
        "remove": {
            "path": path,
            "deletionTimestamp": _now_ms(),
            "dataChange": changes,
            "extendedFileMetadata": True,
            "partitionValues": {},
            "size": size,
        }
    }


def created(contract: Contract) -> list[Action]:
    """Return the actions that create a table by its contract."""
    features = ["invariants", "appendOnly"]
    if contract.checks:
        features.append("checkConstraints")
    actions: list[Action] = [metadata(contract, contract.fields, str(uuid.uuid4()), contract.properties | PLAIN)]
    if contract.clustered_by:
        features += ["domainMetadata", "clustering"]
        columns = {"clusteringColumns": [[name] for name in contract.clustered_by], "domainName": "delta.clustering"}
        domain = {"domain": "delta.clustering", "configuration": json.dumps(columns), "removed": False}
        actions.append({"domainMetadata": domain})
    return [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}}, *actions]


def metadata(contract: Contract, fields: Sequence[Mapping[str, Any]], table_id: str, said: Mapping[str, str]) -> Action:
    """Return the action metaData: ``fields`` as in Delta's schema, ``said`` are the table's properties."""
    return {
        "metaData": {
            "id": table_id,
            "description": contract.description,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": list(fields)}),
            "partitionColumns": [],
            "configuration": dict(said),
            "createdTime": _now_ms(),
        }
    }


def added_before(location: str, paths: Iterable[str], version: int) -> list[Action]:
    """Return the newest action up to the version that added each of these files.

    Raises FileNotFoundError if the log lacks one: mqreplay maintain removes log entries, but only before a checkpoint.
    """
    left, found = set(paths), []
    for action in _newest_first(location, version, "add") if left else ():
        path = action.get("add", {}).get("path")
        if path is not None and unquote(path) in left:
            left.remove(unquote(path))
            found.append({"add": action["add"] | {"dataChange": True}})
    if left:
        raise FileNotFoundError(f"the log of {location} no longer shows how {min(left)} was added")
    return found


def metadata_at(location: str, version: int) -> Action:
    """Return the table's last metaData up to the version."""
    return next(action for action in _newest_first(location, version, "metaData") if "metaData" in action)


def _newest_first(location: str, version: int, kind: str) -> Iterable[Action]:
    """Yield the actions up to the version, and those of one kind in a checkpoint where the log begins with one."""
    log = joined(location, LOG)
    names = set(files_of(log).names(log))
    for number in range(version, -1, -1):
        path = joined(location, LOG, f"{number:020d}.json")
        with suppress(FileNotFoundError):
            yield from map(json.loads, reversed(files_of(path).read(path).splitlines()))
        if number and f"{number - 1:020d}.json" in names:
            continue
        checkpoint = joined(location, LOG, f"{number:020d}.checkpoint.parquet")
        if f"{number:020d}.checkpoint.parquet" in names:
            data = files_of(checkpoint).read(checkpoint)
            for action in pl.read_parquet(data, columns=[kind])[kind].drop_nulls().to_list():
                yield {kind: {name: value for name, value in action.items() if value is not None}}
            return


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
