"""Watch a cluster: judge the last minutes of a running recording each minute, and run the night at midnight.

A round needs the warehouse's lock only to write gold.open_finding, so other runs can take place at any time.
"""

from __future__ import annotations

import datetime as dt
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mqreplay.answers.figures import Sample, lag_figures, watch_figures
from mqreplay.answers.mutes import valid_mutes
from mqreplay.answers.open_findings import (
    WRITTEN_EVERY,
    read_findings,
    seconds_until_closed,
    without_old,
    write_findings,
)
from mqreplay.answers.outcome import Outcome
from mqreplay.engines.engine import Engine
from mqreplay.engines.local import LocalEngine
from mqreplay.findings.opened import FIRST_EVENTS, Change, Found, OpenFinding, Round, closed, follow, lagging
from mqreplay.lake.catalog import require_names
from mqreplay.lake.files import is_remote
from mqreplay.lake.local_folder import check_folders, folder
from mqreplay.lake.scratch import scratch
from mqreplay.lake.sql import check_text
from mqreplay.lake.storage import use_settings
from mqreplay.lake.warehouse import Warehouse
from mqreplay.machine.local_files import local_folder
from mqreplay.night.failures import Failure
from mqreplay.night.nightly import run
from mqreplay.night.recordings import matching_recordings
from mqreplay.notices.live_window import Judged, LiveWindow
from mqreplay.replay.day_findings import group_limits
from mqreplay.settings import Settings
from mqreplay.words.errors import InputError, MqreplayError, StoreError, WarehouseLocked

Say = Callable[[str], None]
PUBLISHED_EVERY = dt.timedelta(seconds=60)  # tables and pages of the last minutes, at most
SILENT_S = 120  # a recording without new lines for longer is silent
DAY_ENDS = dt.timedelta(minutes=2)  # after midnight; lines of the day may be written later


@dataclass(frozen=True)
class ClusterRound:
    """What a round found in one cluster. ``lag_s`` is the age of the recording's last line, in seconds.

    ``known_issues``: rows of gold.known_issue that can explain findings that are new in this round, by finding_id.
    """

    cluster: str
    changes: Sequence[Change]
    open_findings: int
    recorded_until: dt.datetime
    lag_s: float
    is_silent: bool
    figures: Sequence[Sample] = ()  # for Prometheus
    known_issues: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)


@dataclass(frozen=True)
class RoundDone:
    """A round: its number, the lines and bytes that it read, and the seconds that it took.

    ``ts`` is the instant at which its findings were known.
    """

    number: int
    ts: dt.datetime
    lines: int
    bytes_read: int
    seconds: float
    clusters: Sequence[ClusterRound]
    nights: Sequence[Outcome] = ()
    night_figures: Sequence[Sample] = ()  # of the nightly runs after this round


@dataclass
class _Known:
    """The findings of one cluster, and what of them is in the table."""

    findings: list[OpenFinding]
    written: list[OpenFinding]
    written_ts: dt.datetime
    recorded_until: dt.datetime
    day: dt.date  # the day whose nightly run comes next
    # The earliest has to agree if rounds come each 10 s.
    rounds: deque[Found] = field(default_factory=lambda: deque(maxlen=4))

    def must_write(self, now: dt.datetime) -> bool:
        """Return whether the table lacks a change, or is old."""
        if self.findings == self.written:
            return False
        return [_state(one) for one in self.findings] != [_state(one) for one in self.written] or (
            now - self.written_ts >= WRITTEN_EVERY
        )


@dataclass
class Watch:
    """The rounds on some recordings. ``folder`` is a temporary folder of its own; ``say`` gets notes.

    ``measures_lag``: the figures of each round have the lag of groups.
    """

    root: str
    settings: Settings
    recordings: Sequence[str]
    cluster: str | None
    engine: Engine
    folder: Path
    every_s: float
    say: Say
    measures_lag: bool = False
    _known: dict[str, _Known] = field(default_factory=dict)
    _rounds: int = 0
    _published: dt.datetime | None = None
    _has_changed: bool = False

    def __post_init__(self) -> None:
        self._warehouse = Warehouse(self.root)
        self._window = LiveWindow(self.folder, self.recordings, self.cluster, self.settings, self.engine, self.say)
        self._limits = seconds_until_closed(self.settings)

    def round(self, now: dt.datetime) -> RoundDone:
        """Judge the last minutes at the instant ``now``, and write what changed."""
        began = time.monotonic()
        self._rounds += 1
        stopped = {name: lagging(known.findings) for name, known in self._known.items()}
        judged = {one.cluster: one for one in self._window.judge(now, stopped)}
        left = [self._leave(name, now) for name in sorted({*self._known} - self._window.names)]
        names = sorted({*judged, *self._known} & self._window.names)
        done = [*(one for one in left if one.changes), *(self._follow(name, judged.get(name), now) for name in names)]
        ts = now + dt.timedelta(seconds=time.monotonic() - began)
        measured: list[Sample] = []
        nights = self._night_after_midnight(measured.extend)
        seconds = time.monotonic() - began
        lines, size = self._window.lines, self._window.bytes_read
        return RoundDone(self._rounds, ts, lines, size, seconds, done, nights, measured)

    def publish(self, done: RoundDone) -> None:
        """Make tables and pages of the last minutes: when findings have changed, or are five minutes old.

        That takes longer than a round, so other rounds come between.
        """
        self._has_changed |= any(one.changes for one in done.clusters)
        pause = max(PUBLISHED_EVERY, dt.timedelta(seconds=2 * self.every_s)) if self._has_changed else WRITTEN_EVERY
        if is_remote(self.root) or (self._published is not None and done.ts - self._published < pause):
            return
        self._published, self._has_changed = done.ts, False
        try:
            self._window.publish(self.root)
        except (MqreplayError, OSError) as error:
            self.say(f"the page of the last minutes is made later: {error}")

    def _follow(self, cluster: str, judged: Judged | None, now: dt.datetime) -> ClusterRound:
        known = self._known.get(cluster)
        if known is None:
            assert judged is not None
            findings = read_findings(self._warehouse, cluster)
            until = judged.recorded_until
            known = self._known[cluster] = _Known(findings, findings, now, until, until.date())
        last = known.recorded_until if judged is None else judged.recorded_until
        lag_s = (now - last).total_seconds()
        is_silent = lag_s > max(SILENT_S, 3 * self.every_s)
        if judged is None:
            at, rows = Round(last, last, last, is_silent=True), []
        else:
            at = Round(last, judged.complete_since, judged.reported_from, is_silent)
            rows = judged.found.findings.to_dicts()
        findings, changes = follow(known.findings, rows, at, self._limits, tuple(known.rounds))
        known.findings, known.recorded_until = without_old(findings, last), last
        if not is_silent:
            known.rounds.append((last, rows))
        if known.must_write(now):
            self._write(cluster, known, now)
        count = sum(one.is_open for one in known.findings)
        mutes = valid_mutes(Warehouse(self.root), cluster, now) if self.measures_lag else ()
        figures = watch_figures(cluster, known.findings, last, mutes)
        if judged is not None and self.measures_lag:
            figures += lag_figures(self._window.recorded(judged))
        issues = {} if judged is None else _issues_of_new(changes, judged.found.known_issues.to_dicts())
        return ClusterRound(cluster, changes, count, last, lag_s, is_silent, figures, issues)

    def _leave(self, cluster: str, now: dt.datetime) -> ClusterRound:
        """Close the findings of a cluster whose name was a guess."""
        known = self._known[cluster]
        last = known.recorded_until
        known.findings, changes = closed(known.findings, last, "its recording names another cluster now")
        if known.must_write(now):
            self._write(cluster, known, now)
        if not known.must_write(now):
            del self._known[cluster]
        return ClusterRound(cluster, changes, 0, last, (now - last).total_seconds(), is_silent=False)

    def _write(self, cluster: str, known: _Known, now: dt.datetime) -> None:
        try:
            write_findings(self._warehouse, cluster, known.findings)
        except WarehouseLocked:
            self.say(f"{cluster}: the warehouse is in use by another run; gold.open_finding is written later")
            return
        except StoreError as error:
            self.say(f"{cluster}: gold.open_finding is written later: {error}")
            return
        known.written, known.written_ts = list(known.findings), now

    def _night_after_midnight(self, measured: Callable[[list[Sample]], None]) -> list[Outcome]:
        """Run the night once the recording has gone past the end of a day; return its outcomes."""
        ended = [k for k in self._known.values() if k.recorded_until.date() > k.day and _is_past_midnight(k)]
        if not ended:
            return []
        self.say("a day has ended; running the night")
        recordings, failed = list(self.recordings), list[Failure]()
        try:
            outcomes = run(
                "nightly",
                self.root,
                self.settings,
                self.say,
                recordings=recordings,
                cluster=self.cluster,
                engine="local",
                failed=failed,
                measured=measured,
            )
            for failure in failed:
                self.say(f"{failure.what} {failure.name} failed: {failure.reason}")
        except WarehouseLocked:
            self.say("the warehouse is in use by another run; the next round tries again")
            return []
        except MqreplayError as error:
            self.say(f"the nightly run failed: {error}")
            outcomes = []
        for known in ended:
            known.day = known.recorded_until.date()
        return outcomes


def watch(
    root: str,
    settings: Settings,
    tell: Callable[[RoundDone], None],
    say: Say,
    *,
    recordings: Sequence[str],
    cluster: str | None = None,
    every_s: float = 60,
    measures_lag: bool = False,
    clock: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Run rounds every ``every_s`` seconds until KeyboardInterrupt. ``tell`` is called with each round.

    ``recordings`` may be patterns (recordings.py), which are looked up once.

    Raises InputError and the other MqreplayErrors.
    """
    check_text(cluster)
    use_settings(settings)
    group_limits(settings)
    folders = list(dict.fromkeys(path for pattern in recordings for path in matching_recordings(pattern)))
    check_folders(root, folders)
    local = [str(local_folder(path, "recording")) for path in folders]
    if not 10 <= every_s <= 600:
        raise InputError(f"--every {every_s:g}s is not 10s to 10m")
    root = folder(root, "warehouse")
    require_names(root, None)
    with LocalEngine(scratch().folder, settings.local.processes) as engine:
        own = scratch().folder / "watch"
        watching = Watch(root, settings, local, cluster, engine, own, every_s, say, measures_lag)
        while True:
            began = time.monotonic()
            done = watching.round(clock())
            tell(done)
            watching.publish(done)
            wait(max(0.0, every_s - (time.monotonic() - began)))


def _issues_of_new(
    changes: Iterable[Change], issues: Sequence[Mapping[str, Any]]
) -> dict[str, list[Mapping[str, Any]]]:
    new = {change.finding.finding_id for change in changes if change.what in FIRST_EVENTS}
    return {name: [issue for issue in issues if issue["finding_id"] == name] for name in sorted(new)}


def _is_past_midnight(known: _Known) -> bool:
    midnight = dt.datetime.combine(known.recorded_until.date(), dt.time(), dt.UTC)
    return known.recorded_until - midnight >= DAY_ENDS


def _state(one: OpenFinding) -> tuple[object, ...]:
    """Return what of a finding is written at once."""
    return one.finding_id, one.severity, one.place, one.closed_ts, one.undetermined_since
