"""One table: a made-up estate's night in mqreplay, in polars, DuckDB and plain Python, and the floor below.

`python tools/bench/nights.py [--size XS|S|M|L] [--full] [--hours N] [--runs N] [--folder DIR]
                             [--engines spark,same,local,same-local,polars,duckdb,plain]`
`make bench` runs it with S, once; with --hours it takes the day's first hours alone. `spark` and `local` are the two
engines of mqreplay; `same` and `same-local` are their nights with only the tables that the peers make too.
Every engine is a process of its own and starts from nothing; the table has medians of the runs, interleaved, because
the machine is not quiet. Use the seconds for ratios, not to compare machines. CPU seconds and peak memory are those of
all processes of an engine together.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

from driver_share import driver_share
from estate.parts import first_hours, snapshots_of
from night_run import mqreplay, session_of, stages
from night_table import TITLES, table, with_sums
from peers.usage import watched

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="S", choices=("XS", "S", "M", "L"))
    parser.add_argument("--full", action="store_true", help="an estate with the additions of estate/additions.py")
    parser.add_argument("--hours", type=int, default=24, help="how many of the day's hours, from its first on")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), f"mqreplay-bench-{os.getuid()}"))
    parser.add_argument("--engines", default=",".join(TITLES))
    given = parser.parse_args()
    recording = given.folder / (f"{given.size}-full" if given.full else given.size)
    if not (recording / "answers.json").exists():
        print(f"making {recording}", file=sys.stderr)
        full = ["--full"] if given.full else []
        _python("estate.py", "--size", given.size, *full, "--out", str(recording))
    if given.hours < 24:
        recording = first_hours(recording, given.hours)
    engines = given.engines.split(",")
    if unknown := [engine for engine in engines if engine not in TITLES]:
        parser.error(f"unknown engine {', '.join(unknown)}; known: {', '.join(TITLES)}")
    runs: dict[str, list[dict[str, float]]] = {engine: [] for engine in engines}
    for run in range(given.runs):
        for engine in engines:
            print(f"run {run + 1} of {given.runs}: {engine}", file=sys.stderr)
            out = given.folder / f"{engine}-{recording.name}"
            found = ENGINES.get(engine, partial(_peer, engine))(recording, out)
            runs[engine].append(found)
            print(json.dumps({stage: round(seconds, 2) for stage, seconds in found.items()}), file=sys.stderr)
    floor = json.loads(_python("limit.py", "--recording", str(recording), "--runs", "1")[0])
    whole = floor["floor_s"]
    floors = {"silver.offset_change": floor["read_snapshots"]["wall_s"], "ingest": whole, "all": whole}
    print(f"\nsize {recording.name}, medians of {given.runs}; the floor: every byte read and inflated, on one core\n")
    print("\n".join(table(runs, floors)))


def _python(script: str, *arguments: str) -> tuple[str, dict[str, float]]:
    """Return what a command of this folder printed, and the figures of usage.Usage."""
    done, used = watched([sys.executable, str(HERE / script), *arguments])
    if done.returncode:
        raise SystemExit(f"{script} failed:\n{done.stderr[-2000:]}{done.stdout[-2000:]}")
    return done.stdout, used


def _peer(engine: str, recording: Path, out: Path) -> dict[str, float]:
    printed, _ = _python("peers.py", "--peer", engine, "--recording", str(recording), "--out", str(out))
    figures = json.loads(printed)
    seconds = {name: stage["wall_s"] for name, stage in figures["stages"].items()}
    if "start" in seconds:
        seconds["session"] = seconds.pop("start")
    usage = {"CPU s": figures["cpu_s"], "peak MB": figures["peak_rss_mb"]}
    return with_sums(seconds) | {"all": figures["total_s"], **usage}


def _same(engine: str, recording: Path, out: Path) -> dict[str, float]:
    printed, used = _python("same_tables.py", "--recording", str(recording), "--out", str(out), "--engine", engine)
    taken: dict[str, float] = json.loads(printed)
    return taken | used


def _spark(recording: Path, out: Path) -> dict[str, float]:
    """A night on Spark, and what its event log says of the first run."""
    with tempfile.TemporaryDirectory() as events:
        conf = Path(events, "conf.toml")
        log = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": f"file://{events}/log",
        }
        Path(events, "log").mkdir()
        conf.write_text("[spark.extra]\n" + "".join(f'"{name}" = "{value}"\n' for name, value in log.items()))
        taken = _night("spark", recording, out, "--conf", str(conf))
        logged = driver_share(Path(events, "log"))
    return taken | {"driver alone, % of the time": 100 * logged["driver_share"], "Spark jobs": logged["jobs"]}


def _night(engine: str, recording: Path, out: Path, *more: str) -> dict[str, float]:
    """`mqreplay nightly` into an empty warehouse, its stages by its progress lines; then the night again.

    And the snapshots alone: `mqreplay ingest` of a recording that has nothing else, without the start of Spark.
    """
    shutil.rmtree(out, ignore_errors=True)
    first, used = mqreplay("nightly", recording, out, "--engine", engine, *more)
    again, _ = mqreplay("nightly", recording, out, "--engine", engine)
    shutil.rmtree(out)
    alone, _ = mqreplay("ingest", snapshots_of(recording), out, "--engine", engine)
    return stages(first) | {"silver.offset_change": alone[-1][0] - session_of(alone), "again": again[-1][0], **used}


ENGINES = {
    "spark": _spark,
    "same": partial(_same, "spark"),
    "local": partial(_night, "local"),
    "same-local": partial(_same, "local"),
}


if __name__ == "__main__":
    main()
