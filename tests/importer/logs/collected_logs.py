"""The records of logs of the samples, for tests."""

from __future__ import annotations

import datetime as dt
import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mqreplay.importer.files.sources import source_of
from mqreplay.importer.logs.import_logs import LogReport, import_logs
from mqreplay.importer.logs.line_count import why_no_log
from mqreplay.importer.logs.log_files import scan_logs

Key = tuple[str, ...]
MEMBER = ("client_id", "consumer_group")
ORDERS, BULK = "orders-4.9.7", "bulk-5.3.3"


NIGHTS = [ORDERS, BULK]


class Collected:
    """A writer that keeps the records by stem, as JSON has them."""

    def __init__(self) -> None:
        self.records: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def append(self, stem: str, record: Mapping[str, object]) -> None:
        known = {name: value for name, value in record.items() if value is not None}
        self.records[stem].append(json.loads(json.dumps(known)))


def imported(
    folder: Path, time_zone: dt.tzinfo | None = None, evidence_ms: tuple[int, int] | None = None
) -> tuple[dict[str, list[dict[str, Any]]], LogReport]:
    """The records of all logs below a folder; folders such as broker-a-0 name brokers."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and ".log" in path.name]
    sources = [source_of(str(path.relative_to(folder)), path, "") for path in files]
    brokers = {}
    for path in files:
        name, _, broker_id = path.parent.name.rpartition("-")
        if path.name.startswith("broker.") and broker_id.isdigit():
            brokers[str(path.parent.relative_to(folder))] = (name, int(broker_id))
    into = Collected()
    scan = scan_logs(sources)
    report = import_logs(scan, into, time_zone, brokers, evidence_ms)
    report.not_recognised += [(source.path, why_no_log(source.path, count) or "") for source, count in scan.without]
    return into.records, report


def by(records: list[dict[str, Any]], fields: tuple[str, ...]) -> dict[Key, list[dict[str, Any]]]:
    found: dict[Key, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        found[tuple(record[name] for name in fields)].append(record)
    return found


def held(record: dict[str, Any]) -> set[tuple[str, str, int]]:
    return {
        (queue["topic"], queue["broker_name"], queue["queue_id"])
        for queue in record["queues"]
        if not queue.get("dropped")
    }
