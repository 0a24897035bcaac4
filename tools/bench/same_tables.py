"""mqreplay's night, but only the tables of the peers: `python tools/bench/same_tables.py --recording DIR --out DIR`.

The whole ingest, and of the replay the tables that the peers make too (peers/equal.py): the night's time for the same
work. Prints one line of JSON: seconds of wall clock of each stage, and on Spark the number of jobs. --out is made anew.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import time
from pathlib import Path

BEGAN = time.perf_counter()  # before mqreplay is loaded, which is part of its time


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recording", type=Path, metavar="DIR", required=True)
    parser.add_argument("--out", type=Path, metavar="DIR", required=True)
    parser.add_argument("--engine", choices=("spark", "local"), default="spark")
    given = parser.parse_args()
    shutil.rmtree(given.out, ignore_errors=True)
    # The workers of both engines load same_part, too.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    same_part = importlib.import_module("same_part")
    print(json.dumps(same_part.stages(given.engine, given.recording, given.out, BEGAN)))


if __name__ == "__main__":
    main()
