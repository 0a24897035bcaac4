"""Writes a made-up estate's day: `python tools/bench/estate.py --size S --seed 1 [--full] --out DIR`.

DIR is then a recording as `mqreplay nightly` reads it, with answers.json beside its files: what is known of it. The
same size and seed give the same bytes.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from estate.sizes import SIZES  # the package beside this file
from estate.write import write_estate


def main() -> None:
    """The command line; says on stderr how long it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--full", action="store_true", help="with the additions: see estate/additions.py")
    given = parser.parse_args()
    began = time.perf_counter()
    answers = write_estate(given.size, given.seed, given.out, given.full)
    took = time.perf_counter() - began
    print(f"{answers['entries']:,} entries, {answers['pulls']:,} pulls in {took:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
