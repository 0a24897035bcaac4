"""What a night costs in a warehouse that holds many nights already: it must not depend on how many there are.

`python tools/bench/kept.py --recording DIR --nights 0,1,20 --out DIR [--engine spark|local]` makes a warehouse for each
number. It holds so many nights before that of DIR, each with DIR's own rows of bronze and silver at earlier instants.
Then it runs `mqreplay nightly DIR` there, and prints the stages, a column for each warehouse. Gold of those nights is
left out: a replay reads no more of it than the lookback.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import polars.selectors as cs
import pyarrow as pa
from night_run import mqreplay, stages

from mqreplay.ingest.offset_checkpoint import OffsetCheckpoint
from mqreplay.lake.table_files import TableFile, files_in, scan_files, snapshot
from mqreplay.lake.table_writer import as_table
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.steps import DIGEST_CHARS, Span, Steps, digests, spans
from mqreplay.night.validation import VALIDATION_TABLE, Validation
from mqreplay.settings import load_settings

LEDGER = "bronze.source_file"
SHOWN = ("ingest", "replay", "validate", "report", "all", "peak MB")
DAY_MS = 86_400_000
FINDING_CHARS = 16  # of the id of a finding
RECORD_CHARS = 32  # of the id of a record
MOMENT = r"^(snapshots/[^/]+/)(\d+)(/[^/]+)$"  # the path of a snapshot: its folder is named by its instant


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recording", type=Path, required=True, metavar="DIR")
    parser.add_argument("--nights", default="0,1,20", help="how many nights each warehouse holds, with commas between")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the warehouses, made anew")
    parser.add_argument("--engine", choices=("spark", "local"), default="spark")
    given = parser.parse_args()
    source = given.out / "source"
    shutil.rmtree(given.out, ignore_errors=True)
    mqreplay("ingest", given.recording, source, "--engine", "local")
    runs = {}
    for nights in map(int, given.nights.split(",")):
        print(f"beside {nights} nights", file=sys.stderr)
        warehouse = given.out / f"kept-{nights}"
        if nights:
            fill(source, warehouse, nights)
        lines, used = mqreplay("nightly", given.recording, warehouse, "--engine", given.engine)
        runs[nights] = stages(lines) | used
        shutil.rmtree(warehouse)
    print("| beside so many nights |" + "".join(f" {nights} |" for nights in runs))
    print("|---|" + "---|" * len(runs))
    for stage in SHOWN:
        print(f"| {stage} |" + "".join(f" {figures[stage]:,.1f} |" for figures in runs.values()))


def fill(source: Path, to: Path, nights: int) -> None:
    """Make a warehouse of the nights before that of ``source``, and of nothing else."""
    settings, one, many = load_settings(), Warehouse(str(source)), Warehouse(str(to))
    for name in [n for n in one.contracts if n.startswith("silver.") or n == LEDGER]:
        if one.exists(name):
            # One commit a night, as nights arrive.
            for ago in range(1, nights + 1):
                Copied(one, many, name).commit(ago)
    cluster = many.read(LEDGER).select(pl.col("cluster").unique()).collect().item()
    lookback, noted = settings.replay.lookback_minutes, Steps(many, cluster)
    found = [Span(*row) for row in spans(cluster, lookback, {}).read(many)]
    by_day = digests(found, settings.digest(), lookback)
    noted.done("replay", {str(day): digest for day, digest in by_day.items()})
    noted.done("validate", Validation(many, cluster, found, settings).wanted)
    OffsetCheckpoint(many, cluster).keep(max(by_day))  # as the replay of the last night did


class Copied:
    """A table of a warehouse, to copy into another with its rows at earlier instants."""

    def __init__(self, one: Warehouse, many: Warehouse, name: str) -> None:
        """Take the table ``name`` of both."""
        self._one, self._many, self._name = one, many, name

    def commit(self, days: int, cluster: str | None = None) -> None:
        """Commit its rows, or those of the cluster, so many days earlier; file by file, some rows at a time."""
        writer = self._many.writer(self._name)
        wanted = pl.lit(True) if cluster is None else pl.col("cluster") == cluster
        if self._name == VALIDATION_TABLE:
            wanted &= pl.col("day").is_not_null()  # the results of tables without days are those of the last night

        def batches(file: TableFile) -> Iterator[pa.RecordBatch]:
            rows = scan_files(writer.schema, [file]).filter(wanted)
            for batch in rows.collect_batches():
                yield from as_table(earlier(batch, days), writer.schema, self._name).to_batches()

        place = self._one.location(self._name)
        files = files_in(place, snapshot(place).files)
        self._many.commit_files(self._name, [one for file in files for one in writer.write(batches(file))], None)


def earlier(rows: pl.DataFrame, days: int) -> pl.DataFrame:
    """Return the rows as if recorded so many days earlier, in other files of another recording."""
    ago = dt.timedelta(days=days)
    changed = {
        "recording": pl.col("recording") + f"-{days}",
        "path": _earlier_path(days),
        "source_digest": _other_digest("source_digest", days).str.head(DIGEST_CHARS),
        "sha256": _other_digest("sha256", days),
        "finding_id": _other_digest("finding_id", days).str.head(FINDING_CHARS),
        "follows_from": _other_digest("follows_from", days).str.head(FINDING_CHARS),
        "run_id": _other_digest("run_id", days).str.head(DIGEST_CHARS),
        "record_id": _other_digest("record_id", days).str.head(RECORD_CHARS),
    }
    made = [expression.alias(name) for name, expression in changed.items() if name in rows.columns]
    return rows.with_columns(cs.temporal() - ago, *made)


def _earlier_path(days: int) -> pl.Expr:
    moment = pl.col("path").str.extract(MOMENT, 2).cast(pl.Int64) - days * DAY_MS
    parts = [pl.col("path").str.extract(MOMENT, 1), moment.cast(pl.String), pl.col("path").str.extract(MOMENT, 3)]
    return pl.coalesce(pl.concat_str(parts), "path")


def _other_digest(column: str, days: int) -> pl.Expr:
    """A SHA-256 for that of another file; rows of one file, which have its beginning only, agree with it."""

    def other(digest: str) -> str:
        return hashlib.sha256(f"{digest[:DIGEST_CHARS]} {days}".encode()).hexdigest()

    return pl.col(column).map_batches(lambda digests: _each_once(digests, other), pl.String)


def _each_once(values: pl.Series, change: Callable[[str], str]) -> pl.Series:
    """Change each value, calling the function once for equal ones."""
    distinct = values.drop_nulls().unique()
    return values.replace_strict(distinct, [change(value) for value in distinct], return_dtype=pl.String, default=None)


if __name__ == "__main__":
    main()
