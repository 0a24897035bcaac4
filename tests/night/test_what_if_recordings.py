"""The settings of a night give the night, on recordings of real clusters other than the samples."""

from __future__ import annotations

import tarfile
from pathlib import Path

import polars as pl
import pytest

from mqreplay.decisions.suppositions import RATIO, BrokerSetting, GroupConsumers, GroupStrategy, Supposition
from mqreplay.engines.local import LocalEngine
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.scratch import scratch
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.compare import days_of
from mqreplay.moment.instant import Recorded, recorded
from mqreplay.night.what_if import Prediction, predict
from mqreplay.settings import load_settings
from tests_shared import run, unpack

DATA = Path(__file__).parents[1] / "data"
SETTINGS = load_settings()
NAMES = ("quiet-5.3.3", "consumers-4.9.7", "resets-circle-4.9.7", "ratios-5.3.3")


@pytest.fixture(scope="module", params=NAMES)
def recording(request, tmp_path_factory) -> Recorded:
    folder = tmp_path_factory.mktemp(request.param)
    with tarfile.open(DATA / f"{request.param}.tar.xz") as archive:
        unpack(archive, folder / "recording")
    root = str(folder / "warehouse")
    for step in ("ingest", "replay"):
        run(step, root, SETTINGS, lambda what: None, recordings=[str(folder / "recording")])
    return recorded(Warehouse(root), None)


def predicted(night: Recorded, supposed: list[Supposition]) -> Prediction:
    with LocalEngine(scratch().folder, 1) as engine:
        return predict(night.warehouse, engine, night.cluster, days_of(night)[-1], SETTINGS, supposed)


def judged(night: Recorded, name: str) -> pl.DataFrame:
    day = days_of(night)[-1]
    return night.warehouse.read(name, RowFilter(night.cluster, days=frozenset({day}))).collect()


def test_the_members_and_strategies_of_the_night_give_its_shares(recording):
    shares = judged(recording, "gold.allocation")
    groups = sorted(shares["consumer_group"].unique().to_list())
    supposed: list[Supposition] = [GroupConsumers(group, 0) for group in groups]
    each = shares.drop_nulls("strategy").group_by("consumer_group").agg(pl.col("strategy").unique())
    supposed += [GroupStrategy(group, names[0]) for group, names in each.rows() if len(names) == 1]
    found = predicted(recording, supposed)
    assert found.decided.filter(pl.col("outcome") == "changed").is_empty()
    assert set(found.owners["change"]) <= {"kept", "unknown"}


def test_the_ratios_of_the_night_give_its_suggestions(recording):
    silver = recording.warehouse.read("silver.broker", RowFilter(recording.cluster)).collect()
    ratios = silver.group_by("broker_name", "broker_id").agg(
        pl.col("access_message_in_memory_max_ratio").drop_nulls().unique()
    )
    same = [
        BrokerSetting(RATIO, str(each[0]), name, broker_id) for name, broker_id, each in ratios.rows() if len(each) == 1
    ]
    answers = judged(recording, "gold.slave_suggestion")
    assert same
    assert len(answers) > 0
    assert predicted(recording, list(same)).pulls["changed"].sum() == 0
