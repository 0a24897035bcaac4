"""Settings under spark-submit: Java runs before mqreplay reads its settings, so some of them must come earlier."""

from __future__ import annotations

import os
import re
import shlex

from pyspark import SparkConf, SparkContext

from mqreplay.settings import SparkSettings
from mqreplay.words.errors import SettingsError

MASTER, DRIVER_MEMORY, NAME = "spark.master", "spark.driver.memory", "spark.app.name"
# What spark-submit uses before the program starts, with its own option for it. None: --conf NAME=VALUE.
EARLY: dict[str, str | None] = {
    MASTER: "--master",
    DRIVER_MEMORY: "--driver-memory",
    "spark.driver.memoryOverhead": None,
    "spark.driver.memoryOverheadFactor": None,
    "spark.driver.cores": "--driver-cores",
    "spark.driver.extraJavaOptions": "--driver-java-options",
    "spark.driver.defaultJavaOptions": None,
    "spark.driver.extraClassPath": "--driver-class-path",
    "spark.driver.extraLibraryPath": "--driver-library-path",
    "spark.driver.userClassPathFirst": None,
    "spark.jars": "--jars",
    "spark.jars.packages": "--packages",
    "spark.jars.excludes": "--exclude-packages",
    "spark.jars.repositories": "--repositories",
    "spark.jars.ivy": None,
    "spark.jars.ivySettings": None,
    "spark.submit.deployMode": "--deploy-mode",
    "spark.submit.pyFiles": "--py-files",
    "spark.kerberos.principal": "--principal",
    "spark.kerberos.keytab": "--keytab",
}
DEFAULTS = {DRIVER_MEMORY: "1g"}  # spark-submit's own
UNITS = {"": 2**20, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}  # a number alone is in MiB


def is_submitted() -> bool:
    """Whether spark-submit started this process: it hands its settings over in the environment."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def submitted_settings() -> dict[str, str]:
    """Return the settings of spark-submit, from its options and files."""
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def require_in_time(settings: SparkSettings, submitted: dict[str, str]) -> None:
    """Raise SettingsError for settings that come too late and differ from what spark-submit got: ``submitted``."""
    own = {DRIVER_MEMORY: settings.driver_memory, MASTER: settings.master}
    wanted = {name: value for name, value in own.items() if value} | settings.extra
    late = [name for name in EARLY if name in wanted and not _same(name, wanted[name], submitted.get(name))]
    if late:
        found = ", ".join(
            f"{_key(name, settings)} = {wanted[name]!r} ({_started_with(name, submitted)})" for name in late
        )
        options = " ".join(option(name, wanted[name]) for name in late)
        raise SettingsError(
            f"{found}: too late, because spark-submit has already started Java. Give it before the job, or remove it "
            f"from the settings: spark-submit {options} ..."
        )


def application_name(own: str, submitted: dict[str, str]) -> str:
    """Return the name that the user gave to spark-submit, else ``own``. Its default is the name of the script.

    >>> application_name("mqreplay", {"spark.app.name": "nightly.py"}), application_name("mqreplay", {NAME: "orders"})
    ('mqreplay', 'orders')
    """
    name = submitted.get(NAME, "")
    return own if not name or name.endswith(".py") else name


def option(name: str, value: str) -> str:
    """Return how spark-submit takes a setting on its command line.

    >>> option("spark.driver.memory", "6g"), option("spark.driver.memoryOverhead", "1g")
    ('--driver-memory 6g', '--conf spark.driver.memoryOverhead=1g')
    """
    own, quoted = EARLY.get(name), shlex.quote(value)
    return f"{own} {quoted}" if own else f"--conf {shlex.quote(f'{name}={value}')}"


def _key(name: str, settings: SparkSettings) -> str:
    """Return where the user wrote the setting."""
    if name in settings.extra:
        return f"[spark.extra] {name}"
    return "[spark] master" if name == MASTER else "[spark] driver_memory"


def _started_with(name: str, submitted: dict[str, str]) -> str:
    value = submitted.get(name) or DEFAULTS.get(name)
    return f"spark-submit has {value!r}" if value else "spark-submit does not have it"


def _same(name: str, wanted: str, submitted: str | None) -> bool:
    submitted = submitted or DEFAULTS.get(name)
    if submitted is None or wanted == submitted:
        return wanted == submitted
    return name == DRIVER_MEMORY and _bytes(wanted) is not None and _bytes(wanted) == _bytes(submitted)


def _bytes(size: str) -> int | None:
    """Return a size of Java's heap in bytes; None if it is none.

    >>> _bytes("6g") == _bytes("6144m") == _bytes("6144"), _bytes("much")
    (True, None)
    """
    found = re.fullmatch(r"(\d+)([kmgtb]?)b?", size.strip().lower())
    return int(found[1]) * UNITS[found[2]] if found else None
