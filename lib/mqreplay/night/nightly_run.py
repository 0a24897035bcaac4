"""One run on a warehouse: each step of a night, for one cluster."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from itertools import chain

from mqreplay.answers.figures import Sample, night_figures
from mqreplay.answers.mutes import valid_mutes
from mqreplay.answers.outcome import Outcome, kept_outcome, outcome_of
from mqreplay.answers.page_path import file_name, page_path
from mqreplay.engines.engine import Engine
from mqreplay.ingest.cluster_files import ClusterFiles, by_cluster, known_recordings
from mqreplay.ingest.offset_checkpoint import CHECKPOINT, OffsetCheckpoint
from mqreplay.ingest.recorded_files import RecordedFiles
from mqreplay.ingest.run import Ingested, has_new_files, ingest, known_files, refused_rows
from mqreplay.lake.files import files_of, joined, write_text
from mqreplay.lake.journal import Journal, SharedJournal
from mqreplay.lake.result_cache import CachedQuery, ResultCache, first_days, kept_days, write_kept
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.failures import Failures
from mqreplay.night.overview import LastRuns, write_overview
from mqreplay.night.page import page_data
from mqreplay.night.replay_day import judge_day
from mqreplay.night.reported import Night, Reported
from mqreplay.night.retention import first_judged
from mqreplay.night.steps import (
    STEP_TABLE,
    TABLES_OF_KINDS,
    Span,
    Steps,
    days_of,
    digests,
    empty_clusters,
    recorded_until,
    spans,
    steps,
)
from mqreplay.night.validation import VALIDATION_TABLE, Validation
from mqreplay.report.build import build_report
from mqreplay.settings import Settings
from mqreplay.words.errors import InputError

Progress = Callable[[str], None]


class NightlyRun:
    """One run on one warehouse. Each step can also run alone. Hold the warehouse's lock around all of them."""

    def __init__(
        self,
        engine: Engine,
        warehouse: Warehouse,
        settings: Settings,
        progress: Progress,
        failures: Failures | None = None,
        journal: Journal | None = None,
    ) -> None:
        """Take the warehouse, its journal, and ``progress``, which is called with each progress line.

        Errors of a cluster are noted in ``failures``; without it they are raised.
        """
        self.engine, self.warehouse = engine, warehouse
        self.journal = journal if journal is not None else Journal(self.warehouse, engine.cancel)
        self.settings, self.progress = settings, progress
        self.failures = failures if failures is not None else Failures(None)
        self.last_runs = LastRuns.of(self.warehouse.root)
        self.recordings: dict[str, list[str]] = {}  # of the run by cluster

    def beside_others(self) -> NightlyRun:
        """Return a run for threads, each with a cluster: one that fails leaves the tasks of the others alone."""
        journal = SharedJournal(self.warehouse)
        return NightlyRun(self.engine, self.warehouse, self.settings, self.progress, self.failures, journal)

    def attempt(self, cluster: str) -> AbstractContextManager[None]:
        """Return a context for the work on one cluster: if it fails, it is rolled back, and others can go on."""
        return self.failures.of("cluster", cluster, lambda: self._roll_back(cluster))

    def _roll_back(self, cluster: str) -> None:
        self.progress(f"{cluster}: failed")
        self.engine.restart()
        self.journal.recover(lambda text: None)

    def of_clusters(self, recordings: dict[str, RecordedFiles], cluster: str | None) -> list[ClusterFiles]:
        """Return the files of each cluster; of the one that is named."""
        return by_cluster(self.warehouse, recordings, cluster, self.settings.ingest, self.progress)

    def ingest(self, clusters: list[ClusterFiles]) -> list[Ingested]:
        """Read the recordings of clusters into silver."""
        done = ingest(
            self.warehouse,
            self.engine,
            self.journal,
            clusters,
            self.settings.ingest,
            self.progress,
            self.attempt,
        )
        self.recordings |= {each.cluster: each.recordings for each in done if each.files}
        return done

    def has_work(self, cluster_files: ClusterFiles) -> bool:
        """Return whether a night of the cluster would change a table. Nothing is written."""
        if has_new_files(self.warehouse, self.engine, self.journal, cluster_files, self.settings.ingest):
            return True
        cluster = cluster_files.cluster
        wanted = self._wanted(self.spans(cluster))
        return bool(Steps(self.warehouse, cluster).todo("replay", wanted)) or self.has_expectations(cluster)

    def has_expectations(self, cluster: str) -> bool:
        """Return whether `validate` would check expectations. Nothing is written."""
        kept = first_days(self.warehouse, cluster)
        return bool(Validation(self.warehouse, cluster, self.spans(cluster), self.settings, kept).todo())

    def clusters(self, cluster: str | None) -> list[str]:
        """Return the requested cluster, or all clusters in the warehouse. Raises InputError if there is none."""
        files = self.warehouse.read("bronze.source_file").select("cluster").unique().collect()
        known = sorted(files["cluster"])
        if cluster is not None and cluster not in known:
            has = f"it holds {', '.join(known)}" if known else "it is empty"
            raise InputError(f"warehouse {self.warehouse.root} holds no cluster {cluster}; {has}")
        if not known:
            raise InputError(f"warehouse {self.warehouse.root} is empty; run ingest or nightly with a recording first")
        return [cluster] if cluster is not None else known

    def replay(self, cluster: str) -> bool:
        """Replay the days that changed from silver into gold. Return whether there were any."""
        found = self.spans(cluster)
        wanted = self._wanted(found)
        noted = Steps(self.warehouse, cluster)
        kept = first_days(self.warehouse, cluster)
        removed = str(kept.get("silver", dt.date.min))
        # Gold rows may be kept for longer than the files and rows that they were made from.
        gone = [day for day in noted.not_among("replay", wanted) if day >= removed]
        if gone:
            self.progress(f"{cluster}: forgetting {', '.join(gone)}: no file of these days is left")
            with self.journal.transaction(f"removal of days of {cluster}"):
                self._remove(RowFilter(cluster, days=frozenset(map(dt.date.fromisoformat, gone))))
                noted.forget(gone)
        todo = self._possible(cluster, noted.todo("replay", wanted), kept)
        if not todo:
            self.progress(f"{cluster}: no day changed, replay skipped")
            return bool(gone)
        for day in todo:
            # One by one: the result of a day must not depend on which other days are replayed with it.
            self.progress(f"{cluster}: replaying {day}")
            date = dt.date.fromisoformat(day)
            is_first = day == min(wanted) and "silver" not in kept
            checkpoint = OffsetCheckpoint(self.warehouse, cluster)
            if not is_first and checkpoint.lacks(date):
                with self.journal.transaction(f"offsets of {cluster} before {day}", [CHECKPOINT]):
                    checkpoint.add(date)
            replaced = RowFilter(cluster, frozenset({date})) if noted.any_done("replay", [day]) else None
            with self.journal.tasks():
                judged = judge_day(
                    self.warehouse, self.engine, cluster, date, found, self.settings, self.progress, is_first=is_first
                )
            with self.journal.transaction(f"replay of {cluster}, {day}", self._judged_tables()):
                judged.commit(replaced)
                noted.done("replay", {day: wanted[day]})
            self.progress(f"{cluster}: {day} replayed")
        return True

    def _judged_tables(self) -> list[str]:
        judged = [name for name, contract in self.warehouse.contracts.items() if contract.is_judged]
        return [*judged, STEP_TABLE]

    def make_tables(self) -> None:
        """Make the tables that a replay writes and that do not exist."""
        missing = [name for name in self._judged_tables() if not self.warehouse.exists(name)]
        if missing:
            with self.journal.transaction("new tables", missing):
                for name in missing:
                    self.warehouse.commit_files(name, [], None)

    def _wanted(self, found: list[Span]) -> dict[str, str]:
        """Return day -> digest of the inputs of its replay."""
        by_day = digests(found, self.settings.digest(), self.settings.replay.lookback_minutes)
        return {str(day): digest for day, digest in by_day.items()}

    def _possible(self, cluster: str, days: list[str], kept: Mapping[str, dt.date]) -> list[str]:
        """Return those of the days whose rows, and those of the lookback before them, are still kept."""
        first = str(first_judged(kept, self.settings.replay.lookback_minutes))
        possible = [day for day in days if day >= first]
        missed = [day for day in days if str(max(kept.values(), default=dt.date.min)) <= day < first]
        if missed:
            text = f"{', '.join(missed)}: not judged again, the rows before {first} are not all kept"
            self.progress(f"{cluster}: {text} (mqreplay maintain)")
        return possible

    def _remove(self, rows: RowFilter) -> None:
        """Remove these rows from the gold tables that have days."""
        for name, contract in self.warehouse.contracts.items():
            if contract.is_judged and self.warehouse.exists(name):
                self.warehouse.commit_files(name, [], rows)

    def forget_empty_clusters(self) -> None:
        """Remove the rows of clusters that have no recording left."""
        for (cluster,) in ResultCache(self.warehouse).rows(empty_clusters()):
            self.progress(f"{cluster}: no recording of this cluster is left; removing its rows")
            with self.journal.transaction(f"removal of {cluster}"):
                self._remove(RowFilter(cluster))
                Steps(self.warehouse, cluster).forget()
                self.last_runs.forget(cluster)
                for suffix in ("html", "json"):
                    files_of(self.warehouse.root).remove(page_path(self.warehouse.root, cluster, suffix))

    def validate(self, cluster: str) -> bool:
        """Check the expectations of the days that changed; write gold.validation_result and JSON.

        Return whether any ran.
        """
        kept = first_days(self.warehouse, cluster)
        judging = Validation(self.warehouse, cluster, self.spans(cluster), self.settings, kept)
        todo = judging.todo()
        if not todo:
            self.progress(f"{cluster}: no day changed, validation skipped")
            return False
        results = joined(self.warehouse.root, "expectations", file_name(cluster))
        with self.journal.transaction(f"validation of {cluster}", [VALIDATION_TABLE, STEP_TABLE]):
            rows = judging.run(todo, results, self.progress)
            Steps(self.warehouse, cluster).done("validate", {scope: judging.wanted[scope] for scope in todo})
        self.progress(f"{cluster}: {rows} expectations run")
        return True

    def report(self, cluster: str) -> Outcome:
        """Make the HTML page, and return what the terminal shows. Reuse both if no table has changed since."""
        page, kept = (page_path(self.warehouse.root, cluster, suffix) for suffix in ("html", "json"))
        shown = self.settings.report
        night, mutes = self._night(cluster), valid_mutes(self.warehouse, cluster, self._now)
        about = "" if night is None else night.state
        state = f"{self.warehouse.state()} {shown.days} {shown.language} {about} {[mute.mute_id for mute in mutes]}"
        files = files_of(page)
        before = files.info(page)
        if before is not None and (known := kept_outcome(kept, state)) is not None:
            known.report = page  # the warehouse may have been moved since
            return known
        since = self._since(cluster)
        html = build_report(page_data(self.warehouse, cluster, since, shown.language, mutes))
        if before is None or files.read(page) != html.encode():
            write_text(page, html)
        outcome = outcome_of(self.warehouse, cluster, since, night, mutes)
        outcome.report = page
        write_kept(kept, state, outcome.as_dict())
        return outcome

    @cached_property
    def _now(self) -> dt.datetime:
        return dt.datetime.now(dt.UTC)

    def overview(self) -> None:
        """Make the page of all clusters."""
        write_overview(self.warehouse, self.last_runs, self.settings.report)

    def outcome(self, cluster: str) -> Outcome:
        """Return what the terminal shows, without a page."""
        mutes = valid_mutes(self.warehouse, cluster, self._now)
        return outcome_of(self.warehouse, cluster, self._since(cluster), self._night(cluster), mutes)

    def note_reported(self, outcomes: Iterable[Outcome]) -> None:
        """Note that the nights of the clusters are reported: the next run is about later ones."""
        for outcome in outcomes:
            night = self._night(outcome.cluster)
            if night is not None:
                reported = self.last_runs.reported.setdefault(outcome.cluster, Reported())
                rows = (*outcome.findings, *outcome.others)
                reported.add(night, self.spans(outcome.cluster), (str(row["finding_id"]) for row in rows), self._now)
        self.last_runs.write(self.warehouse.root)

    def _night(self, cluster: str) -> Night | None:
        reported = self.last_runs.reported.get(cluster, Reported())
        return reported.night(self.spans(cluster), self.recordings.get(cluster))

    def figures(self, outcome: Outcome) -> list[Sample]:
        """Return the figures of a cluster for Prometheus; none without a recorded time."""
        found = self.spans(outcome.cluster)
        until = recorded_until(found) or max((span.last_ts for span in found if span.last_ts is not None), default=None)
        return [] if until is None else night_figures(self.warehouse, outcome, until, dt.datetime.now(dt.UTC))

    def _since(self, cluster: str) -> dt.date | None:
        """Return the first day that the report shows; None if it shows all.

        Days count back from the last one by the recorder's clock: a client's clock may be years ahead.
        """
        found = self.spans(cluster)
        days = days_of(found)
        until = recorded_until(found)
        last = days[-1] if until is None and days else until.date() if until is not None else None
        since = None if last is None else last - dt.timedelta(days=self.settings.report.days - 1)
        return since if since is not None and days and days[0] < since else None

    def remember(self, ingested: list[Ingested]) -> None:
        """Store beside the warehouse what the next run asks first."""
        asked = [
            (
                known_files(done.cluster, done.recordings),
                refused_rows(done.cluster, done.recordings),
                self._asked(done.cluster),
                steps(done.cluster),
                kept_days(done.cluster),
            )
            for done in ingested
        ]
        ResultCache(self.warehouse).keep([known_recordings(), empty_clusters(), *chain.from_iterable(asked)])

    def spans(self, cluster: str) -> list[Span]:
        """Return the spans of the cluster's files."""
        return [Span(*row) for row in ResultCache(self.warehouse).rows(self._asked(cluster))]

    def _asked(self, cluster: str) -> CachedQuery:
        return spans(cluster, self.settings.replay.lookback_minutes, TABLES_OF_KINDS)
