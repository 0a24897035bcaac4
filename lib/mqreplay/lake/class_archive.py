"""An archive of Spark's classes that Java maps into memory: a session starts in half the time.

Java uses it only if the same Java made it from the same JARs. Java crashes on a truncated archive, so the file's name
holds its size. Java does not check the bytes by default, so an option asks for it.
`python -m mqreplay.lake.class_archive` makes it, beside the JARs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from mqreplay.lake.jars import jars_folder
from mqreplay.lake.java_process import java_option
from mqreplay.lake.separate_process import run_separately
from mqreplay.words.errors import MqreplayError

STEM = "mqreplay-classes"
# Checksums take 0.1 s. Java would log problems of an archive on stdout, which is for results.
CHECKED = "-XX:+VerifySharedSpaces -Xlog:cds=off -Xlog:cds+dynamic=off"
# Most classes are the same in any session. Java writes the archive at its end, so wait for that.
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


def archive_path() -> Path | None:
    """Return the archive if it exists and is not truncated."""
    return next((path for path in jars_folder().glob(f"{STEM}-*.jsa") if path == _named(path, path)), None)


def archive_options() -> str:
    """Return Java's options for the archive; empty without one: Java would then not use its own archive either."""
    path = archive_path()
    return f"{java_option(f'-XX:SharedArchiveFile={path}')} {CHECKED}" if path is not None else ""


def make_archive() -> Path:
    """Make the archive again. Raises MqreplayError."""
    folder = jars_folder()
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".classes-") as beside:
            made = Path(beside, STEM)
            output = _train(made)
            if not made.exists():
                raise MqreplayError(f"no archive of Java's classes was made: {output}")
            # In one step, so that no process sees half an archive.
            target = made.replace(_named(made, folder / STEM))
        for other in folder.glob(f"{STEM}*.jsa"):
            if other != target:
                other.unlink(missing_ok=True)
    except OSError as error:
        raise MqreplayError(f"{folder / STEM} cannot be written: {error.strerror or error}") from None
    return target


def _named(archive: Path, beside: Path) -> Path:
    """Return the path of an archive of this size in the folder of ``beside``."""
    return beside.with_name(f"{STEM}-{archive.stat().st_size}.jsa")


def _train(made: Path) -> str:
    """Write the archive in a separate session; return the last line of its output."""
    try:
        done = run_separately(TRAIN, str(made), patience_s=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return f"no end in {PATIENCE_S} s"
    output = (done.stderr or done.stdout).strip()
    if done.returncode:
        made.unlink(missing_ok=True)
    return output.splitlines()[-1] if output else "no reason was given"


def main() -> int:
    """Make the archive; print only errors. Return the exit status."""
    try:
        make_archive()
    except MqreplayError as error:
        print(f"mqreplay: {error}; sessions start without it, but take twice the time", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
