"""The default instant of `at`, `ready` and `whatif`, the last recorded one: who consumes then still consumes."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import polars as pl
import pytest

from made_warehouse import made_warehouse
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import Recorded, recorded
from mqreplay.moment.queues import members_at, owners_at
from night.made_nights import CAPTURES, DATA, judged_night

DAY = dt.date(2026, 11, 21)
LAST = dt.datetime(2026, 11, 21, 2, 30, tzinfo=dt.UTC)
ARCHIVES = sorted(
    path.name.removesuffix(".tar.xz") for path in DATA.glob("*.tar.xz") if not path.name.startswith(CAPTURES)
)
QUICK = ("polled-resets-5.3.3", "unregistered533")


def ago(seconds: float) -> dt.datetime:
    return LAST - dt.timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("ended", "seconds", "holds"),
    [("silent", 0, True), ("silent", 29, True), ("silent", 61, False), ("unregistered", 29, False)],
)
def test_a_client_that_goes_on_holds_its_queues_at_the_end(
    tmp_path: Path, ended: str, seconds: float, holds: bool
) -> None:
    session = {"consumer_group": "g", "client_id": "a", "day": DAY, "from_ts": ago(600), "to_ts": ago(seconds)}
    queue = {"topic": "t", "broker_name": "b", "queue_id": 0, "source": "running_info"}
    tables = {"gold.member": [session | {"ended": ended}], "gold.queue_owner": [session | queue]}
    night = Recorded(made_warehouse(tmp_path, tables), "c", ago(600), LAST)
    assert members_at(night, LAST).height == holds
    assert owners_at(night, LAST).collect().height == holds
    assert owners_at(night, ago(seconds + 1)).collect().height == 1


@pytest.mark.first_case
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else (pytest.mark.long,)) for name in ARCHIVES]
)
def test_no_client_leaves_by_the_end_of_the_recording(name: str) -> None:
    """Nobody held a queue 20 s before who does not hold it at the end, but for clients that unregistered."""
    night = recorded(Warehouse(judged_night(name).root), None)
    before = night.last - dt.timedelta(seconds=20)
    left = night.begun("gold.member", night.last).filter((pl.col("ended") != "silent") & (pl.col("to_ts") >= before))
    gone = left.select("consumer_group", "client_id").collect().rows()
    stay = _members(night, before) - set(gone)
    assert stay <= _members(night, night.last)
    owned = {name: _owned(night, at) for name, at in (("before", before), ("last", night.last))}
    kept = {queue for queue in owned["before"] if (queue[0], queue[-1]) in stay}
    assert len(kept & owned["last"]) >= 0.9 * len(kept), "a rebalance may move some"


def _members(night: Recorded, at: dt.datetime) -> set[tuple[object, ...]]:
    return set(members_at(night, at).select("consumer_group", "client_id").rows())


def _owned(night: Recorded, at: dt.datetime) -> set[tuple[object, ...]]:
    rows = owners_at(night, at).collect().explode("owners")
    return set(rows.select("consumer_group", "topic", "broker_name", "queue_id", "owners").rows())
