"""One builder for the Spark session: local, local-cluster, standalone, or whatever spark-submit gives."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import time
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyspark
from pyspark.sql import SparkSession

from mqreplay.lake.catalog import first_line
from mqreplay.lake.class_archive import archive_options
from mqreplay.lake.jars import for_executors, require_jars
from mqreplay.lake.java_process import java_option, keep_accumulators_quiet, start_java
from mqreplay.lake.scratch import scratch
from mqreplay.lake.storage import spark_options, storage
from mqreplay.lake.submitted import (
    DRIVER_MEMORY,
    EARLY,
    MASTER,
    NAME,
    application_name,
    is_submitted,
    require_in_time,
    submitted_settings,
)
from mqreplay.machine.places import conf_dir
from mqreplay.settings import SparkSettings
from mqreplay.words.errors import InputError

SETTINGS = tomllib.loads(Path(__file__).with_name("spark_settings.toml").read_text("utf-8"))
TUNING: dict[str, str] = SETTINGS["tuning"]
OWN: dict[str, str] = SETTINGS["own"]
MEANING: dict[str, str] = SETTINGS["meaning"]
# Execution of plans with few and with many rows: few rows are read before a plan could be compiled and adapted.
RUNNING = (
    ("spark.sql.codegen.wholeStage", "false", "true"),
    ("spark.sql.codegen.factoryMode", "NO_CODEGEN", "FALLBACK"),
    ("spark.sql.adaptive.enabled", "false", "true"),
    ("spark.sql.shuffle.partitions", "2", "200"),
)
FITTED = "spark.mqreplay.fitted"  # names of RUNNING that mqreplay set in a session; the others are the user's
# Each step of growth of these would cost a full collection, or a sweep of compiled code.
# The second compiler takes only code that runs long: by default it took 33 of the 170 CPU seconds of a medium night.
JAVA = (
    "-XX:+UseParallelGC -XX:MetaspaceSize=384m -XX:ReservedCodeCacheSize=512m -XX:Tier4InvocationThreshold=100000 "
    "-XX:Tier4MinInvocationThreshold=20000 -XX:Tier4CompileThreshold=200000 -XX:Tier4BackEdgeThreshold=1000000"
)
# Short work ends before Java's second compiler pays off (48 of 190 s of processor time).
JAVA_SMALL = "-XX:TieredStopAtLevel=1"
# Unix sockets between Java and Python: with TCP, both ends once waited forever for each other (docs/adr/0022).
SOCKETS, SOCKETS_DIR = "spark.python.unix.domain.socket.enabled", "spark.python.unix.domain.socket.dir"
SOCKET_PATH = 107  # largest length of a socket's path in bytes
SOCKET_NAME = len("/.00000000-0000-0000-0000-000000000000.sock")
HEAP = "2g"  # of the driver, where neither the settings nor spark-submit set it
CATALOG, DATABASES, DERBY = "spark.sql.catalogImplementation", "spark.sql.warehouse.dir", "derby.system.home"
EXECUTORS_JAVA, LOCAL_DIR = "spark.executor.extraJavaOptions", "spark.local.dir"
# Spark in one process also opens ports on the loopback device. It makes a secret for each session.
AUTHENTICATE = "spark.authenticate"
ONE_PROCESS = re.compile(r"local(\[.*\])?")
PORT, CONNECT_PATIENCE_S = 15002, 20  # spark.connect.grpc.binding.port
EXTENSIONS = "spark.sql.extensions"
AT_START = (EXTENSIONS, "spark.sql.catalog.spark_catalog")  # the server was started with them


def build_session(app_name: str, settings: SparkSettings, *, small: bool = False) -> SparkSession:
    """The session that everything runs in; the running one, if there is one. ``small``: Java will have little to do.

    Java's own options are those of its first caller, and spark-submit's where that started it. Raises SettingsError
    for settings that Java can no longer take from this process.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # PySpark returns instants in the zone of the process; use UTC everywhere.
    os.environ["TZ"] = "UTC"
    time.tzset()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1") if _stays_here(settings) else None
    master = settings.master or ("" if is_submitted() else "local[*]")
    submitted = submitted_settings() if is_submitted() else {}
    tuning = TUNING if is_submitted() else TUNING | OWN
    options = {name: value for name, value in tuning.items() if not _user_sets(name)} | MEANING
    options |= _places(small, _has_metastore(submitted | settings.extra))
    options |= _one_process(master) | _sockets(_stays_here(settings))
    options[DRIVER_MEMORY] = settings.driver_memory or HEAP
    if is_submitted():
        require_in_time(settings, submitted)
        # Whoever submits it knows the cluster; what the answers depend on stays.
        options = {name: value for name, value in options.items() if name in MEANING or name not in submitted}
        options = {name: value for name, value in options.items() if name not in EARLY}
    require_jars(settings.extra | submitted)
    options |= spark_options(storage()) | settings.extra
    if not (submitted.get(MASTER) or master).startswith("local"):
        options |= for_executors(submitted | options)
    options |= {NAME: application_name(app_name, submitted)} | ({MASTER: master} if master else {})
    if not is_submitted():
        start_java(options)
    session = SparkSession.builder.config(map=dict(options)).getOrCreate()
    keep_accumulators_quiet()
    # PySpark would also log a query's error with Java's whole stack.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    return session


def fit_plans(session: SparkSession, *, small: bool) -> dict[str, str]:
    """Set the execution of plans for few rows or for many, and return what the user set: it stays.

    The user sets it by --conf, in spark-defaults.conf, in the settings, or in the session.
    """
    values = {row.key: row.value for row in session.sql("SET").collect()}
    own = values[FITTED].split(",") if FITTED in values else [name for name, *_ in RUNNING if name not in values]
    for name, of_few, of_many in RUNNING:
        if name in own:
            session.conf.set(name, of_few if small else of_many)
    session.conf.set(FITTED, ",".join(own))
    return {name: values[name] for name, *_ in RUNNING if name not in own}


def is_fitted(session: SparkSession) -> bool:
    """Return whether `fit_plans` was called for the session: it is not for a server's."""
    return session.conf.get(FITTED, None) is not None


def _stays_here(settings: SparkSettings) -> bool:
    return not is_submitted() and (settings.master or "local").startswith("local")


def _one_process(master: str) -> dict[str, str]:
    """Return settings for a driver and executor in one process."""
    if ONE_PROCESS.fullmatch(master) is None:
        return {}
    options = {AUTHENTICATE: "true"}
    return options if _user_sets(LOCAL_DIR) else options | {LOCAL_DIR: str(scratch().part("spark"))}


def _user_sets(name: str) -> bool:
    """Return whether the user's files or options of Spark set it; mqreplay's setting would override it."""
    home = Path(os.environ.get("SPARK_HOME", Path(pyspark.__file__).parent))
    file = Path(os.environ.get("SPARK_CONF_DIR", home / "conf"), "spark-defaults.conf")
    defaults = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    lines = [line.strip() for line in defaults.splitlines()]
    return any(line.startswith(name) for line in lines) or name in os.environ.get("PYSPARK_SUBMIT_ARGS", "")


def _has_metastore(options: dict[str, str]) -> bool:
    """Return whether the session keeps the names of databases and tables in a metastore."""
    return options[CATALOG] == "hive" if CATALOG in options else _user_sets(CATALOG)


def _sockets(local: bool) -> dict[str, str]:
    """Return the folder of the sockets between Java and Python; on other machines, Java's temporary folder."""
    if not local:
        return {SOCKETS: "true"}
    folder = str(scratch().part("sockets"))
    fits = len(os.fsencode(folder)) + SOCKET_NAME <= SOCKET_PATH
    return {SOCKETS: "true", SOCKETS_DIR: folder} if fits else {SOCKETS: "false"}


def _places(small: bool, metastore: bool) -> dict[str, str]:
    """Return settings that keep files out of the current folder and log4j quiet.

    ``metastore``: databases and their folders outlive the session, so that their places are Spark's and the user's.
    """
    log4j = (conf_dir() / "log4j2.properties").as_uri()
    java = f"{JAVA} {JAVA_SMALL}" if small else JAVA
    temporary = scratch().part("java")
    named = {"log4j2.configurationFile": log4j, "java.io.tmpdir": temporary}
    if not metastore:
        named[DERBY] = temporary
    own = [java_option(f"-D{name}={value}") for name, value in named.items()]
    return {
        **({} if metastore else {DATABASES: str(scratch().part("tables"))}),
        "spark.driver.extraJavaOptions": " ".join([*own, archive_options(), java]),
        EXECUTORS_JAVA: java,
    }


def connected_session(address: str) -> SparkSession:
    """Return a session of the server at this address, such as sc://host:15002.

    Raises InputError if it does not answer, or was started without Delta.
    """
    at = urlsplit(address)
    try:  # Spark itself would try again for ten minutes
        socket.create_connection((at.hostname or "", at.port or PORT), CONNECT_PATIENCE_S).close()
    except (OSError, ValueError) as error:
        raise InputError(f"{address}: no Spark Connect server answers: {error}") from None
    try:
        builder: Any = SparkSession.builder
        session: SparkSession = builder.remote(address).getOrCreate()
        extensions = session.conf.get(EXTENSIONS, "") or ""
    except ImportError as error:
        missing = f"{address}: Spark Connect needs more packages: pip install 'pyspark[connect]' ({first_line(error)})"
        raise InputError(missing) from None
    except Exception as error:  # of grpc, of the server, or of its address
        raise InputError(f"{address}: no session of Spark Connect: {first_line(error)}") from None
    if MEANING[EXTENSIONS] not in extensions:
        wanted = " and ".join(f"{name}={MEANING[name]}" for name in AT_START)
        raise InputError(f"{address}: this server was started without Delta; start it with {wanted}")
    for name, value in MEANING.items():
        if name not in AT_START:
            session.conf.set(name, value)
    return session
