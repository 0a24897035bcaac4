"""One builder for the Spark session: local, local-cluster, standalone, or whatever spark-submit gives."""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from mqreplay.lake.class_archive import archive_options
from mqreplay.lake.jars import require_jars
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
from mqreplay.places import conf_dir
from mqreplay.settings import SparkSettings

# Settings for speed and quiet; no table or result depends on them.
TUNING = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # From the first line of the session to the last one. mqreplay itself says what it does.
    "spark.log.level": "ERROR",
    "spark.databricks.delta.snapshotPartitions": "1",
    # With a commit's checksum, Delta would write the list of the table's files again, by a query of its log.
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
    # Spark would allocate 64 MB for each sort and aggregate, even for few rows.
    "spark.buffer.pageSize": "4m",
    # Plans are large and many, and finished ones are not needed.
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.sql.maxPlanStringLength": "1000",
    # Java compiles no method with more bytecode than this; Spark's larger ones would run interpreted, half as fast.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # Garbage collection frees the disk of finished shuffles; the default of half an hour is too long for a large night.
    "spark.cleaner.periodicGC.interval": "3min",
    # Only for local disks: the defaults start a process (chmod, readlink) for each file, 1,500
    # in a small night. One process writes a warehouse at a time (lake/lock.py), as LocalLogStore asks.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Batches end only at 10,000 rows: Spark would sum the bytes of all columns after each row for Python.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.sql.parquet.compression.codec": "zstd",
    # Without it, Spark would sort the rows by partition, though a write has only one or few of them.
    "spark.sql.maxConcurrentOutputFileWriters": "8",
    # Idle workers end without a traceback when the session ends.
    "spark.python.daemon.module": "mqreplay.lake.worker_daemon",
    # A task has one core: kernels with more threads would compete.
    "spark.executorEnv.POLARS_MAX_THREADS": "1",
}
# Settings on which results depend.
MEANING = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # Spark would replace ${env:NAME} in a query, and in a name that a predicate quotes.
    "spark.sql.variable.substitute": "false",
    # Features that delta-rs, polars or DuckDB cannot read stay off.
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "false",
    "spark.databricks.delta.properties.defaults.columnMapping.mode": "none",
    "spark.databricks.delta.properties.defaults.enableTypeWidening": "false",
    "spark.databricks.delta.properties.defaults.checkpointPolicy": "classic",
    "spark.databricks.delta.properties.defaults.enableRowTracking": "false",
    # As tasks write them (lake/table_writer.py); INT96, the default, is deprecated.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A rollback restores the version before the run, even an old one.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
}


# Execution of plans with few and with many rows: few rows are read before a plan could be compiled and adapted.
RUNNING = (
    ("spark.sql.codegen.wholeStage", "false", "true"),
    ("spark.sql.codegen.factoryMode", "NO_CODEGEN", "FALLBACK"),
    ("spark.sql.adaptive.enabled", "false", "true"),
    ("spark.sql.shuffle.partitions", "2", "200"),
)
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
    options = TUNING | MEANING | _places(small, _has_metastore(submitted | settings.extra))
    options |= _one_process(master) | _sockets(_stays_here(settings))
    options[DRIVER_MEMORY] = settings.driver_memory or HEAP
    if is_submitted():
        require_in_time(settings, submitted)
        # Whoever submits it knows the cluster; what the answers depend on stays.
        options = {name: value for name, value in options.items() if name in MEANING or name not in submitted}
        options = {name: value for name, value in options.items() if name not in EARLY}
    require_jars(settings.extra | submitted)
    options |= spark_options(storage()) | settings.extra
    options |= {NAME: application_name(app_name, submitted)} | ({MASTER: master} if master else {})
    if not is_submitted():
        start_java(options)
    session = SparkSession.builder.config(map=dict(options)).getOrCreate()
    keep_accumulators_quiet()
    # PySpark would also log a query's error with Java's whole stack.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    return session


def fit_plans(session: SparkSession, *, small: bool) -> None:
    """Set the execution of plans for few rows or for many. The results are the same."""
    for name, of_few, of_many in RUNNING:
        session.conf.set(name, of_few if small else of_many)


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
