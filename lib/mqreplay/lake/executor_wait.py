"""Say why a job waits: Spark itself waits without a word, and forever, for an executor that no worker has room for."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from mqreplay.lake.submitted import is_submitted

ONE_PROCESS = re.compile(r"local(\[.*\])?")
STANDALONE = re.compile(r"spark://(.+)")
# Of a standalone master: what it is asked, its answer (org.apache.spark.deploy), and Scala's way to name a class.
QUESTION = "org.apache.spark.deploy.DeployMessages$RequestMasterState$"
ANSWER = "org.apache.spark.deploy.DeployMessages$MasterStateResponse"
TAGS = "scala.reflect.ClassTag$"
PATIENCE_S, AGAIN_S, LOOK_EVERY_S = 15.0, 60.0, 3.0
MEMORY, CORES = "spark.executor.memory", "spark.executor.cores"


@dataclass(frozen=True)
class Room:
    """Memory in MiB and cores: of a worker, what is free in it, or what an executor needs."""

    memory: int
    cores: int

    def fits(self, other: Room) -> bool:
        """Return whether ``other`` has as much."""
        return self.memory <= other.memory and self.cores <= other.cores

    def __str__(self) -> str:
        return f"{self.memory:,} MiB and {self.cores} core{'' if self.cores == 1 else 's'}"


@dataclass(frozen=True)
class Worker:
    """A worker that is alive: all that it has, and what no application uses."""

    total: Room
    free: Room


def say_while_no_executor(session: SparkSession, extra: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Say so after 15 s, and each minute, while jobs wait and no executor runs. ``extra`` is [spark.extra].

    It works beside the caller until the session ends. Spark in one process is its own executor.
    """
    context = session.sparkContext
    if ONE_PROCESS.fullmatch(str(context.master)) is None:
        threading.Thread(target=_watch, args=(context, extra, say), daemon=True).start()


def advice(need: Room, workers: list[Worker] | None, extra: Mapping[str, str], *, submitted: bool) -> str:
    """Return what the workers have, and which setting to change. ``workers``: None if the master does not say.

    >>> small = Room(1500, 1)
    >>> print(advice(Room(4096, 1), [Worker(small, small)], {MEMORY: "4g"}, submitted=False))
    the largest worker has 1,500 MiB and 1 core; set spark.executor.memory under [spark.extra] to 1500m or less, or start larger workers
    """  # noqa: E501
    if workers is None:
        setting = " and ".join(_setting(name, extra, submitted) for name in (MEMORY, CORES))
        return f"the cluster has no room for it, or is still making it; compare {setting} with its sizes"
    if not workers:
        return "no worker is registered with the master; start one"
    totals, largest = [worker.total for worker in workers], max(workers, key=lambda worker: worker.total.memory).total
    if not any(need.fits(total) for total in totals):
        name, value = (MEMORY, f"{largest.memory}m") if need.memory > largest.memory else (CORES, str(largest.cores))
        return (
            f"the largest worker has {largest}; set {_setting(name, extra, submitted)} to {value} or less, "
            "or start larger workers"
        )
    if not any(need.fits(worker.free) for worker in workers):
        free = max((worker.free for worker in workers), key=lambda room: (min(room.cores, 1), room.memory))
        return (
            f"other applications use the workers: at most {free} are free; wait for them, or lower "
            f"{_setting(MEMORY, extra, submitted)}"
        )
    return "a worker has room for it, so executors end at once or cannot reach the driver; see the worker's logs"


def _setting(name: str, extra: Mapping[str, str], submitted: bool) -> str:
    """Return the setting, and where the user has it."""
    if submitted and name not in extra:
        return f"spark-submit's --conf {name}"
    return f"{name} under [spark.extra]"


def _watch(context: SparkContext, extra: Mapping[str, str], say: Callable[[str], None]) -> None:
    waiting_since: float | None = None
    next_line = PATIENCE_S
    while True:
        time.sleep(LOOK_EVERY_S)
        try:
            waits = _waits(context)
            if not waits:
                if waiting_since is not None and next_line > PATIENCE_S and _executors(context):
                    say(f"an executor was granted after {time.monotonic() - waiting_since:.0f} s")
                waiting_since, next_line = None, PATIENCE_S
                continue
            now = time.monotonic()
            waiting_since = now - LOOK_EVERY_S if waiting_since is None else waiting_since
            if now - waiting_since >= next_line:
                say(_line(context, extra, now - waiting_since))
                next_line = now - waiting_since + AGAIN_S
        except Exception:  # the session has ended, or Java
            return


def _waits(context: SparkContext) -> bool:
    """Return whether a job is waiting: with dynamic allocation, idle sessions have no executors."""
    return _executors(context) == 0 and len(context.statusTracker().getActiveJobsIds()) > 0


def _executors(context: SparkContext) -> int:
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1  # the driver is in it


def _line(context: SparkContext, extra: Mapping[str, str], seconds: float) -> str:
    java: Any = context._jsc
    need = Room(int(java.sc().executorMemory()), int(context.getConf().get(CORES) or 1))
    reason = advice(need, _workers(context), extra, submitted=is_submitted())
    asked = f"each needs {need} of {context.master}"
    return f"no executor after {seconds:.0f} s, and the work waits for one: {asked}; {reason}"


def _workers(context: SparkContext) -> list[Worker] | None:
    """Return the workers of a standalone master, asked as its own clients do; None for others, or without an answer."""
    found = STANDALONE.fullmatch(str(context.master))
    java: Any = context._jvm
    for address in found[1].split(",") if found else ():
        host, _, port = address.rpartition(":")
        try:
            at = java.org.apache.spark.rpc.RpcAddress(host, int(port))
            master = java.org.apache.spark.SparkEnv.get().rpcEnv().setupEndpointRef(at, "Master")
            state = master.askSync(_scala_object(java, QUESTION), _scala_object(java, TAGS).apply(_class(java, ANSWER)))
        except Exception:  # a standby that is down, or another version's master
            continue
        if state.status().toString() == "ALIVE":
            return [_worker(each) for each in state.workers() if each.state().toString() == "ALIVE"]
    return None


def _class(java: Any, name: str) -> Any:
    return java.java.lang.Class.forName(name, True, java.java.lang.Thread.currentThread().getContextClassLoader())


def _scala_object(java: Any, name: str) -> Any:
    return _class(java, name).getField("MODULE$").get(None)


def _worker(info: Any) -> Worker:
    return Worker(Room(info.memory(), info.cores()), Room(info.memoryFree(), info.coresFree()))
