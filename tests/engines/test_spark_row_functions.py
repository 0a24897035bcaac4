"""Rules as columns of Spark: by UDFs, they are those of the local engine."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from chispa import assert_df_equality
from pyspark.sql import functions

from mqreplay.decisions.allocation import VERDICT
from mqreplay.decisions.offset_commit import compare_and_increase
from mqreplay.engines.shards import deal
from mqreplay.engines.spark_passes import SparkPassRunner
from mqreplay.engines.spark_row_functions import with_computed
from mqreplay.engines.spark_tables import SparkTables
from mqreplay.lake.buckets import BUCKETS
from mqreplay.lake.row_filter import Days
from mqreplay.lake.warehouse import Warehouse
from mqreplay.replay.commit_pass import IN_MEMORY, RULE
from mqreplay.replay.group_pass import REBALANCES, VERDICTS, rebalance_verdicts
from mqreplay.settings.sections import StrategySettings
from silver_moments import BEGAN, at
from silver_rows import rows

PAGE = Path(__file__).parents[2] / "docs" / "rules_on_spark.md"
CLUSTER, DAY = "c", BEGAN.date()
STRATEGIES = StrategySettings(groups={"g": {"queues": {"c1": ["T/b/0"]}}})


def as_they_are(strategies: StrategySettings) -> StrategySettings:
    return strategies


OF_SETTINGS = replace(VERDICTS, settings=as_they_are)  # that of a night takes them from the context of its replay
LISTED = [("b", 0), ("b", 1), ("a", 0)]
# Every strategy, with lists and without them, and results that agree, differ and are not known.
NIGHT = [
    {"strategy": strategy, "client_id": client, "ts": at(second), "mq_divided": took, "cid_all": clients}
    for second, (strategy, client, took, clients) in enumerate(
        product(
            ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "CONFIG", "MACHINE_ROOM", "MY_OWN", None),
            ("c1", "c2"),
            ([("a", 0), ("b", 0)], [("b", 0)], [], None),
            (["c1", "c2"], ["c1"], [], None),
        )
    )
]


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """A Delta table of rebalances."""
    base = {"consumer_group": "g", "topic": "T", "mq_all": LISTED, "day": DAY}
    made = Warehouse(str(tmp_path / "warehouse"))
    night = rows("silver.rebalance", base, NIGHT).with_columns(cluster=pl.lit(CLUSTER))
    made.replace_rows("silver.rebalance", night, None)
    return made


@pytest.fixture(params=["an Arrow UDF", "a pandas UDF"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow UDFs came with PySpark 4.1; before it they are pandas UDFs."""
    assert hasattr(functions, "arrow_udf")
    if request.param == "a pandas UDF":
        monkeypatch.delattr(functions, "arrow_udf")


def explained(frame: Any, capsys: Any) -> str:
    """The plan of a DataFrame, as long as under spark-submit."""
    session, length = frame.sparkSession, "spark.sql.maxPlanStringLength"
    before = session.conf.get(length)
    session.conf.set(length, "1000000")
    frame.explain("formatted")
    session.conf.set(length, before)
    return str(capsys.readouterr().out)


@pytest.mark.usefixtures("kind")
def test_the_column_has_the_verdicts_of_the_law(spark: Any, warehouse: Warehouse) -> None:
    tables = SparkTables(spark, warehouse)
    rebalances = tables.of_cluster("silver.rebalance", CLUSTER, Days(), tables.columns("silver.rebalance"))
    read, answers = warehouse.contracts["silver.rebalance"], warehouse.contracts["gold.allocation"]
    judged = with_computed(rebalances, OF_SETTINGS, STRATEGIES, read, answers)
    assert judged.columns == [*rebalances.columns, *VERDICT]
    silver = warehouse.read("silver.rebalance").collect()
    expected = silver.select("ts").hstack(rebalance_verdicts(silver, STRATEGIES))
    assert expected["judgement"].value_counts().height == 3
    wanted = spark.createDataFrame(expected.to_dicts(), judged.select("ts", *VERDICT).schema)
    assert_df_equality(judged.select("ts", *VERDICT), wanted, ignore_row_order=True)


def test_the_udf_runs_before_the_rows_are_dealt(spark: Any, warehouse: Warehouse, capsys: Any) -> None:
    # So the rows of a large group are judged by many tasks.
    runner = SparkPassRunner(SparkTables(spark, warehouse), CLUSTER, DAY, {"silver.rebalance": Days()})
    shards = deal(np.ones(BUCKETS, np.int64), BUCKETS // 4)
    rows = runner._union([replace(REBALANCES, function=OF_SETTINGS)], shards, STRATEGIES)
    plan = explained(rows, capsys)
    assert "rebalance_verdicts(" in plan
    assert "| `rebalance_verdicts` | Arrow UDF |" in PAGE.read_text(encoding="utf-8")
    assert 0 < plan.index("Exchange") < plan.index("EvalPython")  # a tree: what runs first is below


SPAN = (at(0), at(100))
COMMIT_RULE = replace(RULE, before=replace(IN_MEMORY, span=lambda _: SPAN))


@pytest.fixture
def commits(tmp_path: Path) -> Warehouse:
    """A Delta table of commits: of two clients, in any order, some before the span."""
    base = {"consumer_group": "g", "topic": "T", "broker_name": "b", "kind": "UPDATE", "mode": "oneway", "day": DAY}
    listed = [
        {"client_id": client, "queue_id": queue, "ts": at(second), "commit_offset": offset}
        for client, queue in product(("c1", "c2"), (0, 1))
        for second, offset in ((30, 9), (-10, 50), (10, 5), (20, 7), (40, 3))
    ]
    listed += [{"client_id": "c1", "queue_id": 0, "kind": "QUERY", "ts": at(35), "answer_offset": 2}]
    made = Warehouse(str(tmp_path / "warehouse"))
    made.replace_rows(
        "silver.offset_commit", rows("silver.offset_commit", base, listed).with_columns(cluster=pl.lit(CLUSTER)), None
    )
    return made


def test_the_offset_before_is_of_a_window_and_the_rule_a_pandas_udf(
    spark: Any, commits: Warehouse, capsys: Any
) -> None:
    tables, of_row = SparkTables(spark, commits), COMMIT_RULE
    assert of_row.before is not None
    silver = tables.of_cluster("silver.offset_commit", CLUSTER, Days(), tables.columns("silver.offset_commit"))
    read, answers = commits.contracts["silver.offset_commit"], commits.contracts["gold.offset_commit"]
    judged = with_computed(silver, of_row, None, read, answers).select("record_id", *of_row.columns)
    local = commits.read("silver.offset_commit").collect().filter(pl.col("ts").is_between(*SPAN, closed="left"))
    local = local.with_columns(of_row.before.of(local))
    expected = local.hstack(compare_and_increase(local)).select("record_id", *of_row.columns)
    assert_df_equality(judged, spark.createDataFrame(expected.to_dicts(), judged.schema), ignore_row_order=True)
    plan = explained(judged, capsys)
    assert "compare_and_increase(" in plan
    assert "| `compare_and_increase` | pandas UDF |" in PAGE.read_text(encoding="utf-8")
    assert plan.index("ArrowEvalPython") < plan.index("Window") < plan.index("Scan")  # what runs first is below
