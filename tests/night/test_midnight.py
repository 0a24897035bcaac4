"""A night over midnight: the same result from one recording or two, together or one after the other."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re

import pytest

from conftest import SAMPLE
from mqreplay.answers.outcome import outcome_of
from mqreplay.lake.warehouse import Warehouse
from mqreplay.machine.places import conf_dir
from mqreplay.settings import load_settings
from night.cut import cut, first_instant
from night.later import midnight_after, moved
from tests_shared import run

GROUPS = {"mixalg-group", "mixsub-group", "crash-group", "reset-group"}
# Seconds of the recording, and of the cut: two conflicts and a kill -9 lie around midnight.
SINCE, UNTIL, MIDNIGHT = 500, 740, 110
LATER = 158  # by then both have gone on for longer than the lookback
# Less than the recording before midnight: what stood still for longer is known by what was carried over.
LOOKBACK_MINUTES = 1
TABLES = ("allocation", "pull_route", "queue_owner", "queue_progress", "failover_exposure", "offset_continuity")
TABLES += ("listed_route", "rebalance_step")
OWN = ("cluster", "record_id", "source_digest")  # of the file that a row was in
BEGUN = re.compile(r".*: replaying (\d{4}-\d\d-\d\d)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("midnight")


@pytest.fixture(scope="module")
def plain(folder):
    """The minutes as they were recorded."""
    began = first_instant(SAMPLE / "orders-4.9.7")
    return cut(SAMPLE / "orders-4.9.7", folder / "plain", GROUPS, began + SINCE * 1000, began + UNTIL * 1000)


@pytest.fixture(scope="module")
def judged(folder):
    """Ingests and replays recordings, a run for each; gives the warehouse and the days that were replayed."""
    settings = load_settings(str(conf_dir() / "sample.toml"))
    near = dataclasses.replace(settings.replay, lookback_minutes=LOOKBACK_MINUTES)
    settings = dataclasses.replace(settings, replay=near)

    def judge(name, *recordings):
        root = str(folder / f"{name}-warehouse")
        said = []
        for recording in recordings:
            run("ingest", root, settings, said.append, recordings=[str(recording)])
            run("replay", root, settings, said.append)
        # A slow machine says of each how far it has come, too.
        return Warehouse(root), [day[1] for line in said if (day := BEGUN.fullmatch(line))]

    return judge


@pytest.fixture(scope="module")
def over(plain, folder, judged):
    """The minutes moved over midnight, in one recording."""
    by_ms, _ = midnight_after(plain, MIDNIGHT)
    return judged("over", moved(plain, folder / "over", by_ms))


@pytest.fixture(scope="module")
def two(plain, over, folder, judged):
    """The same in two recordings, the second read when the first day was replayed."""
    _, midnight = midnight_after(plain, MIDNIGHT)
    before = cut(folder / "over", folder / "before", to_ms=midnight - 1)
    after = cut(folder / "over", folder / "after", from_ms=midnight)
    return judged("two", before, after)


def told(warehouse):
    """The findings as a user sees them, but for their ids; instants come last."""
    found = outcome_of(warehouse, "DefaultCluster").findings
    kinds = {f["finding_id"]: f["kind"] for f in found}
    names = ("kind", "severity", "consumer_group", "topic", "broker_name", "queue_id", "client_id")
    rows = [
        (*(f[n] for n in names), kinds.get(f["follows_from"]), f["summary"], f["from_ts"], f["to_ts"]) for f in found
    ]
    return sorted(rows, key=str)


@pytest.mark.long
def test_one_recording_or_two_make_no_difference(over, two):
    assert told(over[0]) == told(two[0])
    for name in TABLES:
        mine, theirs = (w.read(f"gold.{name}").drop(OWN, strict=False).collect() for w, _ in (over, two))
        assert sorted(map(str, mine.rows())) == sorted(map(str, theirs.rows())), name
        assert not mine.is_empty()


@pytest.mark.long
def test_a_day_is_replayed_once(two):
    days = two[1]
    assert len(days) == 2
    assert len(set(days)) == 2, "the second recording has a brokers.json too: it says nothing of the day before"


@pytest.fixture(scope="module")
def whole(plain, judged):
    return told(judged("plain", plain)[0])


@pytest.mark.first_case
@pytest.mark.parametrize("midnight_s", [MIDNIGHT, LATER])
def test_what_goes_on_over_midnight_is_told_whole_and_nothing_else(plain, whole, folder, judged, midnight_s):
    by_ms, _ = midnight_after(plain, midnight_s)
    name = f"after-{midnight_s}"
    cut_in_two = told(judged(name, moved(plain, folder / name, by_ms))[0])
    assert {row[0] for row in whole} >= {"strategy_conflict", "subscription_conflict", "consumer_lost", "stuck_queue"}
    assert sorted(map(str, (row[:8] for row in cut_in_two))) == sorted(map(str, (row[:8] for row in whole)))
    by = dt.timedelta(milliseconds=by_ms)
    for mine, theirs in zip(cut_in_two, whole, strict=True):
        for place in (-2, -1):
            late = dt.datetime.fromisoformat(mine[place]) - dt.datetime.fromisoformat(theirs[place])
            # Of several queues that advance again one after the other, each day may know another as the last.
            assert abs(late - by) <= dt.timedelta(seconds=2), (mine, theirs)
