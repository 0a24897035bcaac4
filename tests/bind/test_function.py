"""What every face promises beside the answer itself."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from mqreplay.bind import functions
from mqreplay.bind.function import BoundFunction
from mqreplay.bind.functions import FUNCTIONS
from mqreplay.bind.register import register
from mqreplay.words.errors import DecodeError

NAMED = {
    "allocate_averagely",
    "allocate_averagely_by_circle",
    "allocate",
    "recalculate_pull_from_which_node",
    "update_pull_from_which_node",
    "find_broker_address_in_subscribe",
    "memory_threshold",
    "effective_ratio",
    "slave_suggestion",
    "check_in_disk_by_commit_offset",
    "can_be_batch",
    "suggest_which_broker_id",
    "compare_and_increase_only",
    "update_offset",
    "commit_offset",
    "query_consumer_offset",
    "compute_pull_from_where",
    "try_lock",
    "flow_control",
    "send_status",
    "retry_delay_level",
    "is_dead_letter",
    "status_windows",
    "allocate_for_pop",
    "pop_init_offset",
    "parse_retry_topic",
    "parse_extra_info",
    "check_block",
    "next_offset",
    "is_revive_due",
    "revive_deadline",
}


def test_the_catalogue() -> None:
    assert set(FUNCTIONS) == NAMED
    assert all(getattr(functions, name) is bound for name, bound in FUNCTIONS.items())


def test_arguments_are_the_laws_own(spark: SparkSession) -> None:
    for bound in FUNCTIONS.values():
        assert bound.argument_types.names == list(inspect.signature(bound.law).parameters), bound.name


def test_registration_may_be_repeated(spark: SparkSession) -> None:
    register(spark)
    register(spark)
    assert all(spark.catalog.functionExists(name) for name in NAMED)


def test_sql(spark: SparkSession) -> None:
    register(spark)
    mq_all = "array(named_struct('topic', 'T', 'broker_name', 'a', 'queue_id', 0))"
    sql = f"SELECT allocate_averagely('g', 'c1', {mq_all}, array('c1', 'c2')).value AS mine"
    assert spark.sql(sql).first().mine == [("T", "a", 0)]
    assert spark.sql("SELECT recalculate_pull_from_which_node(NULL).value AS id").first().id == 0
    exact = "SELECT memory_threshold(9223372036854775807, 100).value AS bytes"
    assert spark.sql(exact).first().bytes == 2**63 - 1


def test_queues_without_a_topic(ask: Any, face: str) -> None:
    """They come back without one; a law that looks at it refuses, rather than hash a made-up topic."""
    data = ask.spark.sql(
        "SELECT strategy_name, 'g' AS consumer_group, 'c1' AS current_cid, "
        "array(named_struct('broker_name', 'a', 'queue_id', 0)) AS mq_all, array('c1') AS cid_all "
        "FROM VALUES ('AVG'), ('CONSISTENT_HASH') AS t(strategy_name)"
    )
    averaged, hashed = ask.answers(face, functions.allocate, data)
    assert averaged == ask.value([{"topic": None, "broker_name": "a", "queue_id": 0}])
    assert hashed["error"]["code"] == "InputError"


def test_a_bug_ends_the_stage_and_our_own_error_does_not(spark: SparkSession, python_face: str) -> None:
    def law(x: int) -> int:
        if x == 2:
            raise DecodeError("torn", "cut short", 7)
        return 10 // x

    bound = BoundFunction("law", law, "x BIGINT NOT NULL", "BIGINT")
    data = spark.range(1, 4).select(getattr(bound, python_face)("id").alias("answer")).select("answer.*")
    assert [row.asDict(True) for row in data.collect()] == [
        {"value": 10, "error": None},
        {"value": None, "error": {"code": "torn", "detail": "cut short"}},
        {"value": 3, "error": None},
    ]
    with pytest.raises(PythonException, match="ZeroDivisionError"):
        spark.range(0, 2).select(getattr(bound, python_face)("id")).collect()


def test_numbers_wrap_in_and_out(spark: SparkSession, python_face: str) -> None:
    def twice(x: int | None) -> int | None:
        return None if x is None else x + x

    bound = BoundFunction("twice", twice, "x BIGINT", "BIGINT")
    numbers = [None, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]
    data = spark.createDataFrame([(x,) for x in numbers], "x BIGINT").coalesce(1)
    got = [row[0] for row in data.select(getattr(bound, python_face)("x").value).collect()]
    assert got == [None, 2**54 + 2, -(2**63), -2, 0]
    beyond = data.limit(1).select(F.expr("9223372036854775809BD").alias("x"))
    assert beyond.select(getattr(bound, python_face)("x").value).first()[0] == 2


def test_arguments_left_out_take_the_laws_defaults(spark: SparkSession, python_face: str) -> None:
    asked = getattr(functions.recalculate_pull_from_which_node, python_face)
    assert spark.range(1).select(asked(F.lit(3).cast("bigint")).value).first()[0] == 3
    with pytest.raises(TypeError, match="got 0 columns"):
        asked()
