"""JARs that Delta needs in addition to Spark's: resolved once by Spark's Ivy, then kept in pyspark's jars folder.

Every spark-submit, worker and shell of the same Python finds them there, without a network.
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
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyspark

from mqreplay.lake.separate_process import run_separately
from mqreplay.words.errors import MqreplayError

JARS = "spark.jars"
BROUGHT_BY = (JARS, "spark.jars.packages", "spark.driver.extraClassPath")  # the user chose these


@dataclass(frozen=True)
class DeltaRelease:
    """A release of Delta, as Maven names it, with those of its JARs that Spark does not include, by SHA-256."""

    artifact: str
    version: str
    jars: Mapping[str, str]

    @property
    def package(self) -> str:
        """Return its coordinates for Maven."""
        return f"io.delta:{self.artifact}:{self.version}"


# By the minor version of Spark that it works with.
RELEASES = {
    minor: DeltaRelease(**release)
    for minor, release in tomllib.loads(Path(__file__).with_name("delta_releases.toml").read_text("utf-8")).items()
}
# Spark resolves them in a separate process that leaves no files and does not inherit a caller's spark-submit. Its home
# is another folder: Ivy fails on a module whose POM is in ~/.m2 and whose JAR is not, as Maven often leaves it.
RESOLVE = """
import os, sys
from pyspark.sql import SparkSession
os.environ["SPARK_SUBMIT_OPTS"] = os.environ.get("SPARK_SUBMIT_OPTS", "") + f' "-Duser.home={sys.argv[2]}"'
options = {"spark.jars.packages": sys.argv[1], "spark.jars.ivy": sys.argv[2], "spark.ui.enabled": "false"}
options["spark.jars.excludes"] = ",".join(sys.argv[3:])
SparkSession.builder.master("local[1]").config(map=options).getOrCreate().stop()
"""
DOWNLOAD_PATIENCE_S = 600  # for a registry that does not answer


def delta_release() -> DeltaRelease:
    """Return Delta's release for the running pyspark. Raises MqreplayError for other Sparks."""
    minor = ".".join(pyspark.__version__.split(".")[:2])
    if minor not in RELEASES:
        raise MqreplayError(f"pyspark {pyspark.__version__} is not supported; install one of {', '.join(RELEASES)}")
    return RELEASES[minor]


def jars_folder() -> Path:
    """Return Spark's folder of JARs: of SPARK_HOME, else of the running pyspark."""
    home = os.environ.get("SPARK_HOME")
    return Path(home) / "jars" if home else Path(pyspark.__file__).parent / "jars"


def missing_jars(folder: Path | None = None) -> list[str]:
    """Return the names of missing JARs."""
    where = folder if folder is not None else jars_folder()
    return [name for name in delta_release().jars if not (where / name).exists()]


def install_command() -> str:
    """Return the command that installs the JARs for the running Python, whether its environment is active or not."""
    return f"{shlex.quote(sys.executable)} -m mqreplay.lake.jars"


def require_jars(options: Mapping[str, str]) -> None:
    """Raise MqreplayError if JARs are missing that Spark's ``options`` do not provide.

    Spark would fetch them itself, but would not check them.
    """
    missing = missing_jars()
    if missing and not _has_delta(options):
        raise MqreplayError(
            f"Delta's JARs are missing from {jars_folder()} ({', '.join(missing)}); "
            f"`{install_command()}` downloads and checks them"
        )


def for_executors(options: Mapping[str, str]) -> dict[str, str]:
    """Return the setting that hands Delta's JARs to executors, after the JARs that ``options`` name.

    Executors read and write Delta tables too, and their Spark may have no Delta. What the user brings, Spark hands to
    them by itself.
    """
    if _has_delta(options):
        return {}
    own = [(jars_folder() / name).absolute().as_uri() for name in delta_release().jars]
    return {JARS: ",".join([*filter(None, [options.get(JARS)]), *own])}


def _has_delta(options: Mapping[str, str]) -> bool:
    return any(delta_release().artifact in options.get(name, "") for name in BROUGHT_BY)


def install_jars(folder: Path | None = None) -> list[str]:
    """Download missing JARs and remove other versions. Return the installed names. Raises MqreplayError."""
    where = folder if folder is not None else jars_folder()
    missing = missing_jars(where)
    if not missing:
        return []
    with tempfile.TemporaryDirectory() as ivy:
        output = _resolve(ivy)
        # Ivy names them group_artifact-version.jar; Spark accepts any name.
        found = {path.name.split("_", 1)[-1]: path for path in Path(ivy, "jars").glob("*.jar")}
        for name in missing:
            _check(name, found.get(name), output)
        try:
            for name in missing:
                _place(found[name], where / name)
        except OSError as error:
            raise MqreplayError(f"Delta's JARs cannot be installed into {where}: {error.strerror or error}") from None
    return missing


def _resolve(ivy: str) -> str:
    """Let Spark download the package into the folder; return its output. The caller checks the files."""
    try:
        done = run_separately(RESOLVE, delta_release().package, ivy, patience_s=DOWNLOAD_PATIENCE_S)
    except subprocess.TimeoutExpired:
        return f"no answer in {DOWNLOAD_PATIENCE_S} s"
    return done.stdout + done.stderr


def _check(name: str, path: Path | None, output: str) -> None:
    if path is None:
        raise MqreplayError(
            f"Delta's JAR {name} could not be downloaded ({_reason(output)}); this needs access to a Maven "
            f"repository, once"
        )
    digest, expected = hashlib.sha256(path.read_bytes()).hexdigest(), delta_release().jars[name]
    if digest != expected:
        raise MqreplayError(f"{name} has SHA-256 {digest}, expected {expected}; nothing was installed")


def _reason(output: str) -> str:
    """Return the line with the error from the output of Spark and Ivy."""
    lines = [line.strip() for line in output.splitlines()]
    for pattern in (r"Server access error.*", r"no answer in .*", r".*not found$", r"[\w.]*(Error|Exception): .*"):
        for line in lines:
            if found := re.fullmatch(pattern, line):
                return found[0].removeprefix(":: ")
    return "no reason was given"


def _place(source: Path, target: Path) -> None:
    """Copy in one step, so that no process sees half a JAR. Remove other versions: Spark would load both."""
    artifact = target.name.rpartition("-")[0]
    for other in target.parent.glob(f"{artifact}-[0-9]*.jar"):
        if other != target:
            other.unlink()
    beside = target.with_name(f".{target.name}.new")
    shutil.copyfile(source, beside)
    beside.replace(target)


def main() -> int:
    """Install them; print only errors. Return the exit status."""
    try:
        install_jars()
    except MqreplayError as error:
        print(f"mqreplay: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
