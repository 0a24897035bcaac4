"""The settings of a night give the night, on every recording of tests/data; the samples are in test_what_if.py."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from mqreplay.decisions.slave_suggestion import SKEWED
from mqreplay.decisions.suppositions import (
    RATIO,
    SLAVE_READ,
    BrokerSetting,
    GroupConsumers,
    GroupStrategy,
    Supposition,
)
from mqreplay.engines.local import LocalEngine
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.scratch import scratch
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import Recorded, recorded
from mqreplay.settings import load_settings
from mqreplay.suppose.what_if import Prediction, predict
from night.cut import cut, shifted
from night.made_nights import CAPTURES, DATA, judged_night
from tests_shared import SAMPLE, run

SETTINGS = load_settings()
SETTING_COLUMNS = {RATIO: "access_message_in_memory_max_ratio", SLAVE_READ: "slave_read_enable"}
# Shares and answers that are decided again with the same result. Recordings of polls have few shares, and no answers.
UNCHANGED = {
    "conflicts-5.3.3": (346, 2947),
    "consumers-4.9.7": (73, 11785),
    "consumers-5.3.3": (52, 11720),
    "controller550": (5, 0),
    "kinds550": (27, 0),
    "outages-5.3.3": (281, 1726),
    "polled-5.3.3": (9, 0),
    "polled-resets-5.3.3": (19, 0),
    "pop533-proxy": (25, 0),
    "quiet-4.9.7": (244, 1231),
    "quiet-5.3.3": (175, 11716),
    "quiet-joins-5.3.3": (203, 3198),
    "ratios-5.3.3": (235, 2293),
    "refusals-4.9.7": (23, 4212),
    "refusals-5.3.3": (23, 3898),
    "resets-4.9.7": (630, 2920),
    "resets-5.3.3": (114, 2542),
    "resets-circle-4.9.7": (632, 3220),
    "rocks550": (5, 0),
    "unregistered533": (0, 0),
}
LONG = (  # the slowest of those that have a like
    *("conflicts-5.3.3", "consumers-5.3.3", "polled-5.3.3"),
    *("quiet-5.3.3", "refusals-5.3.3", "resets-circle-4.9.7"),
)


def replayed(recording: Path, root: Path) -> Recorded:
    for step in ("ingest", "replay"):
        run(step, str(root), SETTINGS, lambda what: None, recordings=[str(recording)])
    return recorded(Warehouse(str(root)), None)


def judged(night: Recorded, name: str) -> pl.DataFrame:
    day = night.judged_days()[-1]
    return night.warehouse.read(name, RowFilter(night.cluster, days=frozenset({day}))).collect()


def as_it_was(night: Recorded) -> list[Supposition]:
    """Return the members, the strategies and the brokers' settings of a night as suppositions."""
    shares = judged(night, "gold.allocation")
    same: list[Supposition] = [GroupConsumers(group, 0) for group in shares["consumer_group"].unique().sort()]
    each = shares.drop_nulls("strategy").group_by("consumer_group").agg(pl.col("strategy").unique())
    same += [GroupStrategy(group, names[0]) for group, names in each.rows() if len(names) == 1]
    brokers = night.warehouse.read("silver.broker", RowFilter(night.cluster)).collect()
    for name, column in SETTING_COLUMNS.items():
        values = brokers.group_by("broker_name", "broker_id").agg(pl.col(column).drop_nulls().unique())
        known = [(broker, number, of_broker[0]) for broker, number, of_broker in values.rows() if len(of_broker) == 1]
        same += [BrokerSetting(name, str(value).lower(), broker, number) for broker, number, value in known]
        assert known
    return same


def predicted(night: Recorded) -> Prediction:
    with LocalEngine(scratch().folder, 1) as engine:
        return predict(night.warehouse, engine, night.cluster, night.judged_days()[-1], SETTINGS, as_it_was(night))


def assert_same(night: Recorded, found: Prediction) -> tuple[int, int]:
    """Compare a prediction with its night; return how many shares and answers are unchanged."""
    shares, answers = judged(night, "gold.allocation"), judged(night, "gold.slave_suggestion")
    outcomes = dict(found.decided.group_by("outcome").agg(pl.col("rebalances").sum()).rows())
    assert outcomes.get("changed", 0) == 0
    assert outcomes.get("undetermined", 0) == shares["expected"].is_null().sum()
    assert set(found.owners["change"]) <= {"kept", "unknown"}
    pulls = found.pulls.select(pl.sum("pulls", "unchanged", "changed", "undetermined")).row(0, named=True)
    assert (pulls["pulls"], pulls["changed"]) == (len(answers), 0)
    assert pulls["undetermined"] == (answers["judgement"] == "undetermined").sum()
    return outcomes.get("unchanged", 0), pulls["unchanged"]


def test_every_recording_is_here() -> None:
    archives = {path.name.removesuffix(".tar.xz") for path in DATA.glob("*.tar.xz")}
    assert set(UNCHANGED) == {name for name in archives if not name.startswith(CAPTURES)}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in LONG else []) for name in UNCHANGED]
)
def test_the_settings_of_a_night_give_the_night(name: str) -> None:
    night = recorded(Warehouse(judged_night(name).root), None)
    assert assert_same(night, predicted(night)) == UNCHANGED[name]


# A client of reset-group, whose clock is an hour ahead, for seven minutes of orders-4.9.7.
CLIENT, HOUR_MS = "10.20.10.1@7316#2543692467679", 3_600_000
BEGAN_MS, END_MS = 1795228767352 + 290_000, 1795228767352 + 715_000


@pytest.fixture(scope="module")
def wrong_clock(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder, change = tmp_path_factory.mktemp("wrong_clock"), shifted(CLIENT, HOUR_MS)
    recording = cut(SAMPLE / "orders-4.9.7", folder / "recording", {"reset-group"}, BEGAN_MS, END_MS, change=change)
    return replayed(recording, folder / "warehouse")


@pytest.mark.long
def test_a_wrong_clock_leaves_open_what_it_left_open_in_the_night(wrong_clock: Recorded) -> None:
    assert (judged(wrong_clock, "gold.slave_suggestion")["reason"] == SKEWED).sum() > 100
    assert assert_same(wrong_clock, predicted(wrong_clock))[1] > 100


def test_lists_by_a_wrong_clock_are_not_those_of_an_instant(wrong_clock: Recorded) -> None:
    """The client left before another one was the only member, but says that it was there an hour later."""
    shares = judged(wrong_clock, "gold.allocation").filter(pl.col("topic") == "pay-topic").sort("rebalance_ts")
    assert (shares["client_id"][-1], shares["cid_all"].list.len()[-1]) == (CLIENT, 2)
    with LocalEngine(scratch().folder, 1) as engine:
        night, same = wrong_clock, [GroupConsumers("reset-group", 0)]
        found = predict(night.warehouse, engine, night.cluster, night.judged_days()[-1], SETTINGS, same, night.last)
    (clients,) = found.lists.filter(pl.col("topic") == "pay-topic")["cid_all"].to_list()
    assert clients == ["10.20.10.1@7316#3038955410808"]
