"""What an hour costs that is added to a day: `python tools/bench/added_hour.py --recording DIR --out DIR`.

DIR is made by estate.py. Runs `mqreplay nightly` with its first 23 hours, again with the whole day in the same
warehouse, and with the whole day in a new one. Prints the seconds of each stage and CPU seconds, a column for each run,
and how much of the whole day the added hour cost. --out is made anew.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from estate.parts import first_hours
from night_run import mqreplay, stages

HOURS = 23
SHOWN = ("ingest", "replay", "validate", "report", "all", "CPU s", "peak MB")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recording", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--engine", choices=("spark", "local"), default="local")
    given = parser.parse_args()
    shutil.rmtree(given.out, ignore_errors=True)
    growing = given.out / "recording"
    shutil.copytree(first_hours(given.recording, HOURS), growing, copy_function=os.link)
    runs = [timed(growing, given.out / "warehouse", given.engine)]
    shutil.copytree(given.recording, growing, copy_function=link_new, dirs_exist_ok=True)
    runs.append(timed(growing, given.out / "warehouse", given.engine))
    runs.append(timed(growing, given.out / "whole", given.engine))
    print(f"| | first {HOURS} hours | with an hour more | the whole day |\n|---|---|---|---|")
    for stage in SHOWN:
        print(f"| {stage} |" + "".join(f" {figures[stage]:,.1f} |" for figures in runs))
    print(f"the added hour took {runs[1]['CPU s'] / runs[2]['CPU s']:.2f} of the day's CPU time")


def timed(recording: Path, warehouse: Path, engine: str) -> dict[str, float]:
    """Run the night; return its stages and the figures of usage.Usage."""
    lines, used = mqreplay("nightly", recording, warehouse, "--engine", engine)
    return stages(lines) | used


def link_new(source: str, to: str) -> None:
    """Link a file that is not there yet."""
    if not Path(to).exists():
        os.link(source, to)


if __name__ == "__main__":
    main()
