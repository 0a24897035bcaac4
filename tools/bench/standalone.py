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

from driver_share import driver_share

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from standalone_cluster import environment, standalone  # noqa: E402 - of the tests

SKIPPED = {"bronze.step"}  # says what was done, not what was found


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
        told: dict[str, object] = {"status": status, "wall_s": round(time.perf_counter() - began, 1)}
        told |= {"driver_share": driver_share(Path(events))["driver_share"]}
    if given.same_as:
        told["different"] = different(given.out, given.same_as)
    print(json.dumps(told))
    return 1 if status not in (0, 1) or told.get("different") else 0


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
    """The tables whose rows, in whatever order, are not the same."""
    from pyspark.sql import functions as F

    from mqreplay.lake.session import build_session
    from mqreplay.lake.warehouse import Warehouse
    from mqreplay.settings import load_settings

    spark = build_session("compare", load_settings(None).spark)
    both = [Warehouse(spark, str(root)) for root in (one, other)]

    def summed(warehouse: Warehouse, name: str) -> tuple[int, object]:
        rows = warehouse.read(name)
        row_hash = F.xxhash64(F.to_json(F.struct(*rows.columns)))
        return tuple(rows.agg(F.count(F.lit(1)), F.sum(row_hash.cast("decimal(38,0)"))).first())

    names = sorted(set(both[0].contracts) - SKIPPED)
    return [name for name in names if summed(both[0], name) != summed(both[1], name)]


if __name__ == "__main__":
    sys.exit(main())
