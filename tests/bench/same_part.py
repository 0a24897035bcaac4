"""Of a night the part that the peers do too (same_tables.py)."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mqreplay import night
from mqreplay.day_rows import INSTANTS
from mqreplay.decisions import WRITERS, Progress, Replay
from mqreplay.ingest.digests import KnownDigests
from mqreplay.ingest.recording import find_recordings
from mqreplay.lake.session import build_session, fit_to
from mqreplay.settings import load_settings


class SamePart(Replay):
    """Of a day's tables those of peers/equal.py."""

    def run(self, progress: Progress) -> None:
        """Writes them."""
        with ThreadPoolExecutor(WRITERS) as pool:
            near = list(pool.map(self._silver, INSTANTS))
            judged = self._judge(dict(zip(INSTANTS, near, strict=True)))
            same = {name: judged[name] for name in ("gold.allocation", "gold.pull_route")}
            self._write_all(pool, same, progress)
        self._write("gold.offset_continuity", self._breaks(self._read_again("gold.pull_route")), progress)


def stages(recording: Path, out: Path, began: float) -> dict[str, float]:
    """Seconds of each stage since ``began`` (of time.perf_counter), by the names of `make bench`."""
    settings, found = load_settings(), find_recordings([str(recording)])
    size = sum(file.bytes for files in found.values() for file in files)
    with ThreadPoolExecutor(1) as beside:
        digested = beside.submit(KnownDigests(str(out)).of_recordings, found)
        spark = build_session("same tables", settings.spark, size)
        fit_to(spark, size, settings.spark.shuffle_partitions)
        ready = time.perf_counter()
        mine = night.Night(spark, str(out), settings, lambda text: print(text, file=sys.stderr))
        (ingested,) = mine.ingest(digested.result(), None)
    read = time.perf_counter()
    whole, night.Replay = night.Replay, SamePart
    try:
        mine.replay(ingested.cluster)
    finally:
        night.Replay = whole
    over = time.perf_counter()
    return {"session": ready - began, "ingest": read - ready, "replay": over - read, "all": over - began}
