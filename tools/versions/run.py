"""Run both sample nights on each version of Spark, and compare all tables: `make test-versions`.

The environments are in build/versions; requirements/spark-*.txt have their versions. The others are those of
requirements/runtime.txt. The tables must equal those of the Spark that runtime.txt locks, which this environment has.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
from deltalake import DeltaTable
from polars.testing import assert_frame_equal

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "versions"
REQUIREMENTS = ROOT / "requirements"
SAMPLE = ROOT / "data" / "sample"
LOCKED = "locked"
SPARK = re.compile(r"(pyspark|delta-spark|py4j)==")


def main() -> int:
    """Run the versions, print a line for each, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    files = {path.stem.removeprefix("spark-"): path for path in sorted(REQUIREMENTS.glob("spark-*.txt"))}
    parser.add_argument("versions", nargs="*", help=f"of {', '.join(files)}; all by default")
    asked = parser.parse_args().versions or list(files)
    if unknown := set(asked) - set(files):
        parser.error(f"no requirements for {', '.join(sorted(unknown))}")
    done, seconds = run_night(LOCKED, Path(sys.executable))
    if not done:
        print(f"WRONG {spark_of(LOCKED)}: the nights failed: {BUILD / LOCKED / 'night.log'}")
        return 1
    results = [(LOCKED, done, seconds, "the others are compared with it")]
    for version in asked:
        done, seconds = run_night(version, environment(version, files[version]))
        problem = difference(version) if done else f"the nights failed: {BUILD / version / 'night.log'}"
        results.append((version, done and not problem, seconds, problem))
    for version, good, seconds, problem in results:
        mark, result = "ok   " if good else "WRONG", problem or "all tables equal"
        print(f"{mark} {spark_of(version):15} {seconds:6.1f} s  {result}")
    return 0 if all(good for _, good, _, _ in results) else 1


def environment(version: str, file: Path) -> Path:
    """Return the Python of the version's environment; make it if its requirements changed."""
    folder = BUILD / version / "environment"
    python, stamp = folder / "bin" / "python", folder / "requirements.txt"
    build, runtime = REQUIREMENTS / "build.txt", REQUIREMENTS / "runtime.txt"
    others = without_spark(runtime.read_text(encoding="utf-8"))
    wanted = build.read_text(encoding="utf-8") + others + file.read_text(encoding="utf-8")
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        print(f"{version}: making {folder.relative_to(ROOT)}: once, some minutes", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        rest = folder / "others.txt"
        rest.write_text(others, encoding="utf-8")
        pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--require-hashes"]
        subprocess.run([*pip, "-r", build], check=True)
        for each in (rest, file):
            subprocess.run([*pip, "--no-deps", "--no-build-isolation", "-r", each], check=True)
        subprocess.run([python, "-m", "mqreplay.lake.jars"], env=variables(), check=True)
        stamp.write_text(wanted, encoding="utf-8")
    return python


def without_spark(requirements: str) -> str:
    """Return the requirements without those of Spark. Each begins in the first column; its hashes are indented."""
    parts = re.split(r"^(?=[^ #\n])", requirements, flags=re.MULTILINE)
    return "".join(part for part in parts if not SPARK.match(part))


def run_night(version: str, python: Path) -> tuple[bool, float]:
    """Run both samples into a new warehouse. Return whether they ended well, and the seconds."""
    folder = BUILD / version
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["rm", "-rf", folder / "warehouse"], check=True)
    recordings = [path for path in sorted(SAMPLE.iterdir()) if path.is_dir()]
    options = ["--warehouse", folder / "warehouse", "--engine", "spark"]
    start = time.perf_counter()
    with open(folder / "night.log", "wb") as log:
        command = [python, "-m", "mqreplay.cli", "nightly", *recordings, *options]
        status = subprocess.run(command, env=variables(), stdout=log, stderr=log, check=False).returncode
    return status == 0, time.perf_counter() - start


def variables() -> dict[str, str]:
    """Return the environment variables for this checkout's mqreplay and the pyspark of the environment."""
    kept = {name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "PYSPARK_PYTHON")}
    return kept | {"PYTHONPATH": str(ROOT / "lib")}


def difference(version: str) -> str:
    """Return the first difference from the tables of the locked version; empty if there is none."""
    names, expected = tables(version), tables(LOCKED)
    if names != expected:
        return f"only in one of both: {', '.join(sorted(set(names) ^ set(expected)))}"
    for name in names:
        try:
            assert_frame_equal(frame(version, name), frame(LOCKED, name), check_row_order=False, check_exact=True)
        except AssertionError as error:
            return f"{name}: {' '.join(str(error).split())[:200]}"
    return ""


def tables(version: str) -> list[str]:
    """Return the tables of the version's warehouse, as layer/name."""
    warehouse = BUILD / version / "warehouse"
    return sorted(str(log.parent.relative_to(warehouse)) for log in warehouse.glob("*/*/_delta_log"))


def frame(version: str, name: str) -> pl.DataFrame:
    """Return the rows of a table, with its columns in order of their names."""
    table = DeltaTable(str(BUILD / version / "warehouse" / name))
    rows = pl.DataFrame(pl.from_arrow(table.to_pyarrow_table()))
    return rows.select(sorted(rows.columns))


def spark_of(version: str) -> str:
    """Return the version of PySpark that a requirements file names."""
    file = REQUIREMENTS / ("runtime.txt" if version == LOCKED else f"spark-{version}.txt")
    found = re.search(r"^pyspark==(\S+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    return f"pyspark {found[1]}" if found else version


if __name__ == "__main__":
    sys.exit(main())
