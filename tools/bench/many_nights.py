"""What the night of an estate costs in a warehouse that keeps many nights of it: it must not depend on their number.

`python tools/bench/many_nights.py --out DIR [--clusters 20] [--nights 0,1,30] [--recording DIR]` makes a warehouse for
each number. It holds so many earlier nights of all clusters: the rows of one night in all tables, at earlier instants,
one commit for each cluster and night, as nights arrive. Then it runs `mqreplay nightly` with the recordings of the
next night there, on one process, and prints user CPU seconds and megabytes read, by phase, a column for each warehouse:
as nights have left it, and after `maintain`. Bytes that polars maps into memory are not counted. Below are the files of
the tables after the night, and those that a read of all rows of the last day opens. --recording is the night of each
cluster; without it, 30 s of the sample.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from kept import Copied

from mqreplay.ingest.offset_checkpoint import OffsetCheckpoint
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.maintain import maintain
from mqreplay.night.nightly import COMMANDS, run
from mqreplay.night.nightly_run import NightlyRun
from mqreplay.night.steps import Span, Steps, digests, spans
from mqreplay.night.validation import Validation
from mqreplay.settings import LocalSettings, Settings, load_settings

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
PHASES = ("ingest", "replay", "validate", "report", "remember", "overview")
FILES = ("files", "of the last day")
FROM_MS, TO_MS = 1795229270000, 1795229300000
STEP = "bronze.step"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--nights", default="0,1,30", help="how many nights each warehouse keeps, with commas between")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="recordings and warehouses, made anew")
    parser.add_argument("--recording", type=Path, metavar="DIR")
    parser.add_argument("--run", type=Path, metavar="WAREHOUSE", help=argparse.SUPPRESS)  # in a process of its own
    given = parser.parse_args()
    if given.run:
        print(json.dumps(timed_night(given.run, recordings_of(given.out))))
        return
    shutil.rmtree(given.out, ignore_errors=True)
    make_recordings(given.out, given.clusters, given.recording)
    source = given.out / "kept-0"
    runs = {"0": measured(given.out, source)}
    files = [counted(source)]
    for nights in sorted({*map(int, given.nights.split(","))} - {0}):
        print(f"keeping {nights} nights", file=sys.stderr)
        warehouse, maintained = (given.out / f"kept-{nights}{suffix}" for suffix in ("", "-maintained"))
        fill(source, warehouse, nights)
        shutil.copytree(warehouse, maintained)
        maintain(str(maintained), load_settings(), lambda text: None, engine="local")
        for title, place in ((f"{nights}", warehouse), (f"{nights}, maintained", maintained)):
            runs[title] = measured(given.out, place)
            files.append(counted(place))
    print("\n".join(table(runs)))
    for name, numbers in zip(FILES, zip(*files, strict=True), strict=True):
        print(f"| {name} |" + "".join(f" {number:,} |" for number in numbers))


def make_recordings(out: Path, clusters: int, recording: Path | None) -> None:
    """Write the same night for each cluster."""
    from night.cut import cut

    first = out / "recordings" / "cluster-00"
    source = recording or ROOT / "data" / "sample" / "bulk-5.3.3"
    if recording is None:
        cut(source, first, from_ms=FROM_MS, to_ms=TO_MS, every=3)
    else:
        shutil.copytree(recording, first)
    described = json.loads((source / "brokers.json").read_text(encoding="utf-8"))
    for number in range(clusters):
        folder = first.with_name(f"cluster-{number:02}")
        if number:
            shutil.copytree(first, folder)
        text = json.dumps(described).replace(described["cluster"], folder.name)
        (folder / "brokers.json").write_text(text, encoding="utf-8")


def recordings_of(out: Path) -> list[str]:
    """Return the folders of the recordings."""
    return sorted(map(str, (out / "recordings").iterdir()))


def fill(source: Path, to: Path, nights: int) -> None:
    """Make a warehouse of the nights before that of ``source``."""
    settings, one, many = load_settings(), Warehouse(str(source)), Warehouse(str(to))
    clusters = sorted(one.read(STEP).select("cluster").unique().collect()["cluster"])
    names = [name for name in one.contracts if one.exists(name) and name != STEP]
    copied = {name: Copied(one, many, name) for name in names}
    for ago in range(nights, 0, -1):
        for cluster in clusters:
            for each in copied.values():
                each.commit(ago, cluster)
    for cluster in clusters:
        found = [Span(*row) for row in spans(cluster, settings.replay.lookback_minutes, {}).read(many)]
        _mark_as_done(many, cluster, found, settings)


def _mark_as_done(many: Warehouse, cluster: str, found: list[Span], settings: Settings) -> None:
    """Write the steps of the cluster's days, in the commits that the nights would have made."""
    replayed = digests(found, settings.digest(), settings.replay.lookback_minutes)
    validated = Validation(many, cluster, found, settings).wanted
    for day, digest in replayed.items():
        noted = Steps(many, cluster)
        noted.done("replay", {str(day): digest})
        noted.done("validate", {scope: validated[scope] for scope in (str(day), "undated")})
    OffsetCheckpoint(many, cluster).keep(max(replayed))


def measured(out: Path, warehouse: Path) -> dict[str, list[float]]:
    """Run the night in a new process; return user CPU seconds and megabytes read by phase."""
    words = [sys.executable, __file__, "--out", str(out), "--run", str(warehouse)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def counted(place: Path) -> list[int]:
    """Return the numbers of FILES."""
    warehouse = Warehouse(str(place))
    there = [contract for name, contract in warehouse.contracts.items() if warehouse.exists(name)]
    (cluster, *_) = warehouse.read(STEP).select("cluster").unique().collect()["cluster"].sort()
    last = max(warehouse.day_counts("silver.pull", cluster))
    asked = RowFilter(cluster, frozenset({last}))
    return [
        sum(len(warehouse.snapshot(each.name).files) for each in there),
        sum(len(warehouse.snapshot(each.name).of(asked)) for each in there if each.is_dated),
    ]


def timed_night(warehouse: Path, recordings: list[str]) -> dict[str, list[float]]:
    """Run the night in this process; return what each phase used, and "all" for all of the process."""
    used: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])

    def timed(phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            before = _used()
            try:
                return function(*given, **named)
            finally:
                used[phase] = [
                    spent + now - then for spent, now, then in zip(used[phase], _used(), before, strict=True)
                ]

        return call

    for phase in PHASES:
        if hasattr(NightlyRun, phase):
            setattr(NightlyRun, phase, timed(phase, getattr(NightlyRun, phase)))
    COMMANDS["nightly"] = replace(COMMANDS["nightly"], of_cluster=(NightlyRun.replay, NightlyRun.validate))
    settings = load_settings()
    here = Settings(**{**vars(settings), "local": LocalSettings(processes=1)})
    run("nightly", str(warehouse), here, lambda text: None, recordings=recordings, engine="local")
    return used | {"all": _used()}


def _used() -> list[float]:
    """Return the user CPU seconds of this process, and the megabytes that it read."""
    counts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return [resource.getrusage(resource.RUSAGE_SELF).ru_utime, int(counts["rchar"]) / 1e6]


def table(runs: dict[str, dict[str, list[float]]]) -> list[str]:
    """Return the lines of a Markdown table: seconds and megabytes by phase."""
    lines = ["| kept nights |" + "".join(f" {nights} |" for nights in runs), "|---|" + "---|" * len(runs)]
    for number, unit in enumerate(("CPU s", "MB read")):
        for phase in (*PHASES, "all"):
            cells = [figures[phase][number] if phase in figures else None for figures in runs.values()]
            lines.append(f"| {phase}, {unit} |" + "".join(" – |" if c is None else f" {c:,.1f} |" for c in cells))
    return lines


if __name__ == "__main__":
    os.environ.setdefault("POLARS_MAX_THREADS", "2")
    main()
