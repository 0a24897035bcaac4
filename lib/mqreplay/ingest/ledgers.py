"""Write the ledgers of a run into their tables: one ledger, or one for each round of many files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Mapping

import polars as pl

from mqreplay.ingest.ledger import Ledger
from mqreplay.ingest.manifest import Place
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse

FILES, QUARANTINE, BROKERS = "bronze.source_file", "bronze.quarantine", "silver.broker"
OF_RECORDING = (FILES, QUARANTINE, BROKERS)  # tables with the recording of a row


class Ledgers:
    """A writer of ledgers, with totals. A ledger is written after the rows of its files."""

    def __init__(self, warehouse: Warehouse, cluster: str, unknown: set[str]) -> None:
        """Take the run; the tables hold no rows of ``unknown`` recordings."""
        self._warehouse, self._cluster, self._unknown = warehouse, cluster, unknown
        self.rows_out = self.refused = 0
        self._began: dict[str, dt.datetime] = {}

    def began(self, recording: str, known: dt.datetime | None, ledger: Ledger) -> dt.datetime | None:
        """Return the first instant of the recording's files: ``known`` is that of others than those of this run."""
        firsts = [] if known is None else [known]
        firsts += [e.first_ts for (its, _), e in ledger.files.items() if its == recording and e.first_ts is not None]
        if recording in self._began:
            firsts.append(self._began[recording])
        return min(firsts, default=None)

    def write(self, ledger: Ledger, gone: Iterable[Place] = (), renamed: Mapping[Place, Place] | None = None) -> None:
        """Write the entries; remove those of ``gone`` places; move the quarantine rows of ``renamed`` files.

        Raises ConservationError if rows of a file were lost.
        """
        ledger.settle()
        for (recording, _), entry in ledger.files.items():
            if entry.first_ts is not None:
                self._began[recording] = min(self._began.get(recording, entry.first_ts), entry.first_ts)
            self.rows_out += entry.rows_out
        self.refused += sum(entry.rows_quarantined for entry in ledger.files.values())
        carried = renamed or {}
        places = {*ledger.files, *gone, *carried}
        unknown = self._unknown.issuperset({recording for recording, _ in places})
        replaced = None if unknown else RowFilter(self._cluster, wanted=of_places(places))
        refused = ledger.quarantine_rows(self._cluster)
        if carried:
            refused += self._carried(carried)
        self._warehouse.replace_rows(QUARANTINE, refused, replaced)
        self._warehouse.replace_rows(FILES, ledger.file_rows(self._cluster), replaced)

    def _carried(self, renamed: Mapping[Place, Place]) -> list[tuple[object, ...]]:
        """Return the quarantine rows of renamed files, with their new names."""
        rows = self._warehouse.read(QUARANTINE, RowFilter(self._cluster, wanted=of_places(renamed))).collect()
        found = rows.to_dicts()
        for row in found:
            row["recording"], row["path"] = renamed[row["recording"], row["path"]]
        return [tuple(row.values()) for row in found]


def first_instant(firsts: pl.DataFrame, recording: str, but: Collection[Place] = ()) -> dt.datetime | None:
    """Return the least first_ts of the recording's files, except those in the places ``but``.

    ``firsts`` has recording, path and first_ts.
    """
    mine = firsts.filter(pl.col("recording").cast(pl.String) == recording).sort("first_ts")
    return next(
        (first for path, first in mine.select("path", "first_ts").iter_rows() if (recording, path) not in but), None
    )


def of_places(places: Iterable[Place]) -> pl.Expr:
    """Return the condition that a row is of a file in one of these places."""
    joined = pl.concat_str("recording", pl.lit("\0"), "path")
    return joined.is_in(sorted(f"{recording}\0{path}" for recording, path in places))
