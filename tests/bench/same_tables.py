"""mqreplay's night as far as the peers go: `python tests/bench/same_tables.py --recording DIR --out DIR`.

Ingest whole, and of the replay the tables that the peers make too (peers/equal.py): what of the night's time is for the
same work. Prints one line of JSON: seconds of wall clock of each stage. --out is made anew.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BEGAN = time.perf_counter()
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lib"))

from mqreplay import night
from mqreplay.day_rows import INSTANTS
from mqreplay.decisions import WRITERS, Progress, Replay
from mqreplay.ingest.digests import KnownDigests
from mqreplay.ingest.recording import find_recordings
from mqreplay.lake.session import build_session, fit_to
from mqreplay.settings import load_settings


class SamePart(Replay):
    """Of a day's tables those that the peers make."""

    def run(self, progress: Progress) -> None:
        """Writes them."""
        with ThreadPoolExecutor(WRITERS) as pool:
            near = list(pool.map(self._silver, INSTANTS))
            judged = self._judge(dict(zip(INSTANTS, near, strict=True)))
            same = {name: judged[name] for name in ("gold.allocation", "gold.pull_route")}
            self._write_all(pool, same, progress)
        self._write("gold.offset_continuity", self._breaks(self._read_again("gold.pull_route")), progress)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recording", type=Path, metavar="DIR", required=True)
    parser.add_argument("--out", type=Path, metavar="DIR", required=True)
    given = parser.parse_args()
    shutil.rmtree(given.out, ignore_errors=True)
    night.Replay = SamePart
    print(json.dumps(stages(given.recording, given.out)))


def stages(recording: Path, out: Path) -> dict[str, float]:
    """Seconds of each stage, by the names of `make bench`."""
    settings, found = load_settings(), find_recordings([str(recording)])
    size = sum(file.bytes for files in found.values() for file in files)
    with ThreadPoolExecutor(1) as beside:
        digested = beside.submit(KnownDigests(str(out)).of_recordings, found)
        spark = build_session("same tables", settings.spark, size)
        fit_to(spark, size, settings.spark.shuffle_partitions)
        told = {"session": time.perf_counter() - BEGAN}
        mine = night.Night(spark, str(out), settings, lambda text: print(text, file=sys.stderr))
        (ingested,) = mine.ingest(digested.result(), None)
    told["ingest"] = time.perf_counter() - BEGAN - told["session"]
    mine.replay(ingested.cluster)
    told["all"] = time.perf_counter() - BEGAN
    return told | {"replay": told["all"] - told["session"] - told["ingest"]}


if __name__ == "__main__":
    main()
