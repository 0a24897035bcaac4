"""The ledger of a run: the result of each file, refused rows, the check that no row was lost, and its tables."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl

from mqreplay.ingest.checksums import read_checksums
from mqreplay.ingest.lines import ADVICE
from mqreplay.ingest.manifest import KnownFile, NewFile, Place
from mqreplay.ingest.recording import NOT_READ
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.words.errors import ConservationError, UnreadableInput

FILE_TABLE, QUARANTINE_TABLE, BROKER_TABLE = "bronze.source_file", "bronze.quarantine", "silver.broker"
RECORDING_TABLES = (FILE_TABLE, QUARANTINE_TABLE, BROKER_TABLE)  # tables with the recording of a row


@dataclass(slots=True)
class FileEntry:
    """A future row of bronze.source_file. Instants are UTC."""

    new: NewFile
    status: str = "read"
    reason: str | None = None
    rows_in: int = 0
    rows_out: int = 0
    rows_quarantined: int = 0
    first_ts: dt.datetime | None = None
    last_ts: dt.datetime | None = None
    rows_expired: int | None = None

    @property
    def rows_duplicate(self) -> int:
        """Return the number of duplicates: rows in that are neither out nor refused."""
        return self.rows_in - self.rows_out - self.rows_quarantined

    def settle(self) -> None:
        """Check that the counts add up, and mark a file that was refused as a whole. Raises ConservationError."""
        if self.rows_duplicate < 0:
            raise ConservationError(
                f"{self.new.file.full_path}: {self.rows_in} rows in, but {self.rows_out} out and "
                f"{self.rows_quarantined} quarantined; please report this as a bug"
            )
        if self.status == "read" and self.rows_in and self.rows_quarantined == self.rows_in:
            self.status, self.reason = "refused", self.reason or "every line was refused; see bronze.quarantine"


@dataclass(frozen=True, slots=True)
class QuarantineEntry:
    """A future row of bronze.quarantine. ``line_number`` 0 is the whole file."""

    recording: str
    path: str
    kind: str
    digest: str
    line_number: int
    detail_key: str
    code: str
    reason: str
    advice: str
    content: bytes | None


@dataclass
class Ledger:
    """The files and refused rows of a run, by place.

    ``carried``: the places of files that are entered but not read, before and now: their refused rows stay.
    """

    files: dict[tuple[str, str], FileEntry] = field(default_factory=dict)
    refused: list[QuarantineEntry] = field(default_factory=list)
    carried: dict[Place, Place] = field(default_factory=dict)

    def enter(self, new: NewFile) -> FileEntry:
        """Return the entry of a file; make it if it is new."""
        return self.files.setdefault((new.file.recording, new.file.path), FileEntry(new))

    def enter_known(self, new: NewFile, known: KnownFile) -> FileEntry:
        """Return the entry of a file whose content is in the tables, with the counts of its former name."""
        entry = self.enter(new)
        entry.status, entry.reason = known.status, known.reason
        entry.rows_in, entry.rows_out, entry.rows_quarantined = known.rows_in, known.rows_out, known.rows_quarantined
        entry.first_ts, entry.last_ts = known.first_ts, known.last_ts
        entry.rows_expired = known.rows_expired
        self.carried[known.place] = new.place
        return entry

    def enter_duplicate(self, new: NewFile) -> None:
        """Enter a file with the same bytes as another."""
        entry = self.enter(new)
        entry.status, entry.reason = "duplicate", "the same bytes were read from another file"

    def enter_not_read(self, new: NewFile) -> None:
        """Enter a file of a kind that is not read, with the reason."""
        entry = self.enter(new)
        missing = new.file.trouble if new.file.distrusted else None
        entry.status, entry.reason = "not_read", missing or NOT_READ[new.file.kind]

    def enter_unreadable(self, files: Iterable[NewFile]) -> None:
        """Enter files whose bytes cannot be read or must not be used."""
        for new in files:
            code, trouble = new.file.trouble_code, new.file.trouble or ""
            reason = UnreadableInput(trouble or code).detail if code == "unreadable" else trouble
            self._enter_unseen(new, "refused", code, reason, ADVICE[code])

    def enter_checksums(self, files: Iterable[NewFile], quarantine_rows: int) -> None:
        """Enter checksum lists that were compared with the other files: their lines, and the refused ones."""
        for new in files:
            found, entry = read_checksums(new.file, quarantine_rows), self.enter(new)
            entry.rows_in, entry.rows_quarantined, entry.reason = found.lines, found.refused.total, found.reason
            place = new.file.recording, new.file.path, new.file.kind, new.digest
            self.refused += [
                QuarantineEntry(*place, line.line_number, "", line.code, line.reason, line.advice, line.content)
                for line in found.refused.listed()
            ]

    def enter_late(self, late: Iterable[NewFile]) -> None:
        """Enter snapshots that cannot be read because others are missing."""
        reason = "snapshots after it were read in an earlier run, are needed again, and are missing now"
        advice = "put back the snapshots after it, and run again"
        for new in late:
            self._enter_unseen(new, "late", "late", reason, advice)

    def _enter_unseen(self, new: NewFile, status: str, code: str, reason: str, advice: str) -> None:
        """Enter a file that is refused as a whole and whose content is not kept."""
        entry = self.enter(new)
        entry.status, entry.reason, entry.rows_in, entry.rows_quarantined = status, reason, 1, 1
        place = new.file.recording, new.file.path, new.file.kind, new.digest, 0, ""
        self.refused.append(QuarantineEntry(*place, code, reason, advice, None))

    def settle(self) -> None:
        """Check every entry. Raises ConservationError."""
        for entry in self.files.values():
            entry.settle()

    def file_rows(self, cluster: str) -> list[tuple[object, ...]]:
        """Return rows of bronze.source_file, in the contract's column order."""
        return [
            (
                cluster,
                e.new.file.recording,
                e.new.file.path,
                e.new.file.kind,
                e.new.sha256,
                e.new.file.bytes,
                e.status,
                e.reason,
                e.rows_in,
                e.rows_out,
                e.rows_quarantined,
                e.rows_duplicate,
                e.first_ts,
                e.last_ts,
                e.rows_expired,
            )
            for _, e in sorted(self.files.items())
        ]

    def quarantine_rows(self, cluster: str) -> list[tuple[object, ...]]:
        """Return rows of bronze.quarantine, in the contract's column order."""
        return [
            (
                cluster,
                q.recording,
                q.path,
                q.kind,
                q.digest,
                q.line_number,
                q.detail_key,
                q.code,
                q.reason,
                q.advice,
                q.content,
            )
            for q in self.refused
        ]


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

    def write(self, ledger: Ledger, gone: Iterable[Place] = ()) -> None:
        """Write the entries, and remove those of ``gone`` places.

        Raises ConservationError if rows of a file were lost.
        """
        ledger.settle()
        for (recording, _), entry in ledger.files.items():
            if entry.first_ts is not None:
                self._began[recording] = min(self._began.get(recording, entry.first_ts), entry.first_ts)
            self.rows_out += entry.rows_out
        self.refused += sum(entry.rows_quarantined for entry in ledger.files.values())
        places = {*ledger.files, *gone, *ledger.carried}
        unknown = self._unknown.issuperset({recording for recording, _ in places})
        replaced = None if unknown else RowFilter(self._cluster, wanted=of_places(places))
        refused = ledger.quarantine_rows(self._cluster)
        if ledger.carried:
            refused += self._carried(ledger.carried)
        self._warehouse.replace_rows(QUARANTINE_TABLE, refused, replaced)
        self._warehouse.replace_rows(FILE_TABLE, ledger.file_rows(self._cluster), replaced)

    def _carried(self, places: Mapping[Place, Place]) -> list[tuple[object, ...]]:
        """Return the quarantine rows of files in these places, with the names that they have now."""
        rows = self._warehouse.read(QUARANTINE_TABLE, RowFilter(self._cluster, wanted=of_places(places))).collect()
        found = rows.to_dicts()
        for row in found:
            row["recording"], row["path"] = places[row["recording"], row["path"]]
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
