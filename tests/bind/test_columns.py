"""The native twins against the law: at every edge of 64 bits, and wherever Hypothesis looks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from mqreplay.bind import columns
from mqreplay.core.java import LONG_MAX, LONG_MIN, to_long
from mqreplay.core.pull_answer import suggest_which_broker_id
from mqreplay.core.slave_suggestion import memory_threshold, slave_suggestion

EDGES = sorted({0, 1, -1, 2**31, 2**53, 2**53 + 1, 2**62, 2**63 - 512, LONG_MAX, LONG_MIN, LONG_MIN + 1, -(2**62)})
RATIOS = [-(2**31), -9, 0, 1, 30, 40, 99, 100, 101, 2**31 - 1, LONG_MAX, LONG_MIN]
LONGS = st.sampled_from(EDGES) | st.integers(LONG_MIN, LONG_MAX)
TWINS: dict[str, tuple[Callable[..., Any], Callable[..., Column], int]] = {
    "subtract": (lambda a, b: to_long(a - b), columns.wrapping_subtract, 2),
    "memory_threshold": (memory_threshold, columns.memory_threshold, 2),
    "slave_suggestion": (slave_suggestion, columns.slave_suggestion, 4),
}
FEW = settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.data_too_large, HealthCheck.too_slow],
)


def same(spark: SparkSession, name: str, rows: Sequence[tuple[int | None, ...]]) -> None:
    law, twin, width = TWINS[name]
    names = [f"x{i}" for i in range(width)]
    data = spark.createDataFrame(rows, ", ".join(f"{each} BIGINT" for each in names))
    got = [row[0] for row in data.select(twin(*map(F.col, names))).collect()]
    want = [None if None in row else law(*row) for row in rows]
    assert [(row, each) for row, each in zip(rows, got, strict=True)] == list(zip(rows, want, strict=True))


@pytest.mark.parametrize("name", ["subtract", "memory_threshold"])
def test_two_numbers_at_every_edge(spark: SparkSession, name: str) -> None:
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    same(spark, name, list(itertools.product([*EDGES, None], [*EDGES, *RATIOS, None])))


def test_slave_suggestion_at_every_edge(spark: SparkSession) -> None:
    memories = [0, 1000, 16_000_000_000, LONG_MAX, LONG_MIN, None]
    rows = list(itertools.product([*EDGES, None], EDGES, memories, RATIOS))
    # Where the difference is exactly the threshold, and one beside it.
    for memory, ratio in itertools.product([7, 1000, 2**40 + 3, 2**60 + 1], [-9, 30, 40, 75, 100]):
        line = memory_threshold(memory, ratio)
        rows += [(2**61 + line + beside, 2**61, memory, ratio) for beside in (-1, 0, 1)]
    same(spark, "slave_suggestion", rows)


@pytest.mark.parametrize("name", TWINS)
def test_wherever_hypothesis_looks(spark: SparkSession, name: str) -> None:
    width = TWINS[name][2]

    @FEW
    @given(st.lists(st.tuples(*[LONGS] * width), min_size=200, max_size=400))
    def run(rows: list[tuple[int, ...]]) -> None:
        same(spark, name, rows)

    run()


@pytest.mark.parametrize("version", ["4.9.7", "5.3.3"])
def test_suggest_which_broker_id(spark: SparkSession, version: str) -> None:
    flags, ids = [True, False, None], [0, 1, LONG_MAX, LONG_MIN, None]
    rows = list(itertools.product(flags, flags, ids, [1, -1, None], [0, 1, None], [0, 2, None], flags))
    schema = "s BOOLEAN, r BOOLEAN, g BIGINT, w BIGINT, b BIGINT, m BIGINT, c BOOLEAN"
    data = spark.createDataFrame(rows, schema)
    twin = columns.suggest_which_broker_id(*map(F.col, data.columns), version=version)
    assert data.select(twin.alias("id")).schema["id"].dataType.simpleString() == "bigint"
    names = ("broker_id", "min_broker_id_in_group", "in_broker_container")
    want = [
        None
        if None in row
        else suggest_which_broker_id(*row[:4], **dict(zip(names, row[4:], strict=True)), version=version)
        for row in rows
    ]
    assert [row[0] for row in data.select(twin).collect()] == want
