"""The plan of a run over all files of its recordings: only changed files are objects, and only some at a time.

What becomes of a file depends on its path and on the files of the same path, in any recording, except for JSONL files:
the content of these may have another name. So all files of the top folder are planned together, and the others in
ranges of paths. Paths whose files are all as in the ledger are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

import polars as pl

from mqreplay.decode.recording.files import RECORD_TABLES, SNAPSHOT_FILES
from mqreplay.ingest.manifest import IN_TABLES, LEDGER, KnownFile, NewFile, known_file, plan
from mqreplay.ingest.recorded_files import BATCH, FILE_SCHEMA, RecordedFiles, by_path, in_ranges, is_of, is_unread
from mqreplay.ingest.recording import UNREAD_KINDS, RecordedFile

MOVED_SHARE = 0.5  # share of a recording's files that are unchanged in another folder: then the recording was moved
FILE_KEY = ["recording", "path"]


@dataclass
class Work:
    """The plan of a run, see Plan. ``snapshots`` are the new files of SNAPSHOTS, ``new`` the other new ones."""

    seen: int = 0
    new: list[NewFile] = field(default_factory=list)
    snapshots: RecordedFiles = field(default_factory=RecordedFiles)
    duplicates: RecordedFiles = field(default_factory=RecordedFiles)
    not_read: RecordedFiles = field(default_factory=RecordedFiles)
    unreadable: list[NewFile] = field(default_factory=list)
    renamed: list[tuple[NewFile, KnownFile]] = field(default_factory=list)
    gone_places: list[KnownFile] = field(default_factory=list)
    gone: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    gone_snapshots: list[KnownFile] = field(default_factory=list)

    @property
    def nothing_new(self) -> bool:
        """Return whether the tables already equal these files."""
        listed = (self.new, self.unreadable, self.renamed, self.gone_places, self.gone, self.gone_snapshots)
        return not any(listed) and not any(map(len, (self.snapshots, self.duplicates, self.not_read)))

    @property
    def to_read(self) -> int:
        """Return the number of new files."""
        return len(self.new) + len(self.snapshots)

    @property
    def to_read_bytes(self) -> int:
        """Return the size of the new files."""
        return sum(n.file.bytes for n in self.new) + int(self.snapshots.rows["bytes"].sum())

    def of(self, *kinds: str) -> list[NewFile]:
        """Return new files of these kinds, other than snapshots, in path order."""
        return [n for n in self.new if n.file.kind in kinds]


def plan_files(
    found: RecordedFiles,
    known: pl.DataFrame,
    requested: Collection[str],
    *,
    forget: bool = True,
    is_there: Callable[[RecordedFile], bool] = lambda known: True,
) -> Work:
    """Return the plan that makes the tables equal to ``found``; see `plan`. ``known`` has the columns LEDGER."""
    made = Work(seen=len(found))
    closed = [file.full_path for file, _ in found.of_kinds(["folder"])]
    snapshots, duplicates, not_read = [FILE_SCHEMA.to_frame()], [FILE_SCHEMA.to_frame()], [FILE_SCHEMA.to_frame()]
    for some, rows in _parts(found.rows, known):
        fresh, files = _fresh(some, rows)
        snapshots.append(fresh)
        part = plan(
            list(RecordedFiles(files)),
            map(known_file, rows.select(LEDGER.names()).iter_rows()),
            requested,
            forget=forget,
            is_there=is_there,
            closed=closed,
        )
        made.new += [n for n in part.new if n.file.kind not in SNAPSHOT_FILES]
        snapshots.append(_columns(n for n in part.new if n.file.kind in SNAPSHOT_FILES))
        duplicates.append(_columns(part.duplicates))
        not_read.append(_columns(part.not_read))
        made.unreadable += part.unreadable
        made.renamed += part.renamed
        made.gone_places += part.gone_places
        made.gone_snapshots += part.gone_snapshots
        for kind, gone in part.gone.items():
            made.gone[kind] |= gone
    made.snapshots, made.duplicates, made.not_read = (
        RecordedFiles(pl.concat(parts)) for parts in (snapshots, duplicates, not_read)
    )
    made.new.sort(key=lambda n: n.place)
    made.gone_snapshots.sort(key=lambda k: k.place)
    return made


def _columns(files: Iterable[NewFile]) -> pl.DataFrame:
    return RecordedFiles.of((n.file, n.sha256) for n in files).rows


def _parts(found: pl.DataFrame, known: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield the files and rows to plan together."""
    is_inside = pl.col("path").str.contains("/", literal=True)
    yield found.filter(~is_inside), known.filter(~is_inside)
    for files, rows in in_ranges(by_path(found), by_path(known), most=BATCH):
        some = _changed(files.filter(is_inside), rows.filter(is_inside))
        if some[0].height or some[1].height:
            yield some


def _fresh(files: pl.DataFrame, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the snapshots whose path is in no other recording and not in the ledger, which are new, and the others."""
    is_alone = is_of(SNAPSHOT_FILES) & (pl.col("sha256") != "") & pl.col("path").is_unique()
    marked = files.with_columns(fresh=is_alone & ~pl.col("path").is_in(rows["path"].implode()))
    return marked.filter("fresh").drop("fresh"), marked.filter(~pl.col("fresh")).drop("fresh")


def _changed(files: pl.DataFrame, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the files and rows of all paths at which a file is not as in the ledger."""
    if not rows.height or not files.height:
        return files, rows
    ledger = rows.select(*FILE_KEY, "status", "sha256", of_kind="kind", of_bytes="bytes")
    pairs = files.select(*FILE_KEY, "kind", "bytes", "sha256").join(ledger, on=[*FILE_KEY, "sha256"])
    is_read = (pl.col("sha256") != "") & _is(pl.col("status"), IN_TABLES) & ~is_unread()
    has_size = is_of(UNREAD_KINDS) | (pl.col("bytes") == pl.col("of_bytes"))
    is_noted = is_unread() & _is(pl.col("status"), ["not_read"]) & has_size
    same = pairs.filter((pl.col("kind") == pl.col("of_kind")) & (is_read | is_noted)).select(FILE_KEY)
    same = same.filter(pl.col("path").is_unique())  # of files of one path, one represents the content
    changed = pl.concat([frame.join(same, on=FILE_KEY, how="anti").select("path") for frame in (files, rows)]).unique()
    return files.join(changed, on="path", how="semi"), rows.join(changed, on="path", how="semi")


def _is(column: pl.Expr, values: Iterable[str]) -> pl.Expr:
    return column.cast(pl.String).is_in(list(values))


def changed_snapshots(found: RecordedFiles, known: pl.DataFrame, requested: Collection[str]) -> pl.DataFrame:
    """Return path and sha256 of snapshots that are new in the ``requested`` recordings, or no longer there.

    Also of those whose rows are another recording's, which has the same file.
    """
    now = found.rows.filter(is_of(SNAPSHOT_FILES) & (pl.col("sha256") != "")).select("path", "sha256")
    is_own = _is(pl.col("recording"), requested) & ~_is(pl.col("status"), ["duplicate"])
    before = known.filter(is_of(SNAPSHOT_FILES) & is_own).select("path", "sha256")
    differing = [
        one.join(other, on=["path", "sha256"], how="anti")
        for pair in in_ranges(by_path(now), by_path(before))
        for one, other in (pair, pair[::-1])
    ]
    return pl.concat(differing).unique()


def moved_recordings(
    found: RecordedFiles, known: pl.DataFrame, requested: Iterable[str], vanished: Iterable[str]
) -> dict[str, str]:
    """Return old folder -> new folder of moved recordings: ``vanished`` ones whose files are in a new folder."""
    gone = list(vanished)
    listed = known.filter(_is(pl.col("recording"), gone) & is_of([*RECORD_TABLES, *SNAPSHOT_FILES]))
    if not listed.height:
        return {}
    count = dict(listed.group_by(pl.col("recording").cast(pl.String)).len().iter_rows())
    there = found.rows.filter(_is(pl.col("recording"), requested) & (pl.col("sha256") != ""))
    pairs = listed.select("path", "sha256", old="recording").join(
        there.select("path", "sha256", new="recording"), on=["path", "sha256"]
    )
    same = pairs.group_by(pl.col("old", "new").cast(pl.String)).len("files")
    made: dict[str, str] = {}
    for old, new, files in same.sort("files", "old", "new", descending=[True, False, False]).iter_rows():
        if files >= MOVED_SHARE * count[old] and old not in made and new not in made.values():
            made[old] = new
    return made
