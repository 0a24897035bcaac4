"""Write snapshots into their silver tables and the counts into the ledger, in rounds of a bounded number of files."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from itertools import groupby

import polars as pl

from mqreplay.decode.recording.files import POLLED
from mqreplay.engines.engine import DecodedTable, NewRows
from mqreplay.ingest.entries import CONFIGS
from mqreplay.ingest.late import SourceSpan, orphan_keys, read_again, snapshots_of, source_spans, too_late, within
from mqreplay.ingest.ledger import RECORDING_TABLES, Ledger, QuarantineEntry
from mqreplay.ingest.manifest import NewFile, Place
from mqreplay.ingest.offset_checkpoint import CHECKPOINT as STANDING
from mqreplay.ingest.offset_checkpoint import OffsetCheckpoint
from mqreplay.ingest.pieces import Piece, joined
from mqreplay.ingest.planning import Work
from mqreplay.ingest.recorded_files import RecordedFiles
from mqreplay.ingest.snapshot_rows import Row, beside_rows, instant
from mqreplay.ingest.snapshots import KNOWN, PieceKey, cut, known_before, piece_tasks, read_piece, uncut
from mqreplay.ingest.to_silver import Run
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.words.errors import InputError

OFFSET_CHANGES = "silver.offset_change"
SNAPSHOT_TABLES = (OFFSET_CHANGES, "silver.snapshot", *(kind.table for kind in CONFIGS.values()))
POLLS = 720  # an hourly file of polled offsets counts as this many copies
ROUND_FILES = 25_000  # snapshots in a round: some 150 MB of the driver's memory


def ingest_snapshots(run: Run, work: Work) -> None:
    """Ingest all new snapshots. Read a source again after a late, changed or removed one, as far as it has an effect.

    A round has a bounded number of files, and all files of its sources, since their ledger rows are in the driver's
    memory. A written round stays even if the run fails.
    """
    gone = RecordedFiles.of((k.file, k.sha256) for k in work.gone_snapshots)
    changed = snapshots_of(pl.concat([work.snapshots.rows, gone.rows]))
    if not changed.height:
        return
    found = _of_kept_days(source_spans(run.warehouse, run.cluster, changed), run.first_day)
    again = _under_new_names(read_again(run.warehouse, run.cluster, found, changed), work)
    if late := too_late(changed, again):
        _leave_out(run, work, late)
        return ingest_snapshots(run, work)
    run.read_again.update(zip(again.rows["recording"].cast(pl.String), again.rows["path"], strict=True))
    known = _known_before(run.warehouse, run.cluster, found)
    none = not len(again) and not len(gone)
    files = pl.concat([work.snapshots.rows, again.rows]).with_columns(source=_source())
    rounds = _rounds(files)
    without_files = found.keys() - {source for sources in rounds for source in sources}
    if without_files:
        _clear(run, {source: found[source] for source in without_files})
    for number, sources in enumerate(rounds, 1):
        is_last = number == len(rounds)
        ledger = run.ledger if is_last else Ledger()
        some = RecordedFiles(files.filter(pl.col("source").is_in(pl.Series(sources, dtype=pl.Categorical).implode())))
        _read_round(run, _Round([NewFile(*each) for each in some], found, known, none), ledger)
        if not is_last:
            run.ledgers.write(ledger)
            run.journal.savepoint([*SNAPSHOT_TABLES, STANDING, *RECORDING_TABLES])


def _of_kept_days(found: dict[str, SourceSpan], first: dt.date | None) -> dict[str, SourceSpan]:
    """Return the time spans without removed days, whose rows cannot be made again."""
    if first is None:
        return found
    first_ms = int(dt.datetime.combine(first, dt.time(), dt.UTC).timestamp() * 1000)
    return {source: replace(span, since_ms=max(span.since_ms, first_ms)) for source, span in found.items()}


def _under_new_names(again: RecordedFiles, work: Work) -> RecordedFiles:
    """Return the files; renamed ones with their new path."""
    names = {old.place: (new.file, new.sha256) for new, old in work.renamed}
    if not names:
        return again
    return RecordedFiles.of(names.get((file.recording, file.path), (file, sha256)) for file, sha256 in again)


def _leave_out(run: Run, work: Work, late: set[Place]) -> None:
    """Remove from the plan the snapshots that cannot be read or removed because files after them are missing.

    Raises InputError if a file was changed: its rows in the tables can neither stay nor be removed.
    """
    new = [NewFile(file, sha256) for file, sha256 in work.snapshots if (file.recording, file.path) in late]
    changed = {n.place for n in new}
    for known in work.gone_snapshots:
        if known.place in late and known.place in changed:
            raise InputError(
                f"{known.recording}/{known.path} has changed since it was read, and snapshots after it, which are "
                "needed again, are missing; put them back, and run again"
            )
    run.ledger.enter_late(new)
    work.snapshots = RecordedFiles.of(
        (file, sha256) for file, sha256 in work.snapshots if (file.recording, file.path) not in late
    )
    kept = {k.place for k in work.gone_snapshots if k.place in late}
    work.gone_snapshots = [k for k in work.gone_snapshots if k.place not in kept]
    work.gone_places = [k for k in work.gone_places if k.place not in kept]


def _clear(run: Run, found: dict[str, SourceSpan]) -> None:
    """Remove the rows of time spans that have no file left."""
    for name in SNAPSHOT_TABLES:
        if run.warehouse.exists(name):
            run.warehouse.commit_files(name, [], _replaced(run.cluster, found, name))


def _replaced(cluster: str, found: dict[str, SourceSpan], table: str) -> RowFilter:
    """Return the rows of these time spans."""
    ts = "to_ts" if table == OFFSET_CHANGES else "ts"
    return RowFilter(cluster, wanted=within(found, pl.col(ts).dt.epoch("ms")))


@dataclass(frozen=True)
class _Round:
    """Snapshots of some sources, with the time spans of all sources and the state before them (shape KNOWN).

    ``nothing_there``: the tables hold no rows of these time spans.
    """

    files: list[NewFile]
    found: dict[str, SourceSpan]
    known: pl.DataFrame
    nothing_there: bool

    def replaced(self, cluster: str, table: str) -> RowFilter | None:
        """Return the rows that the rows of these files replace."""
        mine = {str(n.file.source_name): self.found[str(n.file.source_name)] for n in self.files}
        return None if self.nothing_there else _replaced(cluster, mine, table)


def _rounds(files: pl.DataFrame) -> list[list[str]]:
    """Return the sources of each round."""
    is_polled = pl.any_horizontal(pl.col("path").str.ends_with(f"/{name}") for name in POLLED)
    size_of = pl.when(is_polled).then(POLLS).otherwise(1).sum().alias("size")
    rounds: list[list[str]] = []
    size = ROUND_FILES
    by_source = files.group_by(pl.col("source").cast(pl.String)).agg(size_of)
    for source, files_of in by_source.sort("source").iter_rows():
        if size >= ROUND_FILES:
            rounds.append([])
            size = 0
        rounds[-1].append(source)
        size += files_of
    return rounds


def _source() -> pl.Expr:
    return pl.col("path").str.extract("^snapshots/([^/]*)/").cast(pl.Categorical)


def _read_round(run: Run, one: _Round, ledger: Ledger) -> None:
    warehouse, cluster = run.warehouse, run.cluster
    pieces = _write_changes(run, one)
    beside = [row for source in pieces for row in joined(source)]
    for name, rows in beside_rows(beside, cluster).items():
        columns = [c.name for c in warehouse.contracts[name].columns]
        listed = [tuple(row.get(c) for c in columns) for row in rows]
        warehouse.replace_rows(name, listed, one.replaced(cluster, name))
    _enter_snapshots({n.file.full_path: n for n in one.files}, beside, ledger)


def _write_changes(run: Run, one: _Round) -> list[list[list[Row]]]:
    """Write silver.offset_change; return the other rows of each source's pieces, in order."""
    cuts = cut(one.files)
    beside, rows = _read_pieces(run, cuts, one.known)
    if lost := {source for (source, _), found in beside.items() if found is None}:
        # A piece found no complete file just before it: read its source in one piece, and drop what was read.
        beside, rows = _read_pieces(run, uncut(cuts, lost), one.known)
    rows.commit(one.replaced(run.cluster, OFFSET_CHANGES))
    return [[beside[key] or [] for key in sorted(keys)] for _, keys in groupby(sorted(beside), key=lambda key: key[0])]


def _read_pieces(
    run: Run, cuts: dict[PieceKey, Piece], known: pl.DataFrame
) -> tuple[dict[PieceKey, list[Row] | None], NewRows]:
    """Return the other rows of the pieces by their keys, and the new rows of silver.offset_change."""
    table = DecodedTable(OFFSET_CHANGES, "to_ts")
    done = run.decoders.run(read_piece, [(table, task) for task in piece_tasks(cuts, known)], run.settings)
    return dict(zip(cuts, done.results, strict=True)), done.rows.get(OFFSET_CHANGES) or run.decoders.none(table)


def _enter_snapshots(files: dict[str, NewFile], beside: list[Row], ledger: Ledger) -> None:
    for row in beside:
        if row["out"] not in ("file", "quarantine"):
            continue
        new = files[row["path"]]
        if row["out"] == "file":
            entry = ledger.enter(new)
            entry.status, entry.reason = row["status"], row["reason"]
            entry.rows_in, entry.rows_out, entry.rows_quarantined = (
                row["rows_in"],
                row["rows_out"],
                row["rows_quarantined"],
            )
            first, last = row["ts"], row.get("last_ts", row["ts"])
            entry.first_ts = None if first is None else instant(first * 1000)
            entry.last_ts = None if last is None else instant(last * 1000)
        else:
            line = row.get("line_number", 0)
            place = (new.file.recording, new.file.path, row["kind"], row["digest"], line, row["detail_key"])
            ledger.refused.append(QuarantineEntry(*place, row["code"], row["reason"], row["advice"], row["content"]))


def _known_before(warehouse: Warehouse, cluster: str, found: dict[str, SourceSpan]) -> pl.DataFrame:
    """Return the state of each source before its first new snapshot; shape KNOWN."""
    if not warehouse.exists("silver.snapshot"):
        return KNOWN.to_frame()
    first = min(span.first_day for span in found.values())
    standing = OffsetCheckpoint(warehouse, cluster)
    for after, until in {(span.first_day, span.last_day) for span in found.values()}:
        standing.forget(after, until)
    standing.keep(first)
    starts = {source: span.since_ms for source, span in found.items()}
    since_ms = pl.col("source_name").replace_strict(starts, default=None, return_dtype=pl.Int64)

    def known(name: str) -> pl.LazyFrame:
        return warehouse.read(name, RowFilter(cluster)).filter(pl.col("ts").dt.epoch("ms") < since_ms)

    return known_before(
        standing.from_day(first).filter(pl.col("to_ts").dt.epoch("ms") < since_ms),
        known("silver.snapshot"),
        {family: known(kind.table) for family, kind in CONFIGS.items()},
        orphan_keys(warehouse, cluster).filter(pl.col("ts_ms") < since_ms),
    )
