"""The steps of a night in order: ingest, replay, validate, report."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

from mqreplay.answers.figures import Sample
from mqreplay.answers.outcome import Outcome
from mqreplay.engines.choice import running_engine
from mqreplay.ingest.digests import KnownDigests
from mqreplay.lake.local_folder import check_folders, folder
from mqreplay.lake.lock import warehouse_lock
from mqreplay.lake.result_cache import first_days
from mqreplay.lake.sql import check_text
from mqreplay.lake.storage import use_settings
from mqreplay.lake.table_versions import DamagedTable
from mqreplay.lake.ticker import Ticker
from mqreplay.night.catalog import Catalog, opened_warehouse
from mqreplay.night.estate import judge_large, judge_small, parted, reports
from mqreplay.night.failures import Failure, Failures
from mqreplay.night.nightly_run import NightlyRun, Progress
from mqreplay.night.recordings import begun_listings, finished_listings
from mqreplay.night.steps import Steps
from mqreplay.replay.day_findings import group_limits
from mqreplay.settings import Settings


@dataclass(frozen=True)
class Command:
    """What a command does: read recordings, then these steps of each cluster, then the pages."""

    ingests: bool = False
    of_cluster: tuple[Callable[[NightlyRun, str], bool], ...] = ()
    reports: bool = False

    @property
    def is_whole(self) -> bool:
        """Return whether the command is the whole night."""
        return self.ingests and self.reports

    @property
    def changes_days(self) -> bool:
        """Return whether the command may leave a cluster without recordings."""
        return self.ingests or NightlyRun.replay in self.of_cluster


COMMANDS = {
    "nightly": Command(ingests=True, of_cluster=(NightlyRun.replay, NightlyRun.validate), reports=True),
    "ingest": Command(ingests=True),
    "replay": Command(of_cluster=(NightlyRun.replay,)),
    "validate": Command(of_cluster=(NightlyRun.validate,)),
    "report": Command(reports=True),
}


def run(
    name: str,
    root: str,
    settings: Settings,
    progress: Progress,
    *,
    recordings: list[str] | None = None,
    cluster: str | None = None,
    engine: str,
    catalog: Catalog | None = None,
    failed: list[Failure] | None = None,
    measured: Callable[[list[Sample]], None] | None = None,
) -> list[Outcome]:
    """Run the command ``name`` (of COMMANDS) under the warehouse's lock, on one of ENGINES.

    ``recordings`` may be patterns (recordings.py). Return an outcome for each cluster. A recording or cluster that
    fails is appended to ``failed``, and the others go on; without this list its error is raised. With ``catalog``, the
    tables are read and written by their names there. ``measured`` gets the figures of a whole night.
    Raises InputError, WarehouseLocked and the other MqreplayErrors; also if no recording can be read.
    """
    command = COMMANDS[name]
    if catalog is not None:
        catalog.check_engine(engine)
    use_settings(settings)
    group_limits(settings)
    root = folder(root, "warehouse")
    check_text(cluster)
    check_folders(root)
    failures = Failures(failed)
    # Report an unreadable recording before the warehouse is made.
    listings = begun_listings(root, recordings or [], settings.ingest.follow_links, failures)
    if command.ingests and not listings:
        failures.raise_all()
    with (
        warehouse_lock(root, settings.storage.lease_s, progress) as lock,
        running_engine(engine, f"mqreplay {name}", settings, lock, progress) as running,
    ):
        night = NightlyRun(running, opened_warehouse(root, running, catalog), settings, progress, failures)
        night.journal.recover(progress)
        is_afresh = remove_damaged(night, judges=NightlyRun.replay in command.of_cluster)
        judged: set[str] = set()
        if command.ingests:
            with Ticker(progress, lambda _: f"listing and comparing files: {running.progress()}"):
                found = KnownDigests(root, running).of_recordings(finished_listings(listings, running, failures))
            small, others = parted(night, night.of_clusters(found, cluster))
            ingested = judge_small(night, small, command.of_cluster)
            judged = {done.cluster for done in ingested}
            ingested += night.ingest(others)
            clusters = sorted(done.cluster for done in ingested if done.files)
        else:
            clusters = night.clusters(cluster)
        if is_afresh:
            clusters = sorted({*clusters, *night.clusters(None)})
        if command.changes_days:
            night.forget_empty_clusters()
        others_left = [each for each in clusters if not failures.has(each) and each not in judged]
        judged.update(judge_large(night, others_left, command.of_cluster))
        if command.is_whole:
            night.remember([done for done in ingested if done.files])
        in_tasks = [each for each in clusters if command.reports and each in judged and not failures.has(each)]
        outcomes = list(reports(night, in_tasks))
        for each in clusters:
            if each not in in_tasks and not failures.has(each):
                with night.attempt(each):
                    outcomes.append(night.report(each) if command.reports else night.outcome(each))
        outcomes.sort(key=lambda outcome: outcome.cluster)
        if command.is_whole:
            night.last_runs.note(dt.datetime.now(dt.UTC), [each.cluster for each in outcomes], failures.found)
        if command.reports:
            night.note_reported(outcomes)
        if command.is_whole and measured is not None:
            measured([sample for each in outcomes for sample in night.figures(each)])
        if command.reports:
            night.overview()
        return outcomes


def remove_damaged(night: NightlyRun, *, judges: bool) -> bool:
    """Remove damaged tables that the days of silver can make again; let each day be judged again. Return whether any.

    ``judges``: the run judges days. Raises DamagedTable for other tables.
    """
    warehouse, damaged = night.warehouse, dict[str, DamagedTable]()
    for name in warehouse.contracts:
        try:
            warehouse.check(name, checksums=False)
        except DamagedTable as error:
            damaged[name] = error
    if not damaged:
        return False
    if all(warehouse.version(name) is None for name in warehouse.contracts):
        warehouse.note_versions(damaged)  # somebody has removed all tables, to start again
        return False
    lasting = [reason for name, reason in damaged.items() if not (judges and warehouse.contracts[name].is_judged)]
    if lasting:
        raise lasting[0]
    clusters = night.clusters(None)
    if any("silver" in first_days(warehouse, cluster) for cluster in clusters):
        raise next(iter(damaged.values()))  # not all days can be made again
    for cluster in clusters:
        Steps(warehouse, cluster).again()
    for name, reason in damaged.items():
        night.progress(f"{reason.what}; all days are judged again")
        warehouse.drop(name)
    return True
