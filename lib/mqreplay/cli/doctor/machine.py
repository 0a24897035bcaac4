"""Checks of this machine: Python, Java, Spark, JARs, disk, settings; what is wrong, and how to mend it."""

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

from mqreplay.engines.choice import INSTALL_SPARK, missing_for_spark
from mqreplay.settings import Settings
from mqreplay.words.printable import json_text, printable

Check = tuple[bool, str, str]
LEAST_JAVA = 17
LEAST_DISK = 2 * 1024**3  # bytes; Spark spills, and a night of a large estate is a few hundred megabytes


def examine_machine(settings: Settings, out: TextIO, as_json: bool = False) -> bool:
    """Print a line for each check. Return whether nothing is wrong."""
    checks = [_python(), *_checks_of_spark(), _disk()]
    checks.append((True, "settings", ", ".join(settings.source)))
    if as_json:
        facts = [{"what": what, "ok": good, "said": text} for good, what, text in checks]
        print(json_text({"checks": facts}, indent=1), file=out)
        return all(good for good, _, _ in checks)
    for good, what, text in checks:
        print(f"{'ok   ' if good else 'WRONG'} {what:9} {printable(text)}", file=out)
    return all(good for good, _, _ in checks)


def _python() -> Check:
    good = (3, 11) <= sys.version_info[:2] < (3, 14)
    text = sys.version.split()[0]
    return good, "python", text if good else f"{text}; PySpark and Great Expectations need 3.11, 3.12 or 3.13"


def _checks_of_spark() -> list[Check]:
    if missing_for_spark():
        return [(True, "spark", f"not installed: the local engine does not need it; {INSTALL_SPARK}")]
    return [_java(), _spark(), _jars(), _classes()]


def _java() -> Check:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).exists():
        where = f"{java} of JAVA_HOME does not exist" if home else "not found"
        install = f"install Java {LEAST_JAVA} (Debian: apt-get install openjdk-17-jre-headless)"
        return False, "java", f"{where}; {install}, or do not use Spark: the local engine needs no Java"
    text = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', text)
    if version is None or int(version[1]) < LEAST_JAVA:
        return False, "java", f"{java} is {text.splitlines()[0] if text else 'mute'}; Spark needs {LEAST_JAVA} or newer"
    return True, "java", text.splitlines()[0]


def _spark() -> Check:
    import pyspark

    from mqreplay.lake.jars import jars_folder

    text = f"pyspark {pyspark.__version__} in {Path(pyspark.__file__).parent}"
    home = os.environ.get("SPARK_HOME")
    if home is None:
        return True, "spark", text
    # Java then runs the Spark of SPARK_HOME, and Python the pyspark of this installation.
    core = next(jars_folder().glob("spark-core_*.jar"), None)
    if core is None:
        return False, "spark", f"{text}, but SPARK_HOME {home} has no Spark; unset SPARK_HOME"
    version = core.stem.rpartition("-")[2]
    if version != pyspark.__version__:
        return False, "spark", f"{text}, but SPARK_HOME {home} has Spark {version}; unset SPARK_HOME"
    return True, "spark", f"{text}, Spark {version} of SPARK_HOME {home}"


def _jars() -> Check:
    from mqreplay.lake.jars import install_command, jars_folder, missing_jars

    missing = missing_jars()
    if not missing:
        return True, "jars", f"Delta's JARs are in {jars_folder()}"
    return False, "jars", f"missing from {jars_folder()}: {', '.join(missing)}; run `{install_command()}`"


def _classes() -> Check:
    from mqreplay.lake.class_archive import archive_path

    path = archive_path()
    if path is not None:
        return True, "classes", f"{path.stat().st_size / 1024**2:.0f} MiB that Java starts from"
    # Nothing is wrong without it.
    command = f"{shlex.quote(sys.executable)} -m mqreplay.lake.class_archive"
    lacking = f"no archive; `{command}` makes one, and Spark starts in half the time"
    return True, "classes", lacking


def _disk() -> Check:
    free = shutil.disk_usage(tempfile.gettempdir()).free
    text = f"{free / 1024**3:.1f} GiB free in {tempfile.gettempdir()}"
    good = free >= LEAST_DISK
    return good, "disk", text if good else f"{text}; Spark needs 2 GiB for its scratch files (TMPDIR moves them)"
