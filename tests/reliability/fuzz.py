"""Fuzzing from the command line: `PYTHONPATH=lib:tests python tests/reliability/fuzz.py decoders --inputs 1000000`.

Prints what was given and what failed, as JSON. An input that failed is made again by --only NAME --seed S --show N.
"""

from __future__ import annotations

import argparse
import json
import os
import sys

# Arrow's own pool takes address space beforehand, which is not memory used.
os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"

from reliability import fuzz_targets
from reliability.fuzz_run import fuzz


def main() -> int:
    """Exit status 1 if an input failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("decoders", "captures", "doctor"))
    parser.add_argument("--inputs", type=int, default=1000, help="to each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--only", metavar="NAME", help="one target")
    parser.add_argument("--show", type=int, metavar="N", help="write that input to stdout")
    args = parser.parse_args()
    targets = [t for t in getattr(fuzz_targets, args.what)() if args.only in (None, t.name)]
    if args.show is not None:
        sys.stdout.buffer.write(targets[0].input(args.seed, args.show))
        return 0
    report = fuzz(
        targets, args.inputs, args.seed, args.processes, lambda text: print(text, file=sys.stderr, flush=True)
    )
    print(json.dumps({"inputs": report.inputs, "failures": report.failures}, indent=1))
    return bool(report.failures)


if __name__ == "__main__":
    sys.exit(main())
