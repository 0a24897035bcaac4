"""Rules as columns of Spark: by UDFs, they are those of the local engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from chispa import assert_df_equality
from pyspark.sql import functions
from pyspark.sql.pandas.types import from_arrow_schema

from mqreplay.decisions.allocation import VERDICT
from mqreplay.decisions.offset_commit import compare_and_increase
from mqreplay.engines.shards import deal
from mqreplay.engines.spark_passes import SparkPassRunner
from mqreplay.engines.spark_row_functions import with_answers, with_computed
from mqreplay.engines.spark_tables import SparkTables
from mqreplay.engines.spark_task import SparkTask
from mqreplay.evidence.brokers.routes import ADDRESSES
from mqreplay.evidence.members.client_memory import UNKNOWN_SUGGESTION
from mqreplay.lake.buckets import BUCKETS
from mqreplay.lake.row_filter import Days
from mqreplay.lake.storage import storage
from mqreplay.lake.warehouse import Warehouse
from mqreplay.replay.commit_pass import IN_MEMORY, RULE
from mqreplay.replay.group_pass import REBALANCES, VERDICTS, rebalance_verdicts
from mqreplay.replay.queue_pass import QUEUE_PASS
from mqreplay.replay.queue_tables import SILVER
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
    rows = runner._union([replace(REBALANCES, function=OF_SETTINGS)], shards, STRATEGIES, {})
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


@dataclass(frozen=True)
class PullInput:
    """The part of the input of QUEUE_PASS of which the settings of its rules are made."""

    route_changes: pl.DataFrame


ROUTES = pl.DataFrame(
    [(0, [{"key": 0, "value": "m:1"}, {"key": 1, "value": "s:1"}], None), (1, [{"key": 2, "value": "s:1"}], None)],
    schema={"route_id": pl.Int64, "broker_addrs": ADDRESSES, "before": ADDRESSES},
    orient="row",
)
# Every value that an input of a rule may have, as columns.
CASES: dict[str, tuple[tuple[Any, ...], ...]] = {
    "recalculate_pull_from_which_node": (
        (0, 1, None),
        (0, 1, None, UNKNOWN_SUGGESTION),
        (0, 1, None),
        (True, False),
        ("s:1", None),
    ),
    "slave_suggestion": ((1000, None), (40, -9, None), ([], [-91, -90, 399], [400, 401], [9, 402, 500])),
}


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("name", CASES)
def test_cases_get_the_answers_of_the_local_engine(spark: Any, name: str) -> None:
    (rule,) = (rule for rule in QUEUE_PASS.rules if rule.name == name)
    cases = pl.DataFrame(list(product(*CASES[name])), schema=pl.Schema(rule.reads), orient="row")
    inputs = PullInput(ROUTES)
    asked = cases.select(pl.int_range(pl.len()).alias("number"), pl.struct(pl.all()).alias(name)).to_arrow()
    field = pa.field(name, pa.struct(list(rule.reads)))
    frame = spark.createDataFrame(
        [*asked.to_pylist(), {"number": -1, name: None}],  # a row that is no case
        from_arrow_schema(pa.schema([pa.field("number", pa.int64()), field])),
    )
    answers = with_answers(frame, [rule], inputs)
    expected = rule.function(cases, rule.settings(inputs)).rows(named=True)
    assert len({str(row) for row in expected}) > 2
    listed = [(number, *row.values()) for number, row in enumerate(expected)]
    listed.append((-1, *[None] * len(rule.gives)))
    flat = answers.select("number", f"{name}.*")
    assert_df_equality(flat, spark.createDataFrame(listed, flat.schema), ignore_row_order=True)


def test_the_rules_of_pulls_are_udfs_between_the_halves_of_the_pass(spark: Any, tmp_path: Path, capsys: Any) -> None:
    made = Warehouse(str(tmp_path / "warehouse"))
    pull = {"day": DAY, "request_ts": at(0), "consumer_group": "g", "topic": "T", "broker_name": "b", "client_id": "c1"}
    pulls = rows("silver.pull", pull | {"queue_id": 0, "queue_offset": 0}, [{}])
    made.replace_rows("silver.pull", pulls.with_columns(cluster=pl.lit(CLUSTER)), None)
    runner = SparkPassRunner(SparkTables(spark, made), CLUSTER, DAY, {"silver.pull": Days()})
    task = SparkTask(QUEUE_PASS, PullInput(ROUTES), {}, {}, storage())
    shards = deal(np.ones(BUCKETS, np.int64), BUCKETS // 4)
    plan = explained(runner._made(QUEUE_PASS, task, [SILVER["pull"]], shards), capsys)
    details = plan[plan.index("(1) Scan") :]  # what runs first is first
    udfs = [f"{rule.name}({rule.name}#" for rule in QUEUE_PASS.rules]
    places = [details.index(part) for part in ("judge_queues(", *udfs, "judge_pulls(")]
    assert places == sorted(places)
    page = PAGE.read_text(encoding="utf-8")
    assert [rule.name for rule in QUEUE_PASS.rules if f"| `{rule.name}` | Arrow UDF | cases of" not in page] == []
