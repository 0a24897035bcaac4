"""Many clusters: a task does the whole night of a small one, and the driver commits what they wrote, once a table.

A task has one core, and many of them keep all cores busy; the passes of a small cluster one after the other do not. A
task commits nothing: if it fails or dies, its files are no table's. The passes of a large cluster are spread over all
cores, but the driver works alone between them: Spark replays some large clusters at the same time, and their
expectations and pages, which one core makes, are tasks.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

from mqreplay.answers.outcome import Outcome
from mqreplay.engines.local import LocalEngine
from mqreplay.ingest.cluster_files import ClusterFiles
from mqreplay.ingest.run import WRITERS, Ingested
from mqreplay.lake.scratch import scratch
from mqreplay.lake.staged_warehouse import Staged, StagedJournal, StagedWarehouse, by_table
from mqreplay.lake.ticker import Ticker
from mqreplay.lake.warehouse import Warehouse
from mqreplay.machine.crash import is_of_machine
from mqreplay.night.nightly_run import NightlyRun
from mqreplay.settings import Settings

CLUSTER_BYTES = 10_000_000  # of a cluster's recordings: the night of one needs less than a minute and 1.5 GB
FEW = 4  # with fewer clusters the processes take longer to start, and to import, than they save
AT_ONCE = 100  # clusters of one commit: what a killed run loses

Step = Callable[[NightlyRun, str], bool]


def parted(night: NightlyRun, clusters: list[ClusterFiles]) -> tuple[list[ClusterFiles], list[ClusterFiles]]:
    """Return the clusters that tasks do, and the others. Tasks read tables by path alone."""
    small = [each for each in clusters if each.requested and each.files.size <= CLUSTER_BYTES]
    if type(night.warehouse) is not Warehouse or len(small) < FEW:
        return [], clusters
    changed = [each for each in small if _has_work(night, each)]
    if len(changed) < FEW:
        return [], clusters
    names = {each.cluster for each in changed}
    return changed, [each for each in clusters if each.cluster not in names]


def _has_work(night: NightlyRun, cluster_files: ClusterFiles) -> bool:
    try:
        return night.has_work(cluster_files)
    except Exception:
        return True  # its task fails in the same way, and no other


@dataclass(frozen=True)
class _Shared:
    root: str
    settings: Settings
    steps: Sequence[Step]


@dataclass(frozen=True)
class _Work:
    """The cluster of a task, and its files if the task reads them."""

    cluster: str
    files: ClusterFiles | None = None


@dataclass
class _Done:
    """What a task did: its changes, and the ``error`` that ended it. ``lines`` are progress."""

    cluster: str
    ingested: Ingested | None = None
    staged: dict[str, Staged] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    error: Exception | None = None


def judge_small(night: NightlyRun, clusters: list[ClusterFiles], steps: Sequence[Step]) -> list[Ingested]:
    """Do the ``steps`` of small clusters after ingest. Return what was ingested; failures are noted."""
    ingested: list[Ingested] = []
    for start in range(0, len(clusters), AT_ONCE):
        some = [_Work(each.cluster, each) for each in clusters[start : start + AT_ONCE]]
        night.progress(f"{len(some)} small clusters, each in a task")
        ingested += _judge(night, some, _Shared(night.warehouse.root, night.settings, steps))
    night.recordings |= {each.cluster: each.recordings for each in ingested if each.files}
    return ingested


def judge_large(night: NightlyRun, clusters: Sequence[str], steps: Sequence[Step]) -> list[str]:
    """Do the ``steps`` of clusters that are ingested; failures are noted. Return those whose pages may be tasks."""
    if len(clusters) < FEW:
        for cluster in clusters:
            with night.attempt(cluster):
                for step in steps:
                    step(night, cluster)
        return []
    if NightlyRun.replay in steps:
        _replay(night, clusters)
    left = [each for each in clusters if not night.failures.has(each)]
    if NightlyRun.validate not in steps:
        return []
    by_path = type(night.warehouse) is Warehouse  # tasks write files of folders, not tables by name
    changed = [each for each in left if night.has_expectations(each)] if by_path else []
    if len(changed) > 1:
        night.progress(f"expectations of {len(changed)} clusters, each in a task")
        work = [_Work(each) for each in changed]
        _judge(night, work, _Shared(night.warehouse.root, night.settings, [NightlyRun.validate]))
        left = [each for each in left if each not in changed]
    for cluster in left:
        with night.attempt(cluster):
            night.validate(cluster)
    return changed


def _replay(night: NightlyRun, clusters: Sequence[str]) -> None:
    """Replay clusters, as many at the same time as the engine takes."""
    at_once = min(night.engine.clusters_at_once, len(clusters))
    run = night if at_once == 1 else night.beside_others()

    def replay(cluster: str) -> None:
        with run.attempt(cluster):
            run.replay(cluster)

    if at_once == 1:
        for cluster in clusters:
            replay(cluster)
        return
    night.make_tables()  # a rollback removes a table that is new, also files that others have not committed
    with ThreadPoolExecutor(at_once) as pool:
        begun = [pool.submit(replay, cluster) for cluster in clusters]
        try:
            for each in as_completed(begun):
                each.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            night.engine.cancel()  # the others wait for its tasks
            raise


def _judge(night: NightlyRun, work: Sequence[_Work], shared: _Shared) -> list[Ingested]:
    done: list[_Done] = []

    def line(_: float) -> str:
        return f"{len(done)} of {len(work)} clusters judged"

    with Ticker(night.progress, line):
        for each in night.engine.map(_steps_of_cluster, work, shared):
            for text in each.lines:
                if text.startswith(f"{each.cluster}: "):
                    night.progress(text)
            done.append(each)
    staged = by_table(each.staged for each in done)

    def commit(name: str) -> None:
        night.warehouse.exchange_files(name, staged[name].added, staged[name].removed)

    with night.journal.transaction(f"nights of {len(done)} clusters"), ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(commit, staged))
    for each in done:
        if each.error is not None:
            with night.attempt(each.cluster):
                raise each.error
    return [each.ingested for each in done if each.ingested is not None]


def _steps_of_cluster(work: _Work, shared: _Shared) -> _Done:
    done = _Done(work.cluster)
    warehouse = StagedWarehouse(shared.root)
    with LocalEngine(scratch().folder, processes=1) as engine:
        night = NightlyRun(engine, warehouse, shared.settings, done.lines.append, journal=StagedJournal(warehouse))
        try:
            if work.files is not None:
                (done.ingested,) = night.ingest([work.files])
            if done.ingested is None or done.ingested.files:
                for step in shared.steps:
                    step(night, work.cluster)
        except Exception as error:
            done.error = _of_cluster(error)
    done.staged = warehouse.staged
    return done


def _of_cluster(error: Exception) -> Exception:
    """Return an error that concerns one cluster, so that it can be pickled; raise one that would stop the others."""
    if is_of_machine(error):
        raise error
    error.add_note("".join(traceback.format_exception(error)))  # a traceback cannot be pickled
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def reports(night: NightlyRun, clusters: Sequence[str]) -> Iterator[Outcome]:
    """Make the pages of clusters, each in a task; yield what the terminal shows of each. Failures are noted."""
    recordings = [(cluster, night.recordings.get(cluster)) for cluster in clusters]
    shared = _Shared(night.warehouse.root, night.settings, ())
    for cluster, outcome in zip(clusters, night.engine.map(_report, recordings, shared), strict=True):
        with night.attempt(cluster):
            if isinstance(outcome, Exception):
                raise outcome
            yield outcome


def _report(recorded: tuple[str, list[str] | None], shared: _Shared) -> Outcome | Exception:
    cluster, recordings = recorded
    with LocalEngine(scratch().folder, processes=1) as engine:
        night = NightlyRun(engine, Warehouse(shared.root), shared.settings, lambda _: None)
        if recordings is not None:
            night.recordings[cluster] = recordings
        try:
            return night.report(cluster)
        except Exception as error:
            return _of_cluster(error)
