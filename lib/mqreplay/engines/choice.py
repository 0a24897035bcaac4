"""The engines that a user can choose: Spark, or processes of this machine without Java."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from mqreplay.engines.engine import Engine
from mqreplay.engines.local import LocalEngine
from mqreplay.engines.spark import SparkEngine
from mqreplay.lake.lock import WarehouseLock
from mqreplay.lake.scratch import scratch
from mqreplay.settings import Settings, SparkSettings
from mqreplay.words.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINES = ("spark", "local")
MASTER, CONNECT = "spark.master", "sc://"
PACKAGES = {"pyspark": "pyspark", "delta": "delta-spark"}  # module -> package
INSTALL_SPARK = "pip install 'mqreplay[spark]' adds Spark"


class Choice(NamedTuple):
    """The engine of a run, and why mqreplay took it; no reason if the user named the engine."""

    engine: str
    reason: str = ""

    @property
    def note(self) -> str:
        """Return the line that a run begins with."""
        return f"engine {self.engine}: {self.reason}" if self.reason else ""


def chosen_engine(
    option: str | None, settings: SparkSettings, *, submitted: bool = False, catalog: bool = False
) -> Choice:
    """Return the engine of a run: that of --engine, else Spark if the run is about Spark, else local (docs/adr/0034).

    >>> chosen_engine(None, SparkSettings()).engine, chosen_engine(None, SparkSettings(master="local[2]")).engine
    ('local', 'spark')
    """
    if option is not None:
        return Choice(option)
    if submitted:
        return Choice("spark", "spark-submit started this run")
    if catalog:
        return Choice("spark", "--catalog needs Spark")
    if settings.master or MASTER in settings.extra:
        return Choice("spark", "the settings name a Spark master")
    return Choice("local", "no Spark master and no --catalog; --engine spark runs Spark")


def is_submitted() -> bool:
    """Return whether spark-submit started this process. It passes its settings in the environment."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def missing_for_spark() -> list[str]:
    """Return the packages that Spark needs and that are not installed."""
    return [package for module, package in PACKAGES.items() if find_spec(module) is None]


def require_spark(instead: str) -> None:
    """Raise InputError if Spark is not installed. ``instead`` is what the user may do without it."""
    if missing := missing_for_spark():
        raise InputError(f"Spark needs {' and '.join(missing)}; {INSTALL_SPARK}, or {instead}")


@contextmanager
def running_engine(
    name: str, app: str, settings: Settings, lock: WarehouseLock, progress: Callable[[str], None]
) -> Iterator[Engine]:
    """Yield the engine of this name. Spark starts when there is work, with the application name ``app``.

    Raises InputError if Spark already runs and another engine is requested, or if Spark is not installed.
    """
    if name == "local":
        if is_submitted():
            raise InputError("--engine local does not use Spark: start it with mqreplay, not with spark-submit")
        with LocalEngine(scratch().folder, settings.local.processes) as local:
            yield local
        return
    require_spark("take --engine local")
    if is_submitted():
        from mqreplay.lake.submitted import require_in_time, submitted_settings

        require_in_time(settings.spark, submitted_settings())  # before the night begins
    start = partial(_session, app, settings.spark, lock, progress)
    yield SparkEngine(lambda small: start(small=small), settings.spark.clusters_at_once)


def _session(
    app: str, settings: SparkSettings, lock: WarehouseLock, progress: Callable[[str], None], *, small: bool
) -> SparkSession:
    # Importing PySpark takes half a second, which a run without work need not spend.
    if settings.master.startswith(CONNECT):  # a server's Java is not this run's
        from mqreplay.lake.session import connected_session

        progress(f"connecting to {settings.master}")
        return connected_session(settings.master)
    from mqreplay.lake.executor_wait import say_while_no_executor
    from mqreplay.lake.java_process import check_java_names
    from mqreplay.lake.session import build_session, fit_plans
    from mqreplay.machine.stop_signals import handle_stops_again

    progress("starting Spark")
    spark = build_session(app, settings, small=small)
    kept = fit_plans(spark, small=small)
    handle_stops_again()
    lock.share_with_java(spark)
    check_java_names(lock.root)
    yours = ", ".join(f"{name}={value}" for name, value in kept.items())
    progress(f"Spark {spark.version} runs on {spark.sparkContext.master}" + (f", with your {yours}" if yours else ""))
    say_while_no_executor(spark, settings.extra, progress)
    return spark
