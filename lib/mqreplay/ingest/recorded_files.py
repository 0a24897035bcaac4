"""Files of recordings as columns: a million files take 200 MB, and as objects a gigabyte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Self

import polars as pl

from mqreplay.decode.recording.files import classify
from mqreplay.ingest.recording import NOT_READ, Digested, RecordedFile

# The fields of RecordedFile that do not follow from the path, and the SHA-256.
FILE_SCHEMA = pl.Schema(
    {
        "recording": pl.Categorical(),
        "path": pl.String(),
        "kind": pl.Categorical(),
        "bytes": pl.Int64(),
        "modified_ns": pl.Int64(),
        "changed_ns": pl.Int64(),
        "inode": pl.UInt64(),
        "version": pl.String(),
        "trouble": pl.String(),
        "trouble_code": pl.Categorical(),
        "follow_links": pl.Boolean(),
        "sha256": pl.String(),
    }
)
BATCH = 20_000  # files that are objects at the same time
RANGE = 50_000  # rows of a range of paths


class RecordedFiles:
    """Files of recordings, with a SHA-256 if it is known. ``rows`` has the columns FILE_SCHEMA."""

    def __init__(self, rows: pl.DataFrame | None = None) -> None:
        self.rows = FILE_SCHEMA.to_frame() if rows is None else rows

    @classmethod
    def of(cls, files: Iterable[Digested]) -> Self:
        """Return the files as columns, in order."""
        rest, made = iter(files), [FILE_SCHEMA.to_frame()]
        while some := list(islice(rest, BATCH)):
            made.append(pl.DataFrame([_row(file, sha256) for file, sha256 in some], FILE_SCHEMA, orient="row"))
        return cls(pl.concat(made))

    def __len__(self) -> int:
        return self.rows.height

    def __iter__(self) -> Iterator[Digested]:
        for row in self.rows.select(FILE_SCHEMA.names()).iter_rows():
            yield _file(row)

    @property
    def size(self) -> int:
        """Return the bytes of all files."""
        return int(self.rows["bytes"].sum())

    @property
    def recordings(self) -> list[str]:
        """Return the recordings of the files."""
        return self.rows["recording"].unique().cast(pl.String).sort().to_list()

    def of_kinds(self, kinds: Iterable[str]) -> list[Digested]:
        """Return the files of these kinds."""
        return list(type(self)(self.rows.filter(is_of(kinds))))


def together(parts: Iterable[RecordedFiles]) -> RecordedFiles:
    """Return the files of all parts."""
    return RecordedFiles(pl.concat([FILE_SCHEMA.to_frame(), *(part.rows for part in parts)]))


def listed(rows: pl.DataFrame) -> RecordedFiles:
    """Return files of which only some columns are known, as from the ledger."""
    missing = {
        "modified_ns": pl.lit(0),
        "changed_ns": pl.lit(0),
        "inode": pl.lit(0),
        "version": pl.lit(""),
        "trouble": pl.lit(None),
        "trouble_code": pl.lit("unreadable"),
        "follow_links": pl.lit(False),
    }
    return RecordedFiles(rows.with_columns(**missing).select(FILE_SCHEMA.names()).cast(FILE_SCHEMA))


def is_of(kinds: Iterable[str]) -> pl.Expr:
    """Return whether a file is of one of these kinds."""
    return pl.col("kind").cast(pl.String).is_in(list(kinds))


def is_unread() -> pl.Expr:
    """Return whether a file is of a kind that is not read."""
    return is_of(NOT_READ)


def by_path(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows sorted by path, which `in_ranges` needs."""
    return rows if rows["path"].is_sorted() else rows.sort("path")


def in_ranges(*frames: pl.DataFrame, most: int = RANGE) -> Iterator[tuple[pl.DataFrame, ...]]:
    """Yield the frames in consecutive ranges of paths, with about ``most`` rows each. They are sorted by path."""
    longest = max(frames, key=lambda frame: frame.height)["path"]
    cuts = longest.gather_every(most)[1:].unique(maintain_order=True).to_list()
    starts = [0] * len(frames)
    for cut in [*cuts, None]:
        ends = [f.height if cut is None else before(f["path"], cut) for f in frames]
        yield tuple(f.slice(start, end - start) for f, start, end in zip(frames, starts, ends, strict=True))
        starts = ends


def before(paths: pl.Series, path: str) -> int:
    """Return how many of the sorted ``paths`` are before ``path``."""
    return int(paths.search_sorted(path, "left")) if len(paths) else 0


def _row(file: RecordedFile, sha256: str) -> Sequence[object]:
    return (
        file.recording,
        file.path,
        file.kind,
        file.bytes,
        file.modified_ns,
        file.changed_ns,
        file.inode,
        file.version,
        file.trouble,
        file.trouble_code,
        file.follow_links,
        sha256,
    )


def _file(row: Sequence[object]) -> Digested:
    recording, path, kind, size, modified_ns, changed_ns, inode, version, trouble, code, follow_links, sha256 = row
    _, source, ts_ms = classify(str(path)) if str(path).startswith("snapshots/") else ("", None, None)
    made = RecordedFile(
        recording,  # type: ignore[arg-type]
        path,  # type: ignore[arg-type]
        kind,  # type: ignore[arg-type]
        size,  # type: ignore[arg-type]
        source,
        ts_ms,
        modified_ns,  # type: ignore[arg-type]
        changed_ns,  # type: ignore[arg-type]
        inode,  # type: ignore[arg-type]
        version,  # type: ignore[arg-type]
        trouble,  # type: ignore[arg-type]
        code,  # type: ignore[arg-type]
        follow_links,  # type: ignore[arg-type]
    )
    return made, str(sha256)
