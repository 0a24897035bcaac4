"""Rows of silver tables in the making: a base row of each, plus what differs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession

from mqreplay.lake.contract import load_contracts
from mqreplay.lake.session import fit_to
from mqreplay.replay.by_queue.events import queue_events
from mqreplay.replay.by_queue.looks import looked_for, looks_of_a_night
from mqreplay.replay.group_status import last_told
from mqreplay.replay.standstills import last_copies
from silver_moments import BEGAN


@pytest.fixture(scope="session")
def rows(spark: SparkSession) -> Callable[..., DataFrame]:
    """Makes a frame of a table's schema: rows(name, base, [what differs, ...])."""
    fit_to(spark, 0)  # plans over a handful of rows: compiling them is all the time

    def make(name: str, base: dict[str, object], differs: list[dict[str, object]]) -> DataFrame:
        schema = load_contracts()[name].struct_type()
        common = {"cluster": "c", "day": BEGAN.date(), "source_digest": "d"}
        listed = []
        for i, change in enumerate(differs):
            row = common | {"record_id": f"r{i}"} | base | change
            listed.append(tuple(row.get(f.name) for f in schema.fields))
        return spark.createDataFrame(listed, schema)

    return make


@pytest.fixture(scope="session")
def look_at(rows: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    """looked_for's frame, of silver frames; windows and standstills of 60 s, slaves that are stale after 150 s."""

    def look(changes: DataFrame, commits: DataFrame, pull: DataFrame, snapshot: DataFrame | None = None) -> DataFrame:
        events = queue_events(changes, commits, pull, rows("silver.topic_stats", {}, []))
        (until,) = last_told(events).collect()
        copied = [] if snapshot is None else last_copies(snapshot).collect()
        return looked_for(events, looks_of_a_night(60, 150, 60, until.until_ms or 0, copied)).localCheckpoint()

    return look
