"""Recorded nights, watched minute by minute: their findings open in time, and no other finding opens."""

from __future__ import annotations

import datetime as dt
import tarfile
from pathlib import Path

import pytest

from mqreplay.findings.every import KINDS
from mqreplay.findings.opened import OPENED
from mqreplay.findings.shape import PLACE
from mqreplay.night.watch import Watch
from mqreplay.run.local import LocalEngine
from mqreplay.settings import load_settings
from night.feed import Feed
from tests_shared import SAMPLE, rows_at, run, unpack

DATA = Path(__file__).parents[1] / "data"
MINUTE_MS = 60_000


def at(ms: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC)


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
        watch = Watch(
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
            rounds.append(watch.round(at(now)))
            if now >= end:
                return rounds
            now = min(now + MINUTE_MS, end)


def agree(one, other) -> bool:
    return one["kind"] == other["kind"] and all(None in (one[n], other[n]) or one[n] == other[n] for n in PLACE)


@pytest.mark.parametrize("first_s", [20, 60])
@pytest.mark.parametrize("name", ["bulk-5.3.3"])
def test_watch_opens_the_findings_of_the_night_and_no_other(tmp_path, name, first_s):
    source = recording(name, tmp_path)
    rounds = watched(source, tmp_path, first_s)
    changes = [change for done in rounds for one in done.clusters for change in one.changes]
    opened = [vars(change.finding) for change in changes if change.what == OPENED]
    for step in ("ingest", "replay"):
        run(step, str(tmp_path / "whole"), load_settings(), lambda text: None, recordings=[str(source)], cluster="c")
    night = [f for f in rows_at(tmp_path / "whole", "gold.finding") if KINDS[f["kind"]].ends_after is not None]
    assert night
    assert [f for f in night if not any(agree(f, one) for one in opened)] == [], "missed"
    assert [one for one in opened if not any(agree(f, one) for f in night)] == [], "false alarms"
