"""What is wrong with this machine, and how to mend it: Java, Spark, JARs, disk, settings."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TextIO

from mqreplay.lake.class_archive import archive_path
from mqreplay.lake.jars import install_command, jars_folder, missing_jars
from mqreplay.printable import json_text, printable
from mqreplay.settings import Settings

Check = tuple[bool, str, str]
LEAST_JAVA = 17
LEAST_DISK = 2 * 1024**3  # bytes; Spark spills, and a night of a large estate is a few hundred megabytes


def examine_machine(settings: Settings, out: TextIO, as_json: bool = False) -> bool:
    """Prints a line for each thing looked at; True if nothing is wrong."""
    checks = [_python(), _java(), _spark(), _jars(), _classes(), _disk()]
    checks.append((True, "settings", ", ".join(settings.source)))
    if as_json:
        given = [{"what": what, "ok": good, "said": said} for good, what, said in checks]
        print(json_text({"checks": given}, indent=1), file=out)
        return all(good for good, _, _ in checks)
    for good, what, said in checks:
        print(f"{'ok   ' if good else 'WRONG'} {what:9} {printable(said)}", file=out)
    return all(good for good, _, _ in checks)


def _python() -> Check:
    good = (3, 11) <= sys.version_info[:2] < (3, 14)
    said = sys.version.split()[0]
    return good, "python", said if good else f"{said}; PySpark and Great Expectations need 3.11, 3.12 or 3.13"


def _java() -> Check:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).exists():
        where = f"{java} of JAVA_HOME does not exist" if home else "not found"
        install = f"install Java {LEAST_JAVA} (Debian: apt-get install openjdk-17-jre-headless)"
        return False, "java", f"{where}; {install}, or use --engine local, which needs no Java"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < LEAST_JAVA:
        return False, "java", f"{java} is {said.splitlines()[0] if said else 'mute'}; Spark needs {LEAST_JAVA} or newer"
    return True, "java", said.splitlines()[0]


def _spark() -> Check:
    import pyspark

    said = f"pyspark {pyspark.__version__} in {Path(pyspark.__file__).parent}"
    home = os.environ.get("SPARK_HOME")
    if home is None:
        return True, "spark", said
    # Java then runs the Spark of SPARK_HOME, and Python the pyspark of this installation.
    core = next(jars_folder().glob("spark-core_*.jar"), None)
    if core is None:
        return False, "spark", f"{said}, but SPARK_HOME {home} has no Spark; unset SPARK_HOME"
    version = core.stem.rpartition("-")[2]
    if version != pyspark.__version__:
        return False, "spark", f"{said}, but SPARK_HOME {home} has Spark {version}; unset SPARK_HOME"
    return True, "spark", f"{said}, Spark {version} of SPARK_HOME {home}"


def _jars() -> Check:
    missing = missing_jars()
    if not missing:
        return True, "jars", f"Delta's JARs are in {jars_folder()}"
    return False, "jars", f"missing from {jars_folder()}: {', '.join(missing)}; run `{install_command()}`"


def _classes() -> Check:
    path = archive_path()
    if path is not None:
        return True, "classes", f"{path.stat().st_size / 1024**2:.0f} MiB that Java starts from"
    # Nothing is wrong without it.
    command = f"{shlex.quote(sys.executable)} -m mqreplay.lake.class_archive"
    lacking = f"no archive; `{command}` makes one, and Spark starts in half the time"
    return True, "classes", lacking


def _disk() -> Check:
    free = shutil.disk_usage(tempfile.gettempdir()).free
    said = f"{free / 1024**3:.1f} GiB free in {tempfile.gettempdir()}"
    good = free >= LEAST_DISK
    return good, "disk", said if good else f"{said}; Spark needs 2 GiB for its scratch files (TMPDIR moves them)"
