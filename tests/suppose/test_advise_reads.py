"""Which setting of brokers advise names for reads from a slave, by what whatif answers for each."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.decisions.suppositions import BrokerSetting
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import recorded
from mqreplay.suppose.advise_reads import Kept, kept_on_master

COUNTS = ("to_slave", "to_slave_min", "to_slave_max")


def kept(night: Any, answers: dict[str, tuple[int, int, int]]) -> tuple[Kept | None, list[str]]:
    """Return what is named if whatif has these answers for the values of settings, and which values were tried."""
    tried = []

    def predict(setting: BrokerSetting) -> pl.DataFrame:
        tried.append(setting.value)
        rows = [answers[setting.value]] if setting.value in answers else []
        return pl.DataFrame(rows, dict.fromkeys(COUNTS, pl.Int64), orient="row")

    sample = recorded(Warehouse(night.root), "DefaultCluster")
    return kept_on_master(sample, sample.last.date(), "bulk-group", "broker-a", predict), tried


@pytest.mark.parametrize(
    ("answers", "tried", "text"),
    [
        ({"2": (9, 0, 0)}, ["2"], "MaxRatio=2 on broker-a would have kept it on the master: 0 answers"),
        (
            {"2": (9, 3, 3), "12": (9, 0, 0)},
            ["2", "12"],
            "MaxRatio=12 on broker-a would have kept it on the master: 0 answers would name a slave, 9 did",
        ),
        (
            {"2": (9, 3, 3), "12": (9, 0, 1), "false": (9, 0, 0)},
            ["2", "12", "false"],
            "slaveReadEnable=false on broker-a would have kept it on the master: 0 answers",
        ),
        (
            {"2": (9, 3, 3), "12": (9, 0, 1), "false": (9, 2, 4)},
            ["2", "12", "false"],
            "slaveReadEnable=false on broker-a is not shown to keep it on the master: 2 to 4 answers",
        ),
    ],
)
def test_the_first_setting_that_keeps_the_group_on_the_master_is_named(night, answers, tried, text):
    found, values = kept(night, answers)
    assert values == tried
    assert found is not None
    assert text in found.text


def test_without_an_answer_that_can_be_decided_again_nothing_is_named(night):
    assert kept(night, {}) == (None, ["2", "12", "false"])
