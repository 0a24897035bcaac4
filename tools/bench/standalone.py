"""A made-up estate's night on a real standalone master with two workers of one core, through spark-submit.

`python tools/bench/standalone.py --recording DIR --out DIR [--same-as WAREHOUSE]` prints what the night says, then one
line of JSON: the seconds it took, the share of them in which the driver alone worked (driver_share.py), and, table by
table, whether its rows are those of another warehouse.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
from driver_share import driver_share

from mqreplay.lake.warehouse import Warehouse

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from standalone_cluster import environment, standalone  # noqa: E402 - of the tests

SKIPPED = {"bronze.step"}  # notes on the run, not its results


def main() -> int:
    """The command line; 1 if a table differs, or the night failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recording", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the warehouse, made anew")
    parser.add_argument("--same-as", type=Path, metavar="DIR")
    parser.add_argument("--memory", default="3g", help="of each worker's executor, and of the driver")
    given = parser.parse_args()
    shutil.rmtree(given.out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as events:
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as work, standalone(Path(work), given.memory) as master:
            status = submit(master, given.recording, given.out, given.memory, events)
        result: dict[str, object] = {"status": status, "wall_s": round(time.perf_counter() - began, 1)}
        result |= {"driver_share": driver_share(Path(events))["driver_share"]}
    if given.same_as:
        result["different"] = different(given.out, given.same_as)
    print(json.dumps(result))
    return 1 if status not in (0, 1) or result.get("different") else 0


def submit(master: str, recording: Path, out: Path, memory: str, events: str) -> int:
    """jobs/nightly.py on the cluster; its exit status."""
    conf = {
        "spark.executor.memory": memory,
        "spark.driver.memory": memory,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file://{events}",
    }
    words = [str(Path(sys.executable).with_name("spark-submit")), "--master", master]
    words += [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    words += [str(ROOT / "jobs" / "nightly.py"), "--recording", str(recording), "--warehouse", str(out)]
    return subprocess.run(words, env=environment(), stdout=subprocess.DEVNULL, check=False).returncode


def different(one: Path, other: Path) -> list[str]:
    """Return the names of the tables whose rows, in any order, are not the same."""
    both = [Warehouse(str(root)) for root in (one, other)]
    names = sorted(set(both[0].contracts) - SKIPPED)
    return [name for name in names if summed(both[0], name) != summed(both[1], name)]


def summed(warehouse: Warehouse, name: str) -> tuple[int, int]:
    """Return how many rows a table has, and the sum of their hashes (64 bit). Not all rows are in memory at once."""
    rows = total = 0
    for batch in warehouse.read(name).collect_batches():
        rows += len(batch)
        total += int(batch.hash_rows(7).cast(pl.Decimal(38, 0)).sum() or 0)
    return rows, total % 2**64


if __name__ == "__main__":
    sys.exit(main())
