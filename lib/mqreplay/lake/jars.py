"""The JARs that Delta needs beside Spark's own: resolved once, by Spark's own Ivy, then kept in pyspark's jars folder.

There every spark-submit, worker and shell of the same Python finds them, without a network.
`python -m mqreplay.lake.jars` installs them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

from mqreplay.errors import MqreplayError

DELTA_PACKAGE = "io.delta:delta-spark_4.1_2.13:4.4.0"
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
RESOLVE = (
    "from pyspark.sql import SparkSession; "
    "SparkSession.builder.master('local[1]').config('spark.jars.packages', '{package}')"
    ".config('spark.jars.ivy', '{ivy}').config('spark.ui.enabled', 'false').getOrCreate().stop()"
)


def jars_folder() -> Path:
    """Where Spark looks for JARs: SPARK_HOME's, else the running pyspark's."""
    home = os.environ.get("SPARK_HOME")
    return Path(home) / "jars" if home else Path(pyspark.__file__).parent / "jars"


def missing_jars(folder: Path | None = None) -> list[str]:
    """Names of the JARs that are not there."""
    where = folder if folder is not None else jars_folder()
    return [name for name in JARS if not (where / name).exists()]


def install_jars(folder: Path | None = None) -> list[str]:
    """Fetches what is missing; gives the names of what it put there. Raises MqreplayError."""
    where = folder if folder is not None else jars_folder()
    missing = missing_jars(where)
    if not missing:
        return []
    with tempfile.TemporaryDirectory() as ivy:
        script = RESOLVE.format(package=DELTA_PACKAGE, ivy=ivy)
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        found = {path.name.split("_", 1)[-1]: path for path in Path(ivy, "jars").glob("*.jar")}
        for name in missing:
            if name not in found:
                tail = "\n".join((done.stdout + done.stderr).splitlines()[-5:])
                raise MqreplayError(f"could not fetch {name}; is the Maven registry reachable?\n{tail}")
            digest = hashlib.sha256(found[name].read_bytes()).hexdigest()
            if digest != JARS[name]:
                raise MqreplayError(f"{name} has SHA-256 {digest}, expected {JARS[name]}; nothing was installed")
        for name in missing:
            beside = where / f".{name}.new"
            shutil.copyfile(found[name], beside)
            beside.replace(where / name)
    return missing


if __name__ == "__main__":
    print(f"installed {len(install_jars())} JARs into {jars_folder()}, {len(JARS)} are there")
