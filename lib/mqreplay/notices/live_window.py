"""The last minutes of recordings in tables of their own, and the findings in them.

The tables are temporary. They get each round's new rows, and are made again from the files of the window when they hold
twice its time: the cost of a round depends on the window, not on the length of the recording.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import shutil
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from mqreplay.engines.engine import Engine
from mqreplay.engines.file_passes import FilePassRunner
from mqreplay.engines.rows import file_rows
from mqreplay.ingest.brokers import NAMING, cluster_name, is_named
from mqreplay.ingest.recorded_files import RecordedFiles
from mqreplay.ingest.recording import RECORDER_KINDS, Digested, RecordedFile
from mqreplay.ingest.run import ingest_recordings
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import WATCH, Recorded
from mqreplay.night.nightly import run
from mqreplay.night.replay_day import recorded_of
from mqreplay.night.steps import TABLES_OF_KINDS, Span, last_recorded, spans
from mqreplay.notices.recent import Recent
from mqreplay.replay.day import Window
from mqreplay.replay.day_findings import DayFindings
from mqreplay.replay.days_read import days_read
from mqreplay.replay.plan import Replay
from mqreplay.settings import Settings

Progress = Callable[[str], None]
GroupTopics = Collection[tuple[str, str]]
REPORTED = dt.timedelta(minutes=10)  # findings whose evidence ended earlier are not looked for again
PAUSE = dt.timedelta(seconds=60)  # a longer time without a line of the recorder is a gap in the recording


@dataclass(frozen=True)
class Judged:
    """The findings of one cluster's window, and the time of the window.

    ``recorded_until`` is the last instant by the recorder's clock, ``complete_since`` that since which no file is
    missing, ``reported_from`` that from which findings count.
    """

    cluster: str
    found: DayFindings
    recorded_until: dt.datetime
    complete_since: dt.datetime
    reported_from: dt.datetime


class LiveWindow:
    """The window of some recordings. ``folder`` is a temporary folder of its own."""

    def __init__(
        self,
        folder: Path,
        recordings: Iterable[str],
        cluster: str | None,
        settings: Settings,
        engine: Engine,
        say: Progress,
    ) -> None:
        """Take the recordings' folders, the cluster's name if the user sets it, and ``say``, which gets notes."""
        self._folder, self._cluster, self._settings = folder, cluster, settings
        self._engine, self._say = engine, say
        self._lookback = dt.timedelta(minutes=settings.watch.lookback_minutes)
        links = settings.ingest.follow_links
        self._recent = [Recent(r, folder / f"recording-{i}", links, say) for i, r in enumerate(recordings)]
        self._made: dt.datetime | None = None
        self._number = 0
        self._clusters: set[str] = set()
        self._names: dict[str, str] = {}  # clusters by folder
        self._guessed: set[str] = set()  # folders that no file has named yet
        self.lines = self.bytes_read = 0  # of the last round

    def judge(self, now: dt.datetime, stopped: Mapping[str, GroupTopics]) -> list[Judged]:
        """Read what is new at the instant ``now``, and judge the window of each cluster.

        ``stopped`` are the groups and topics of each cluster that have not advanced since earlier rounds.
        """
        now_ms, since_ms = (int(ts.timestamp() * 1000) for ts in (now, now - self._lookback))
        new = {str(recent.folder): recent.read(since_ms, now_ms) for recent in self._recent}
        self.lines = sum(recent.lines for recent in self._recent)
        self.bytes_read = sum(recent.bytes_read for recent in self._recent)
        if self._made is None or now - self._made >= self._lookback or self._are_named(new):
            new = {str(recent.folder): recent.forget(since_ms) for recent in self._recent}
            self._begin(now)
        if any(new.values()):
            self._ingest({folder: files for folder, files in new.items() if files})
        made = [self._judged(name, stopped.get(name, ())) for name in sorted(self._clusters)]
        return [judged for judged in made if judged is not None]

    def publish(self, root: str) -> None:
        """Make tables and pages of the window in the folder WATCH of a warehouse, in place of the earlier ones."""
        fresh = self._folder / "published"
        shutil.rmtree(fresh, ignore_errors=True)
        folders: dict[str, list[str]] = defaultdict(list)
        for recent in self._recent:
            if recent.parts and (name := self._names.get(str(recent.folder))) is not None:
                folders[name].append(str(recent.folder))
        if not folders:
            return
        root_of_window, settings = str(fresh), self._settings
        for name, parts in folders.items():
            run("ingest", root_of_window, settings, lambda _: None, recordings=parts, cluster=name, engine="local")
        for step in ("replay", "report"):
            run(step, root_of_window, settings, lambda _: None, engine="local")
        target = Path(root, WATCH)
        shutil.rmtree(target, ignore_errors=True)
        shutil.move(fresh, target)
        shutil.copytree(target / "report", Path(root, "report", WATCH), dirs_exist_ok=True)

    @property
    def names(self) -> set[str]:
        """Return the names of the recordings' clusters."""
        return set(self._names.values())

    def recorded(self, judged: Judged) -> Recorded:
        """Return the cluster's rows of the window, up to its end."""
        return Recorded(self._warehouse, judged.cluster, judged.complete_since, judged.recorded_until)

    def _begin(self, now: dt.datetime) -> None:
        shutil.rmtree(self._folder / f"tables-{self._number}", ignore_errors=True)
        self._number += 1
        self._made = now
        self._warehouse = Warehouse(str(self._folder / f"tables-{self._number}"))
        self._clusters.clear()

    def _are_named(self, new: Mapping[str, list[Digested]]) -> bool:
        """Forget the guessed names of recordings that new files name; return whether there are any."""
        named = {folder for folder in self._guessed if is_named(_naming(new[folder]))}
        self._guessed -= named
        for folder in named:
            del self._names[folder]
        return bool(named)

    def _ingest(self, new: Mapping[str, list[Digested]]) -> None:
        # A round gives only its new files: the rows of earlier ones stay.
        kept = dataclasses.replace(self._settings.ingest, forget_missing_files=False)
        named: dict[str, dict[str, RecordedFiles]] = defaultdict(dict)
        for folder, files in new.items():
            # A later round may have no file that names the cluster.
            if folder not in self._names:
                naming = _naming(files)
                self._names[folder] = self._cluster or cluster_name(folder, naming, [], self._say)
                if self._cluster is None and not is_named(naming):
                    self._guessed.add(folder)
            named[self._names[folder]][folder] = RecordedFiles.of(files)
        for name, some in named.items():
            ingest_recordings(self._warehouse, self._engine, some, name, kept, lambda _: None)
            self._clusters.add(name)

    def _judged(self, cluster: str, stopped: GroupTopics) -> Judged | None:
        found = [Span(*row) for row in spans(cluster, 0, TABLES_OF_KINDS).read(self._warehouse)]
        last = last_recorded(found)
        if last is None:
            return None
        until = last + dt.timedelta(milliseconds=1)
        since = until - self._lookback
        files = file_rows(self._warehouse, cluster, days_read(self._warehouse, cluster, last.date(), since))
        window = Window(cluster, last.date(), since, False, max(since, until - REPORTED), until)
        runner = FilePassRunner(self._engine, files, None)
        recorded = recorded_of(found, window)
        replay = Replay(window, self._settings, recorded, runner, lambda _: None, stopped)
        return Judged(cluster, replay.findings(), last, self._complete_since(cluster, since), window.begin)

    def _complete_since(self, cluster: str, since: dt.datetime) -> dt.datetime:
        """Return the end of the last pause of the recorder, or of all files where none is the recorder's."""
        is_read = pl.col("status") == "read"
        wanted = RowFilter(cluster, wanted=is_read & (pl.col("last_ts") >= since))
        files = self._warehouse.read("bronze.source_file", wanted)
        spans = files.select("kind", "first_ts", "last_ts").sort("first_ts").collect()
        of_recorder = spans.filter(pl.col("kind").is_in(RECORDER_KINDS))
        start, reached = since, since
        for _, first, last in (of_recorder if len(of_recorder) else spans).iter_rows():
            if first - reached > PAUSE:
                start = first
            reached = max(reached, last)
        return start


def _naming(files: Iterable[Digested]) -> list[RecordedFile]:
    return [file for file, _ in files if file.kind in NAMING]
