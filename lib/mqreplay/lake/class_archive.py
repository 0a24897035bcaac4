"""Spark's classes as an archive that Java maps into memory: a session starts in half the time.

Java takes it only where the same Java made it of the same JARs, and otherwise does without.
`python -m mqreplay.lake.class_archive` makes it, beside the JARs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from mqreplay.errors import MqreplayError
from mqreplay.lake.apart import run_apart
from mqreplay.lake.jars import jars_folder

NAME = "mqreplay-classes.jsa"
# Java says on stdout what it does not like of an archive; that is for results.
SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off"
# Most classes are those of any session. Java writes the archive as it ends, which is waited for.
TRAIN = """
import sys
from pyspark import SparkContext
from mqreplay.lake.session import build_session
from mqreplay.settings import SparkSettings

options = {"spark.driver.extraJavaOptions": f'"-XX:ArchiveClassesAtExit={sys.argv[1]}" -XX:+UseParallelGC'}
spark = build_session("classes", SparkSettings(extra=options))
spark.range(10).selectExpr("sum(id)").collect()
gateway = SparkContext._gateway
spark.stop()
gateway.shutdown()
gateway.proc.stdin.close()
sys.exit(gateway.proc.wait())
"""
PATIENCE_S = 300


def archive_path() -> Path:
    """Where it lies, if it was made."""
    return jars_folder() / NAME


def archive_options() -> str:
    """Java's options for it. None where there is none: Java would then go without its own archive, too."""
    path = archive_path()
    return f'"-XX:SharedArchiveFile={path}" {SILENT}' if path.exists() else ""


def make_archive() -> Path:
    """Makes it anew. Raises MqreplayError."""
    target = archive_path()
    try:
        # In one step, so that no half archive is ever seen: Java believes what it maps.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".classes-") as beside:
            made = Path(beside, NAME)
            said = _train(made)
            if not made.exists():
                raise MqreplayError(f"no archive of Java's classes was made: {said}")
            made.replace(target)
    except OSError as error:
        raise MqreplayError(f"{target} cannot be written: {error.strerror or error}") from None
    return target


def _train(made: Path) -> str:
    """Has a session of its own write it; gives the last thing that was said."""
    try:
        done = run_apart(TRAIN, str(made), patience_s=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return f"no end in {PATIENCE_S} s"
    said = (done.stderr or done.stdout).strip()
    if done.returncode:
        made.unlink(missing_ok=True)
    return said.splitlines()[-1] if said else "no reason was given"


def main() -> int:
    """Makes it, without a word unless that fails; gives the exit status."""
    try:
        make_archive()
    except MqreplayError as error:
        print(f"mqreplay: {error}; sessions start without it, in twice the time", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
