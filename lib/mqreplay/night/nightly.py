"""The steps of a night in order: ingest, replay, validate, report."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from itertools import chain
from threading import Thread

from mqreplay.decode.kinds import KINDS
from mqreplay.errors import InputError
from mqreplay.ingest.digests import KnownDigests
from mqreplay.ingest.listing import begin_listings, finish_listings
from mqreplay.ingest.offset_checkpoint import OffsetCheckpoint
from mqreplay.ingest.recorded_files import RecordedFiles
from mqreplay.ingest.run import Ingested, ingest, known_files, known_recordings
from mqreplay.lake.files import files_of, joined
from mqreplay.lake.journal import Journal
from mqreplay.lake.kept_days import first_days, kept_days
from mqreplay.lake.local_folder import check_folders, folder
from mqreplay.lake.lock import warehouse_lock
from mqreplay.lake.remembered import Question, Remembered, write_kept
from mqreplay.lake.rows import Rows
from mqreplay.lake.small_file import write_text
from mqreplay.lake.sql import check_text
from mqreplay.lake.storage import use_settings
from mqreplay.lake.ticker import Ticker
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.catalog import Catalog
from mqreplay.night.file_name import file_name
from mqreplay.night.outcome import Outcome, kept_outcome, outcome_of
from mqreplay.night.replay_day import replay_day
from mqreplay.night.retention import first_judged
from mqreplay.night.steps import Span, Steps, digests, empty_clusters, spans, steps
from mqreplay.night.validation import Validation
from mqreplay.report.build import build_report
from mqreplay.report.collect import collect
from mqreplay.run.engine import Engine
from mqreplay.run.engines import running_engine
from mqreplay.settings import Settings

Progress = Callable[[str], None]
STEPS = ("ingest", "replay", "validate", "report")


class Night:
    """One run on one warehouse. Each step can also run alone. Hold the warehouse's lock around all of them."""

    def __init__(self, engine: Engine, root: str, settings: Settings, progress: Progress) -> None:
        """Take the warehouse's folder ``root``, and ``progress``, which is called with each progress line."""
        self.engine, self.warehouse = engine, Warehouse(root)
        self.journal = Journal(self.warehouse, engine.cancel)
        self.settings, self.progress = settings, progress

    def ingest(
        self,
        recordings: dict[str, RecordedFiles],
        cluster: str | None,
        begin: Callable[[], None] = lambda: None,
    ) -> list[Ingested]:
        """Read recordings into silver. ``begin`` is called if there is something to read."""
        return ingest(self.warehouse, self.engine, recordings, cluster, self.settings.ingest, self.progress, begin)

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
        by_day = digests(found, self.settings.digest(), self.settings.replay.lookback_minutes)
        wanted = {str(day): digest for day, digest in by_day.items()}
        noted = Steps(self.warehouse, cluster)
        kept = first_days(self.warehouse, cluster)
        removed = str(kept.get("silver", dt.date.min))
        # Gold rows may be kept for longer than the files and rows that they were made from.
        gone = [day for day in noted.not_among("replay", wanted) if day >= removed]
        if gone:
            self.progress(f"{cluster}: forgetting {', '.join(gone)}: no file of these days is left")
            with self.journal.transaction(f"removal of days of {cluster}"):
                self._remove(Rows(cluster, days=frozenset(map(dt.date.fromisoformat, gone))))
                noted.forget(gone)
        todo = self._possible(cluster, noted.todo("replay", wanted), kept)
        if not todo:
            self.progress(f"{cluster}: no day changed, replay skipped")
            return bool(gone)
        for day in todo:
            # One by one: the result of a day must not depend on which other days are replayed with it.
            self.progress(f"{cluster}: replaying {day}")
            with self.journal.transaction(f"replay of {cluster}, {day}"):
                is_first = day == min(wanted) and "silver" not in kept
                self._replay_day(cluster, day, found, is_first=is_first, afresh=not noted.any_done("replay", [day]))
                noted.done("replay", {day: wanted[day]})
        return True

    def _possible(self, cluster: str, days: list[str], kept: Mapping[str, dt.date]) -> list[str]:
        """Return those of the days whose rows, and those of the lookback before them, are still kept."""
        first = str(first_judged(kept, self.settings.replay.lookback_minutes))
        possible = [day for day in days if day >= first]
        missed = [day for day in days if str(max(kept.values(), default=dt.date.min)) <= day < first]
        if missed:
            text = f"{', '.join(missed)}: not judged again, the rows before {first} are not all kept"
            self.progress(f"{cluster}: {text} (mqreplay maintain)")
        return possible

    def _replay_day(self, cluster: str, day: str, found: list[Span], *, is_first: bool, afresh: bool) -> None:
        date = dt.date.fromisoformat(day)
        if not is_first:
            OffsetCheckpoint(self.warehouse, cluster).keep(date)
        replay_day(
            self.warehouse,
            self.engine,
            cluster,
            date,
            found,
            self.settings,
            self.progress,
            is_first=is_first,
            afresh=afresh,
        )

    def _remove(self, rows: Rows) -> None:
        """Remove these rows from the gold tables that have days."""
        for name, contract in self.warehouse.contracts.items():
            dated = any(column.name == "day" for column in contract.columns)
            if dated and name.startswith("gold.") and self.warehouse.exists(name):
                self.warehouse.take(name, [], rows)

    def forget_empty_clusters(self) -> None:
        """Remove the rows of clusters that have no recording left."""
        for (cluster,) in Remembered(self.warehouse).rows(empty_clusters()):
            self.progress(f"{cluster}: no recording of this cluster is left; removing its rows")
            with self.journal.transaction(f"removal of {cluster}"):
                self._remove(Rows(cluster))
                Steps(self.warehouse, cluster).forget()
                for suffix in ("html", "json"):
                    files_of(self.warehouse.root).remove(self._page(cluster, suffix))

    def validate(self, cluster: str) -> bool:
        """Check the expectations of the days that changed; write gold.validation_result and JSON.

        Return whether any ran.
        """
        found = self.spans(cluster)
        noted = Steps(self.warehouse, cluster)
        kept = first_days(self.warehouse, cluster)
        judging = Validation(self.warehouse, cluster, found, self.settings, kept)
        first = str(first_judged(kept, self.settings.replay.lookback_minutes))
        # UNDATED comes after every day.
        todo = [scope for scope in noted.todo("validate", judging.wanted) if scope >= first]
        if not todo:
            self.progress(f"{cluster}: no day changed, validation skipped")
            return False
        results = joined(self.warehouse.root, "expectations", file_name(cluster))
        with self.journal.transaction(f"validation of {cluster}"):
            rows = judging.run(todo, results, self.progress)
            noted.done("validate", {scope: judging.wanted[scope] for scope in todo})
        self.progress(f"{cluster}: {rows} expectations run")
        return True

    def report(self, cluster: str) -> Outcome:
        """Make the HTML page, and return what the terminal shows. Reuse both if no table has changed since."""
        page, kept = (self._page(cluster, suffix) for suffix in ("html", "json"))
        state = self.warehouse.state()
        files = files_of(page)
        before = files.info(page)
        if before is not None and (known := kept_outcome(kept, state)) is not None:
            known.report = page  # the warehouse may have been moved since
            return known
        html = build_report(collect(self.warehouse, cluster))
        if before is None or files.read(page) != html.encode():
            write_text(page, html)
        outcome = outcome_of(self.warehouse, cluster)
        outcome.report = page
        write_kept(kept, state, outcome.as_dict())
        return outcome

    def _page(self, cluster: str, suffix: str) -> str:
        return joined(self.warehouse.root, "report", f"{file_name(cluster)}.{suffix}")

    def remember(self, ingested: list[Ingested]) -> None:
        """Store beside the warehouse what the next run asks first."""
        asked = [
            (
                known_files(done.cluster, done.recordings),
                self._asked(done.cluster),
                steps(done.cluster),
                kept_days(done.cluster),
            )
            for done in ingested
        ]
        Remembered(self.warehouse).keep([known_recordings(), empty_clusters(), *chain.from_iterable(asked)])

    def spans(self, cluster: str) -> list[Span]:
        """Return the spans of the cluster's files."""
        return [Span(*row) for row in Remembered(self.warehouse).rows(self._asked(cluster))]

    def _asked(self, cluster: str) -> Question:
        tables = {stem: (kind.table, kind.time) for stem, kind in KINDS.items()}
        return spans(cluster, self.settings.replay.lookback_minutes, tables)


def load_expectations() -> None:
    """Import Great Expectations, which takes seconds, while Java starts and tasks run in other processes."""

    def load() -> None:
        with suppress(Exception):  # validate imports it again, and reports the error
            import_module("mqreplay.quality.run")

    Thread(target=load, daemon=True).start()


def run(
    step: str,
    root: str,
    settings: Settings,
    progress: Progress,
    *,
    recordings: list[str] | None = None,
    cluster: str | None = None,
    engine: str = "spark",
    catalog: Catalog | None = None,
) -> list[Outcome]:
    """Run ``step`` (one of STEPS, or nightly for all) under the warehouse's lock, on one of ENGINES.

    With ``catalog``, the run registers the tables there at its end. Return an outcome for each cluster. Raises
    InputError, WarehouseLocked and the other MqreplayErrors.
    """
    if catalog is not None:
        catalog.check_engine(engine)
    use_settings(settings)
    # Report an unreadable recording before the warehouse is made.
    root = folder(root, "warehouse")
    check_text(cluster)
    check_folders(root, recordings or [])
    listings = begin_listings(recordings or [], settings.ingest.follow_links)
    with (
        warehouse_lock(root, settings.storage.lease_s, progress) as lock,
        running_engine(engine, f"mqreplay {step}", settings, lock, progress) as running,
    ):
        night = Night(running, root, settings, progress)
        night.journal.recover(progress)
        if step in ("nightly", "ingest"):
            begin = load_expectations if step == "nightly" else lambda: None
            with Ticker(progress, lambda _: f"listing and comparing files: {running.progress()}"):
                found = KnownDigests(root, running).of_recordings(finish_listings(listings, running))
            ingested = night.ingest(found, cluster, begin)
            clusters = [done.cluster for done in ingested if done.files]
        else:
            clusters = night.clusters(cluster)
        if step in ("nightly", "ingest", "replay"):
            night.forget_empty_clusters()
        for name in clusters:
            for one in STEPS[1:] if step == "nightly" else [step]:
                if one in ("replay", "validate"):
                    getattr(night, one)(name)
        if step == "nightly":
            night.remember([done for done in ingested if done.files])
        if catalog is not None:
            catalog.register(running, night.warehouse, progress)
        return [
            night.report(name) if step in ("nightly", "report") else outcome_of(night.warehouse, name)
            for name in clusters
        ]
