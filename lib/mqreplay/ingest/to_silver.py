"""Write decoded lines into their silver tables and the counts into the ledger."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from mqreplay.decode.kinds import KINDS
from mqreplay.engines.engine import DecodedTable, DecoderRunner, NewRows
from mqreplay.ingest.ledger import Ledger, Ledgers, QuarantineEntry
from mqreplay.ingest.manifest import KnownFile, NewFile, Place
from mqreplay.ingest.planning import Work
from mqreplay.ingest.records import FileStats, lines_tasks, read_lines
from mqreplay.ingest.snapshot_rows import instant
from mqreplay.lake.journal import Journal
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.settings import IngestSettings
from mqreplay.words.errors import ConservationError

MOST_SPANS = 50  # above, one span for all: a condition with thousands of parts would be slower


@dataclass(frozen=True)
class Run:
    """One run for one cluster: target tables, state before the run, and progress.

    ``known`` are the JSONL files and brokers.json in the ledger; ``firsts`` are recording, path and first_ts of all
    files in it. ``read_again`` are places whose files are read although their content is known. ``first_day`` is the
    first day whose rows are kept; None: all days.
    """

    warehouse: Warehouse
    decoders: DecoderRunner
    journal: Journal
    cluster: str
    settings: IngestSettings
    known: list[KnownFile]
    firsts: pl.DataFrame
    ledger: Ledger
    ledgers: Ledgers
    read_again: set[Place] = field(default_factory=set)
    first_day: dt.date | None = None


def ingest_records(run: Run, work: Work, pool: Executor) -> None:
    """Ingest all new JSONL files, each kind into its table, decoded in one pass."""
    new = {kind: files for kind in KINDS if (files := work.of(kind)) or work.gone.get(kind)}
    if not new:
        return
    tasks = [task for kind, files in new.items() for task in lines_tasks(kind, [(n.file, n.digest) for n in files])]
    # The longest first, so that no core works alone at the end.
    tasks.sort(key=lambda task: -task.cost)
    tables = {kind: DecodedTable(KINDS[kind].table, KINDS[kind].time) for kind in new}
    done = run.decoders.run(read_lines, [(tables[task.kind], task) for task in tasks], run.settings)
    stats: dict[str, dict[str, FileStats]] = {kind: {} for kind in new}
    for task, found in zip(tasks, done.results, strict=True):
        stats[task.kind] |= found

    def commit(kind: str) -> None:
        table = tables[kind]
        _commit(run, kind, work, done.rows.get(table.name) or run.decoders.none(table), stats[kind])

    list(pool.map(commit, new))


def _commit(run: Run, kind: str, work: Work, rows: NewRows, files: dict[str, FileStats]) -> None:
    """Commit the rows of one kind without duplicates of other files; remove rows of removed files."""
    if rows.count != sum(file.rows for file in files.values()):
        raise ConservationError(f"{kind}: rows were lost between reading and writing; please report this as a bug")
    gone = work.gone.get(kind, set())
    known = {k.digest: k for k in run.known if k.kind == kind and k.status == "read" and k.digest not in gone}
    left = _commit_without_copies(run, kind, rows, gone, known, files)
    if left is None:
        rows.commit(RowFilter(run.cluster, digests=frozenset({*gone, *files})) if gone else None)
    _enter_records(run, kind, work, known, files, left or {})


def _enter_records(
    run: Run, kind: str, work: Work, known: dict[str, KnownFile], files: dict[str, FileStats], left: dict[str, _Left]
) -> None:
    for new in work.of(kind):
        _enter(new, files[new.digest], run.ledger)
    names = {old.place: new for new, old in work.renamed}
    for digest in left.keys() & known.keys():
        old = known[digest]
        entry = run.ledger.enter_known(names.get(old.place, NewFile(old.file, old.sha256)), old)
        entry.rows_out = left[digest].rows + (old.rows_expired or 0)
        if not old.rows_expired:
            entry.first_ts, entry.last_ts = left[digest].first_ts, left[digest].last_ts


@dataclass(frozen=True)
class _Left:
    """The rows of a file in the table: their number, first and last instant."""

    rows: int
    first_us: int | None
    last_us: int | None

    @property
    def first_ts(self) -> dt.datetime | None:
        return None if self.first_us is None else instant(self.first_us)

    @property
    def last_ts(self) -> dt.datetime | None:
        return None if self.last_us is None else instant(self.last_us)


def _commit_without_copies(
    run: Run,
    kind: str,
    new: NewRows,
    gone: set[str],
    known: dict[str, KnownFile],
    files: dict[str, FileStats],
) -> dict[str, _Left] | None:
    """Commit the written rows without duplicates of other files, in one version.

    Return the rest of each file that lost rows; None, without a commit, if no row is in two files.
    """
    warehouse, name, when = run.warehouse, KINDS[kind].table, KINDS[kind].time
    reaches = [Reach(k.first_ts, k.last_ts, new=False) for k in known.values() if k.first_ts and k.last_ts]
    reaches += [
        Reach(instant(f.first_us), instant(f.last_us), new=True)
        for f in files.values()
        if f.first_us is not None and f.last_us is not None
    ]
    spans = shared_spans(reaches)
    if not spans:
        return None
    there = warehouse.read(name, RowFilter(run.cluster, between=(spans[0][0].date(), spans[-1][1].date())))
    stays = ~pl.col("source_digest").is_in(sorted(gone))  # a file that is read again is both removed and written
    rows = pl.concat([there.filter(stays), new.scan()])
    found = copies(rows.filter(within(spans, when)))
    if found.is_empty():
        return None
    lost = dict(found.group_by("source_digest").len().iter_rows())
    pair = pl.concat_str("record_id", "source_digest")
    is_copy = pair.is_in(found.select(pair).to_series().implode())
    of_lost = RowFilter(run.cluster, digests=frozenset(lost))
    had = warehouse.read(name, of_lost).filter(stays)
    before = _count(pl.concat([had, new.scan()]), lost, when)
    replaced = RowFilter(
        run.cluster,
        digests=frozenset({*gone, *lost, *files}),
        wanted=is_copy | pl.col("source_digest").is_in(sorted({*gone, *files})),
    )
    new.without(is_copy).commit(replaced)
    after = _count(warehouse.read(name, of_lost), lost, when)
    for digest, count in lost.items():
        if after[digest].rows != before[digest].rows - count:
            raise ConservationError(f"{name}: more rows of {digest} left than copies; please report this as a bug")
        if digest in files:
            left = after[digest]
            files[digest].rows, files[digest].first_us, files[digest].last_us = left.rows, left.first_us, left.last_us
    return after


def _count(rows: pl.LazyFrame, digests: Collection[str], when: str) -> dict[str, _Left]:
    counted = rows.filter(pl.col("source_digest").is_in(sorted(digests))).group_by("source_digest")
    ends = [getattr(pl.col(when).dt.epoch("us"), end)().alias(end) for end in ("min", "max")]
    found = counted.agg(pl.len(), *ends).collect()
    return dict.fromkeys(digests, _Left(0, None, None)) | {row[0]: _Left(*row[1:]) for row in found.iter_rows()}


def _enter(new: NewFile, found: FileStats, ledger: Ledger) -> None:
    entry = ledger.enter(new)
    entry.rows_in, entry.rows_out, entry.rows_quarantined = found.lines, found.rows, found.quarantined
    entry.reason = found.reason
    entry.first_ts = None if found.first_us is None else instant(found.first_us)
    entry.last_ts = None if found.last_us is None else instant(found.last_us)
    file = new.file
    for line in found.refused:
        place = (file.recording, file.path, file.kind, new.digest, line.line_number, "")
        ledger.refused.append(QuarantineEntry(*place, line.code, line.reason, line.advice, line.content))


# Lines that are in two files: a log was copied again, or two files overlap at the hour. The record of the file with
# the smallest digest is kept, so the order of reading does not matter. Files are read separately, so duplicates are
# searched afterwards, only in the time spans that two files share.
class Reach(NamedTuple):
    """The time span of a file's records; ``new``: it was read in this run."""

    first_ts: dt.datetime
    last_ts: dt.datetime
    new: bool


Span = tuple[dt.datetime, dt.datetime]


def shared_spans(files: Iterable[Reach]) -> list[Span]:
    """Return the time spans, both ends included, in which a new file overlaps another file; they are disjoint.

    >>> hours = [dt.datetime(2026, 1, 1, h) for h in range(4)]
    >>> of = lambda first, last, new: Reach(hours[first], hours[last], new)
    >>> [(a.hour, b.hour) for a, b in shared_spans([of(0, 1, False), of(1, 3, True), of(2, 2, False)])]
    [(1, 1), (2, 2)]
    >>> shared_spans([of(0, 1, False), of(1, 2, False), of(3, 3, True)])
    []
    """
    listed = sorted(files)
    new = [f for f in listed if f.new]
    found: list[Span] = []
    reached: dt.datetime | None = None
    for file in listed:
        if reached is not None and file.first_ts <= reached:
            span = (file.first_ts, min(file.last_ts, reached))
            if any(n.first_ts <= span[1] and span[0] <= n.last_ts for n in new):
                found.append(span)
        reached = file.last_ts if reached is None else max(reached, file.last_ts)
    return _merged(found)


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    if len(merged) > MOST_SPANS:
        return [(merged[0][0], merged[-1][1])]
    return merged


def within(spans: Iterable[Span], when: str) -> pl.Expr:
    """Return whether an instant is in one of the spans."""
    return pl.any_horizontal([pl.col(when).is_between(pl.lit(first), pl.lit(last)) for first, last in spans])


def copies(rows: pl.LazyFrame) -> pl.DataFrame:
    """Return record_id and source_digest of the rows that are also in a file with a smaller digest."""
    first = pl.col("source_digest").min().over("record_id")
    return rows.select("record_id", "source_digest").filter(pl.col("source_digest") > first).collect()
