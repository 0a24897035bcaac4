"""Files that lie by buckets and files that do not give a shard the same rows; each row is in one shard."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from mqreplay.engines.shards import deal_evenly
from mqreplay.lake.buckets import COLUMN, Key, key_of
from mqreplay.lake.contract import load_contracts
from mqreplay.lake.table_files import Buckets, TableFile, TableFiles, read_buckets, read_files
from mqreplay.lake.table_writer import TableWriter
from silver_rows import rows

CONTRACT = load_contracts()["silver.pull"]
SCHEMA = CONTRACT.arrow_schema
KEY = key_of(CONTRACT.shard_key)
QUEUES = 50


def writer(folder: Path, key: Key) -> TableWriter:
    return TableWriter(str(folder), SCHEMA, CONTRACT.partitioned_by, (("cluster", "c"),), shard_key=key)


@pytest.fixture(params=["by buckets", "as they came"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> TableFiles:
    """Pulls of 50 queues in one file."""
    differs = [{"topic": f"t{n % 5}", "broker_name": f"b{n % 2}", "queue_id": n % QUEUES} for n in range(50_000)]
    base = {"client_id": "c", "consumer_group": "g", "request_ts": dt.datetime(2026, 11, 21, tzinfo=dt.UTC)}
    made = rows("silver.pull", base, differs)
    key = KEY if request.param == "by buckets" else ()
    (file,) = writer(tmp_path, key).write_rows(made)
    path = str(tmp_path / file.path)
    assert (COLUMN in pq.read_schema(path).names) == bool(key)
    return TableFiles((TableFile(path, "c", made["day"][0], len(made)),), SCHEMA)


@pytest.mark.first_case
def test_each_row_is_in_one_shard(files: TableFiles) -> None:
    shards = deal_evenly(70, 10)
    found = [read_files(files, ["record_id", "queue_id"], pl.lit(True), Buckets(s.low, s.high, KEY)) for s in shards]
    together = pl.concat(found)
    assert together.height == 50_000
    assert together["record_id"].n_unique() == 50_000
    queues = [set(frame["queue_id"].unique().to_list()) for frame in found]
    assert sum(map(len, queues)) == QUEUES
    assert read_buckets(files, KEY, pl.lit(True)).len() == 50_000


def test_row_groups_of_other_shards_can_be_passed_over(tmp_path: Path) -> None:
    differs = [{"topic": "t", "broker_name": "b", "queue_id": n % 1000} for n in range(60_000)]
    base = {"client_id": "c", "consumer_group": "g", "request_ts": dt.datetime(2026, 11, 21, tzinfo=dt.UTC)}
    (file,) = writer(tmp_path, KEY).write_rows(rows("silver.pull", base, differs))
    parquet = pq.ParquetFile(tmp_path / file.path).metadata
    groups = [parquet.row_group(n).column(parquet.num_columns - 1).statistics for n in range(parquet.num_row_groups)]
    assert len(groups) > 1
    assert all(one.max <= other.min for one, other in pairwise(groups))
