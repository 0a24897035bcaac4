"""What a million snapshot files cost the driver alone: the plan and the rounds of an ingest, with made-up tasks.

`python tools/bench/driver_files.py [--sources 58] [--snapshots 17280] [--seconds 170] [--folder DIR]` makes the list of
files in memory, and prints each progress line with the most memory until then. Tasks read nothing: this process makes
their answers. It ends after the given seconds; then the next call continues, as after a killed run.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mqreplay.ingest.recorded_files import FILES, RecordedFiles, listed
from mqreplay.ingest.run import ingest
from mqreplay.ingest.snapshot_file_rows import file_row, snapshot_row
from mqreplay.ingest.snapshots import PieceRead
from mqreplay.lake.warehouse import Warehouse
from mqreplay.settings import IngestSettings

BEGAN_MS, APART_MS = 1_795_305_600_000, 5_000
DIGEST = "d" * 32


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=int, default=58)
    parser.add_argument("--snapshots", type=int, default=17_280, help="of each source")
    parser.add_argument("--seconds", type=float, default=170)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), f"mqreplay-bench-{os.getuid()}"))
    given = parser.parse_args()
    began = time.perf_counter()

    def say(text: str) -> None:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
        print(f"{time.perf_counter() - began:6.1f} s  {most:.2f} GB  {text}", flush=True)

    warehouse = Warehouse(str(given.folder / "driver-files-warehouse"))
    files = {"/recording": made(given.sources, given.snapshots)}
    say("files listed")
    threading.Timer(given.seconds, lambda: (say("stopped"), os._exit(1))).start()
    (done,) = ingest(warehouse, MadeUpTasks(), files, "files", IngestSettings(), say)
    say(f"{done.files_read:,} files read")
    os._exit(0)


def made(sources: int, snapshots: int) -> RecordedFiles:
    """Files of sources, each with a SHA-256 of its own."""
    source, number = pl.int_range(pl.len()) // snapshots, pl.int_range(pl.len()) % snapshots
    path = pl.format(
        "snapshots/broker-{}-0/{}/consumerOffset.json",
        source.cast(pl.String).str.zfill(5),
        BEGAN_MS + number * APART_MS,
    )
    digits = (10**15 + pl.int_range(pl.len()) * 7919).cast(pl.String)
    rows = pl.DataFrame({"recording": ["/recording"]}).select(
        pl.col("recording").repeat_by(sources * snapshots).explode()
    )
    rows = rows.with_columns(
        path=path, kind=pl.lit("consumer_offset"), bytes=pl.lit(270), sha256=pl.concat_str([digits] * 4)
    )
    return RecordedFiles(listed(rows).rows.select(FILES.names()))


class MadeUpTasks:
    """An engine whose tasks find five changed offsets in each snapshot, without reading it."""

    def map(self, function: Any, items: Sequence[Any], context: Any) -> Iterator[PieceRead]:
        """As Engine.map, for read_piece."""
        for task in items:
            name = {"source_name": task.source_name, "broker_name": task.source_name[:-2], "broker_id": 0}
            beside = [
                {**row, **name, "client_id": None}
                for file in task.piece.own
                for row in (
                    snapshot_row(file.ts_ms, file.file_name, DIGEST, 16, 5, None),
                    file_row(file, "read", None, DIGEST, 5, 5),
                )
            ]
            yield PieceRead([], beside)

    def progress(self) -> str:
        """As Engine.progress."""
        return "tasks are made up"

    def cancel(self) -> None:
        """As Engine.cancel."""


if __name__ == "__main__":
    main()
