"""mqreplay's night as far as the peers go: `python tools/bench/same_tables.py --recording DIR --out DIR`.

Ingest whole, and of the replay the tables that the peers make too (peers/equal.py): what of the night's time is for the
same work. Prints one line of JSON: seconds of wall clock of each stage, and the number of Spark jobs.
--out is made anew.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import time
from pathlib import Path

BEGAN = time.perf_counter()  # before anything of mqreplay is loaded, which takes its part


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recording", type=Path, metavar="DIR", required=True)
    parser.add_argument("--out", type=Path, metavar="DIR", required=True)
    given = parser.parse_args()
    shutil.rmtree(given.out, ignore_errors=True)
    # Spark's Python workers load same_part, too.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    print(json.dumps(importlib.import_module("same_part").stages(given.recording, given.out, BEGAN)))


if __name__ == "__main__":
    main()
