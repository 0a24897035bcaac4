"""The ledgers of one run into their tables: one for all, or where files are many, one for so many at a time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.ingest.ledger import Ledger
from mqreplay.ingest.manifest import KnownFile, Place
from mqreplay.lake.sql import among, quoted
from mqreplay.lake.warehouse import Warehouse

FILES, QUARANTINE, BROKERS = "bronze.source_file", "bronze.quarantine", "silver.broker"
OF_RECORDING = (FILES, QUARANTINE, BROKERS)  # the tables that name the recording of a row
RENAMES = "recording STRING, path STRING, new_recording STRING, new_path STRING"


class Ledgers:
    """Writes them, and adds up what they say. A ledger is written after the rows of its files."""

    def __init__(self, warehouse: Warehouse, cluster: str, unknown: set[str]) -> None:
        """Of ``unknown`` recordings the tables hold nothing."""
        self._warehouse, self._cluster, self._unknown = warehouse, cluster, unknown
        self.rows_out = self.refused = 0
        self._began: dict[str, dt.datetime] = {}

    def began(self, recording: str, known: Iterable[KnownFile], ledger: Ledger) -> dt.datetime | None:
        """Return the first instant of the recording's files: of ``known`` ones, of this run's, and of ``ledger``."""
        left = (k for k in known if k.recording == recording and k.place not in ledger.files)
        firsts = [k.first_ts for k in left if k.first_ts is not None]
        firsts += [e.first_ts for (its, _), e in ledger.files.items() if its == recording and e.first_ts is not None]
        if recording in self._began:
            firsts.append(self._began[recording])
        return min(firsts, default=None)

    def write(self, ledger: Ledger, gone: Iterable[Place] = (), renamed: Mapping[Place, Place] | None = None) -> None:
        """Write the entries; those of ``gone`` places leave, and what was refused of ``renamed`` files goes with them.

        Raises ConservationError if rows of a file got lost.
        """
        ledger.settle()
        for (recording, _), entry in ledger.files.items():
            if entry.first_ts is not None:
                self._began[recording] = min(self._began.get(recording, entry.first_ts), entry.first_ts)
            self.rows_out += entry.rows_out
        self.refused += sum(entry.rows_quarantined for entry in ledger.files.values())
        carried = renamed or {}
        places = sorted({*ledger.files, *gone, *carried})
        recordings = sorted({recording for recording, _ in places})
        where = f"cluster = {quoted(self._cluster)} AND {among('recording', recordings)}"
        files, refused = ledger.file_rows(self._cluster), ledger.quarantine_rows(self._cluster)
        if self._unknown.issuperset(recordings):
            self._warehouse.put(QUARANTINE, refused, where, nothing_there=True)
            self._warehouse.put(FILES, files, where, nothing_there=True)
            return
        changed = F.broadcast(self._warehouse.spark.createDataFrame(places, "recording STRING, path STRING"))
        quarantined = self._warehouse.frame(QUARANTINE, refused)
        if carried:
            quarantined = quarantined.unionByName(self._carried(carried, where))
        for name, frame in ((QUARANTINE, quarantined), (FILES, self._warehouse.frame(FILES, files))):
            others = self._warehouse.read(name).where(where).join(changed, ["recording", "path"], "left_anti")
            self._warehouse.replace(name, frame.unionByName(others.select(*frame.columns)), where)

    def _carried(self, renamed: Mapping[Place, Place], where: str) -> DataFrame:
        """Rows of the quarantine of renamed files, under their new names."""
        spark, rows = self._warehouse.spark, self._warehouse.read(QUARANTINE)
        names = F.broadcast(spark.createDataFrame([(*old, *new) for old, new in renamed.items()], RENAMES))
        found = rows.where(where).join(names, ["recording", "path"])
        named = found.withColumns({"recording": F.col("new_recording"), "path": F.col("new_path")})
        return named.select(*rows.columns)
