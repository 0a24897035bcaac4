"""The ledgers of one run into their tables: one for all, or where files are many, one for so many at a time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from pyspark.sql import functions as F

from mqreplay.ingest.ledger import Ledger
from mqreplay.ingest.manifest import KnownFile
from mqreplay.lake.sql import among, quoted
from mqreplay.lake.warehouse import Warehouse


class Ledgers:
    """Writes them, and adds up what they said. A ledger goes after its files' rows.

    A run that dies before its ledger does these files again, and replaces what it had written of them.
    """

    def __init__(self, warehouse: Warehouse, cluster: str, known: Iterable[KnownFile], unknown: set[str]) -> None:
        """``known`` are files that were read before; of ``unknown`` recordings the tables hold nothing."""
        self._warehouse, self._cluster, self._unknown = warehouse, cluster, unknown
        self.rows_out = self.refused = 0
        self._began: dict[str, dt.datetime] = {}
        for file in known:
            self._saw(file.recording, file.first_ts and file.first_ts.replace(tzinfo=dt.UTC))

    def began(self, recording: str, ledger: Ledger) -> dt.datetime | None:
        """The first instant that any file of the recording tells of, those of ``ledger`` among them."""
        for (its, _), entry in ledger.files.items():
            self._saw(its, entry.first_ts)
        return self._began.get(recording)

    def write(self, ledger: Ledger) -> None:
        """Raises ConservationError if rows of a file got lost."""
        ledger.settle()
        for (recording, _), entry in ledger.files.items():
            self._saw(recording, entry.first_ts)
            self.rows_out += entry.rows_out
        self.refused += len(ledger.refused)
        places = sorted(ledger.files)
        recordings = sorted({recording for recording, _ in places})
        where = f"cluster = {quoted(self._cluster)} AND {among('recording', recordings)}"
        made = {
            "bronze.quarantine": ledger.quarantine_rows(self._cluster),
            "bronze.source_file": ledger.file_rows(self._cluster),
        }
        if self._unknown.issuperset(recordings):
            for name, rows in made.items():
                self._warehouse.put(name, rows, where, nothing_there=True)
            return
        changed = F.broadcast(self._warehouse.spark.createDataFrame(places, "recording STRING, path STRING"))
        for name, rows in made.items():
            frame = self._warehouse.frame(name, rows)
            others = self._warehouse.read(name).where(where).join(changed, ["recording", "path"], "left_anti")
            self._warehouse.replace(name, frame.unionByName(others.select(*frame.columns)), where)

    def _saw(self, recording: str, first_ts: dt.datetime | None) -> None:
        if first_ts is not None:
            self._began[recording] = min(self._began.get(recording, first_ts), first_ts)
