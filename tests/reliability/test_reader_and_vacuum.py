"""A reader that is slow, while a run replaces rows and VACUUM removes old files: it reads its version to the end."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from mqreplay.night.maintain import maintain
from mqreplay.settings import load_settings
from reliability.histories import Histories
from reliability.recordings import State

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PULLS = "silver.pull"


@pytest.mark.long
def test_readers_end_with_the_rows_they_began_with(
    spark: SparkSession, histories: dict[str, Histories], tmp_path: Path
) -> None:
    its, root = histories["ingest"], tmp_path / "warehouse"
    shutil.copytree(its.warehouse((State(0),)), root)
    wanted = its.tables(State(0))[PULLS].total()
    path = str(root / "silver" / "pull")
    version = DeltaTable(path).version()
    # By its version: each action of a DataFrame without one reads the newest.
    by_spark = spark.read.format("delta").option("versionAsOf", version).load(path)
    by_rust = DeltaTable(path).to_pyarrow_dataset().scanner(batch_size=100).to_reader()
    read = by_rust.read_next_batch().num_rows
    its.run(root, State(1))  # which replaces all pulls
    maintain(str(root), load_settings(), lambda what: None, engine="local")
    assert DeltaTable(path).version() > version
    assert read + sum(batch.num_rows for batch in by_rust) == wanted
    assert by_spark.count() == wanted
    assert DeltaTable(path, version=version).to_pyarrow_table().num_rows == wanted
