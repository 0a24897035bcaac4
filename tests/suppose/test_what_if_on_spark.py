"""What-if on Spark gives what it gives on this machine."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from mqreplay.decisions.suppositions import RATIO, BrokerSetting, GroupConsumers, GroupStrategy, TopicQueues
from mqreplay.engines.engine import Engine
from mqreplay.engines.local import LocalEngine
from mqreplay.engines.spark import SparkEngine
from mqreplay.lake.scratch import scratch
from mqreplay.lake.warehouse import Warehouse
from mqreplay.machine.places import conf_dir
from mqreplay.moment.instant import recorded
from mqreplay.settings import load_settings
from mqreplay.suppose.what_if import Prediction, predict

FRAMES = ("decided", "owners", "pulls", "members")


@pytest.mark.long
def test_both_engines_predict_the_same(spark, night):
    here = recorded(Warehouse(night.root), "DefaultCluster")
    (day,) = here.judged_days()
    supposed = [
        BrokerSetting(RATIO, "2"),
        GroupStrategy("order-group", "AVG_BY_CIRCLE"),
        GroupConsumers("pay-group", 1),
        TopicQueues("grow-topic", 4),
    ]

    def predicted(engine: Engine) -> Prediction:
        settings = load_settings(str(conf_dir() / "sample.toml"))
        return predict(here.warehouse, engine, here.cluster, day, settings, supposed)

    by_spark = predicted(SparkEngine(lambda small: spark))
    with LocalEngine(scratch().folder, 1) as local:
        by_local = predicted(local)
    for name in FRAMES:
        one, other = getattr(by_spark, name), getattr(by_local, name)
        assert len(one) > 0, name
        assert_frame_equal(one, other, check_row_order=False)
    assert by_spark.pulls.select(pl.sum("changed")).item() > 0
