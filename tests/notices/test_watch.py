"""Recorded nights, watched minute by minute: their findings open in time, and no other finding opens."""

from __future__ import annotations

import datetime as dt
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from mqreplay.answers.open_findings import read_findings
from mqreplay.engines.local import LocalEngine
from mqreplay.findings.every import KINDS
from mqreplay.findings.opened import AGREED, FIRST_EVENTS
from mqreplay.findings.shape import PLACE
from mqreplay.lake.warehouse import Warehouse
from mqreplay.notices.watch import Watch
from mqreplay.settings import load_settings
from mqreplay.settings.sections import WatchSettings
from night.feed import MINUTE_MS, Feed, at
from tests_shared import SAMPLE, rows_at, run, unpack

DATA = Path(__file__).parents[1] / "data"


def recording(name: str, folder: Path) -> Path:
    if (SAMPLE / name).is_dir():
        return SAMPLE / name
    with tarfile.open(DATA / f"{name}.tar.xz") as archive:
        unpack(archive, folder / "recorded")
    return folder / "recorded"


def watched(source: Path, folder: Path, first_s: int, settings=None):
    """Return each round of the recording, which grows by a minute before each; the first part has ``first_s``."""
    feed = Feed(source, folder / "live")
    begin, end = feed.reach
    now = begin + first_s * 1000
    with LocalEngine(folder, processes=1) as engine:
        watching = Watch(
            str(folder / "warehouse"),
            settings or load_settings(),
            [str(folder / "live")],
            "c",
            engine,
            folder / "watch",
            60,
            lambda text: None,
        )
        rounds = []
        while True:
            feed.until(now)
            rounds.append(watching.round(at(now)))
            if now >= end:
                return rounds
            # Two rounds must agree about what is less than certain: the last ones are not too near each other.
            later = now + MINUTE_MS
            now = end - AGREED_MS if end - AGREED_MS < later < end and now < end - AGREED_MS else min(later, end)


def agree(row, one) -> bool:
    """Return whether a finding of the night and one of watch have one kind, and places that do not contradict."""
    pairs = [(row[name], getattr(one, name)) for name in PLACE]
    return row["kind"] == one.kind and all(None in pair or pair[0] == pair[1] for pair in pairs)


def meets(row, one) -> bool:
    """Return whether both last at the same time."""
    begin, end = (row[name].replace(tzinfo=dt.UTC) for name in ("from_ts", "to_ts"))
    return one.opened_ts <= end and one.last_seen_ts >= begin


AGREED_MS = int(AGREED.total_seconds() * 1000)
LONG = (
    "bulk-5.3.3",
    "conflicts-5.3.3",
    "orders-4.9.7",
    "outages-5.3.3",
    "polled-resets-5.3.3",
    "ratios-5.3.3",
    "resets-4.9.7",
    "resets-5.3.3",
    "resets-circle-4.9.7",
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "first_s"),
    [
        ("polled-5.3.3", 60),
        *(pytest.param(name, first_s, marks=pytest.mark.long) for name in LONG for first_s in (20, 40)),
    ],
)
def test_watch_opens_the_findings_of_the_night_and_no_other(tmp_path, name, first_s):
    source = recording(name, tmp_path)
    settings = load_settings()
    # The longest night, of 18 minutes, is longer than this window.
    rounds = watched(source, tmp_path, first_s, replace(settings, watch=WatchSettings(lookback_minutes=15)))
    opened = [
        change.finding
        for done in rounds
        for one in done.clusters
        for change in one.changes
        if change.what in FIRST_EVENTS
    ]
    for step in ("ingest", "replay"):
        run(step, str(tmp_path / "whole"), settings, lambda text: None, recordings=[str(source)], cluster="c")
    night = [f for f in rows_at(tmp_path / "whole", "gold.finding") if KINDS[f["kind"]].ends_after is not None]
    assert night
    assert [f for f in night if not any(agree(f, one) for one in opened)] == [], "missed"
    assert [one for one in opened if not any(agree(f, one) for f in night)] == [], "false alarms"
    # What was written last says the same as the night about the time of each finding.
    kept = read_findings(Warehouse(str(tmp_path / "warehouse")), "c")
    assert [f for f in night if not any(agree(f, one) and meets(f, one) for one in kept)] == [], "at another time"
    assert not [one for one in kept if "later evidence" in (one.closed_reason or "")]
    named = {
        issue["issue"] for done in rounds for one in done.clusters for of in one.known_issues.values() for issue in of
    }
    ids = {row["finding_id"] for row in night}
    of_night = {row["issue"] for row in rows_at(tmp_path / "whole", "gold.known_issue") if row["finding_id"] in ids}
    assert named <= of_night
    assert named or name != "bulk-5.3.3"


@pytest.mark.long
@pytest.mark.parametrize("name", ["quiet-joins-5.3.3", pytest.param("quiet-5.3.3", marks=pytest.mark.long)])
def test_a_quiet_night_opens_nothing(tmp_path, name):
    rounds = watched(recording(name, tmp_path), tmp_path, 40)
    assert len(rounds) > 3
    assert [change for done in rounds for one in done.clusters for change in one.changes] == []
