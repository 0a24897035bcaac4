"""Large kinds of flat lines beside pulls -> their silver tables: commits, and the logs of deliveries."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from mqreplay.decode.kinds import KINDS

from .delta import Written, hex_strings, write_frame
from .pull_lines import digests_of, gunzip

TYPES = {"timestamp_ms": pl.Int64, "bigint": pl.Int64, "int": pl.Int32, "string": pl.String, "boolean": pl.Boolean}


@dataclass(frozen=True)
class FlatKind:
    """A kind's table, and its columns with the types that mqreplay's decoder names."""

    table: str
    columns: dict[str, str]

    @property
    def fields(self) -> dict[str, type[pl.DataType]]:
        """Its columns as polars reads them: instants are numbers yet."""
        return {name: TYPES[kind] for name, kind in self.columns.items()}

    @property
    def instants(self) -> list[str]:
        """Its columns of epoch ms."""
        return [name for name, kind in self.columns.items() if kind == "timestamp_ms"]


STEMS = ("offset_commits", "consume_log", "produce_log")
FLAT = {stem: FlatKind(KINDS[stem].table, dict(KINDS[stem].columns)) for stem in STEMS}


def read_flat(stem: str, path: Path, cluster: str, out: Path) -> tuple[Written, int]:
    """Write a file's rows into its kind's table; return that file and the first instant (epoch ms)."""
    kind, text = FLAT[stem], gunzip(path)
    frame = pl.read_ndjson(text, schema=kind.fields)
    silver = frame.select(
        pl.lit(cluster).alias("cluster"),
        pl.from_epoch("ts", "ms").dt.date().alias("day"),
        *[
            (pl.col(name) * 1000).cast(pl.Datetime("us", "UTC")) if name in kind.instants else pl.col(name)
            for name in kind.columns
        ],
        pl.Series("record_id", hex_strings(digests_of(text))),
        pl.lit(hashlib.sha256(path.read_bytes()).hexdigest()[:32]).alias("source_digest"),
    )
    return write_frame(out / kind.table.replace(".", "/"), silver), int(frame["ts"].min())  # type: ignore[arg-type]
