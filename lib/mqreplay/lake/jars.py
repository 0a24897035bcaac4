"""The JARs that Delta needs beside Spark's own: resolved once, by Spark's own Ivy, then kept in pyspark's jars folder.

There every spark-submit, worker and shell of the same Python finds them, without a network.
`python -m mqreplay.lake.jars` installs them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pyspark

from mqreplay.errors import MqreplayError
from mqreplay.lake.apart import run_apart

ARTIFACT = "delta-spark_4.1_2.13"
DELTA_PACKAGE = f"io.delta:{ARTIFACT}:4.4.0"
BROUGHT_BY = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")  # whoever gives them chose them
# Of the 33 that Ivy resolves, those that Spark does not bring along itself. SHA-256 of each.
JARS = {
    "delta-kernel-api-4.4.0.jar": "ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11",
    "delta-kernel-defaults-4.4.0.jar": "225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b",
    "delta-kernel-unitycatalog-4.4.0.jar": "cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa",
    "delta-spark_4.1_2.13-4.4.0.jar": "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    "delta-storage-4.4.0.jar": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    "unitycatalog-client-0.6.0.jar": "48257499a86b801a3e2372cec55ac226ca1c1c7eabe5c118e7302f29a1fdbc19",
    "unitycatalog-hadoop-0.6.0.jar": "c47b63c961c87102b9e1d63809a0915ba4c86b7652f57c8d39ca3a05b441a150",
}
# Spark itself resolves them, in a process that leaves nothing behind, and that no caller's spark-submit meddles with.
RESOLVE = """
import sys
from pyspark.sql import SparkSession
options = {"spark.jars.packages": sys.argv[1], "spark.jars.ivy": sys.argv[2], "spark.ui.enabled": "false"}
SparkSession.builder.master("local[1]").config(map=options).getOrCreate().stop()
"""
PATIENCE_S = 600  # a registry that does not answer at all


def jars_folder() -> Path:
    """Where Spark looks for JARs: SPARK_HOME's, else the running pyspark's."""
    home = os.environ.get("SPARK_HOME")
    return Path(home) / "jars" if home else Path(pyspark.__file__).parent / "jars"


def missing_jars(folder: Path | None = None) -> list[str]:
    """Names of the JARs that are not there."""
    where = folder if folder is not None else jars_folder()
    return [name for name in JARS if not (where / name).exists()]


def install_command() -> str:
    """Return the command that installs the JARs for the running Python, whether its environment is active or not."""
    return f"{shlex.quote(sys.executable)} -m mqreplay.lake.jars"


def require_jars(options: Mapping[str, str]) -> None:
    """Raise MqreplayError where JARs are missing that Spark's ``options`` do not bring along.

    Spark would fetch them itself, but nothing would check what it got.
    """
    missing = missing_jars()
    if missing and not any(ARTIFACT in options.get(name, "") for name in BROUGHT_BY):
        raise MqreplayError(
            f"Delta's JARs are missing from {jars_folder()} ({', '.join(missing)}); "
            f"`{install_command()}` fetches and checks them"
        )


def install_jars(folder: Path | None = None) -> list[str]:
    """Fetches what is missing, and removes other versions of it; gives the names put there. Raises MqreplayError."""
    where = folder if folder is not None else jars_folder()
    missing = missing_jars(where)
    if not missing:
        return []
    with tempfile.TemporaryDirectory() as ivy:
        said = _resolve(ivy)
        # Ivy names them by group_artifact-version.jar; Spark finds them by any name.
        found = {path.name.split("_", 1)[-1]: path for path in Path(ivy, "jars").glob("*.jar")}
        for name in missing:
            _check(name, found.get(name), said)
        try:
            for name in missing:
                _place(found[name], where / name)
        except OSError as error:
            raise MqreplayError(f"Delta's JARs cannot be put into {where}: {error.strerror or error}") from None
    return missing


def _resolve(ivy: str) -> str:
    """Let Spark fetch the package into the folder; return its output. The caller checks the files."""
    try:
        done = run_apart(RESOLVE, DELTA_PACKAGE, ivy, patience_s=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return f"no answer in {PATIENCE_S} s"
    return done.stdout + done.stderr


def _check(name: str, path: Path | None, said: str) -> None:
    if path is None:
        raise MqreplayError(
            f"Delta's JAR {name} could not be fetched ({_reason(said)}); it needs a Maven repository, once"
        )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != JARS[name]:
        raise MqreplayError(f"{name} has SHA-256 {digest}, expected {JARS[name]}; nothing was installed")


def _reason(said: str) -> str:
    """Return the line with the error from the output of Spark and Ivy."""
    lines = [line.strip() for line in said.splitlines()]
    for telling in (r"Server access error.*", r"no answer in .*", r".*not found$", r"[\w.]*(Error|Exception): .*"):
        for line in lines:
            if found := re.fullmatch(telling, line):
                return found[0].removeprefix(":: ")
    return "no reason was given"


def _place(source: Path, target: Path) -> None:
    """Copies in one step, so that no half JAR is ever seen; two versions of one JAR would both be loaded."""
    artifact = target.name.rpartition("-")[0]
    for other in target.parent.glob(f"{artifact}-[0-9]*.jar"):
        if other != target:
            other.unlink()
    beside = target.with_name(f".{target.name}.new")
    shutil.copyfile(source, beside)
    beside.replace(target)


def main() -> int:
    """Installs them, without a word unless that fails; gives the exit status."""
    try:
        install_jars()
    except MqreplayError as error:
        print(f"mqreplay: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
