"""Rows of tasks lie in files that Delta, and others, read as their own; what is not committed is gone."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chispa import assert_df_equality
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_schema

from mqreplay.errors import ContractError
from mqreplay.lake import landing as module
from mqreplay.lake.commit import LANDED
from mqreplay.lake.contract import load_contracts
from mqreplay.lake.journal import Journal
from mqreplay.lake.landing import Landing, land, repeating
from mqreplay.lake.warehouse import Warehouse

TABLE = "silver.everything"
ALL = "cluster = 'c'"
SCHEMA = pa.schema(
    [("cluster", pa.string()), ("name", pa.string()), ("at", pa.timestamp("us", "UTC")), ("day", pa.date32())]
)


def batch(names, first_us=0):
    at = pa.array(range(first_us, first_us + len(names)), pa.int64()).cast(pa.timestamp("us", "UTC"))
    return pa.RecordBatch.from_arrays([pa.array(names, pa.string()), at], ["name", "at"])


@pytest.fixture
def place(tmp_path):
    return Landing(str(tmp_path), SCHEMA, (("cluster", "c"),), "at", ("cluster", "name"), ("name", "at", "day"))


def test_a_file_and_what_is_told_of_it(place, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "GROUP_ROWS", 4)
    day_us = 86_400_000_000
    given = [batch(["b", "é"]), batch([]), batch(["a", "c", "b"], day_us - 1), batch(["x"], 5)]
    (told,) = land(iter(given), place)
    ((name,), (size,), (rows,), (stats,)) = told.to_pydict().values()
    file = pq.ParquetFile(tmp_path / name)
    assert (rows, size) == (6, (tmp_path / name).stat().st_size)
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [5, 1]
    read = file.read().to_pydict()
    assert read["name"] == ["b", "é", "a", "c", "b", "x"]
    assert set(read["cluster"]) == {"c"}
    assert [day.isoformat()[5:] for day in read["day"]] == ["01-01", "01-01", "01-01", "01-02", "01-02", "01-01"]
    assert json.loads(stats) == {
        "numRecords": 6,
        "minValues": {"name": "a", "at": "1970-01-01T00:00:00.000Z", "day": "1970-01-01"},
        "maxValues": {"name": "é", "at": "1970-01-02T00:00:00.000Z", "day": "1970-01-02"},
        "nullCount": {"name": 0, "at": 0, "day": 0},
    }


def test_rows_are_written_once_they_have_so_many_bytes(place, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "GROUP_BYTES", 100_000)
    given = [batch(["x" * 60_000]) for _ in range(5)] + [batch(["x"] * 10)]
    (told,) = land(iter(given), place)
    file = pq.ParquetFile(tmp_path / told["name"][0].as_py())
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [2, 2, 11]


def test_no_rows_are_no_file(place, tmp_path):
    assert list(land(iter([batch([])]), place)) == []
    assert list(tmp_path.iterdir()) == []


def test_a_null_where_none_may_be_is_refused(place):
    with pytest.raises(ValueError, match="lack name"):
        list(land(iter([batch(["a", None])]), place))


def test_a_column_of_nulls_has_no_bounds(tmp_path):
    place = Landing(str(tmp_path), SCHEMA, (("cluster", "c"),), "at", (), ("name",))
    (told,) = land(iter([batch([None, None])]), place)
    assert json.loads(told["stats"][0].as_py()) == {
        "numRecords": 2,
        "minValues": {},
        "maxValues": {},
        "nullCount": {"name": 2},
    }


@pytest.fixture
def landed(warehouse, rows):
    """landed(landing, [dict(id=2)], [dict(id=3)]): a task for each list, whose rows go to the landing."""

    def make(place: Landing, *tasks: list[dict[str, object]]):
        batches = [rows(*task).toArrow().select(place.asked.names).combine_chunks().to_batches() for task in tasks]

        def work(numbers):
            for number in numbers:
                for which in number.column(0).to_pylist():
                    yield from land(iter(batches[which]), place)
                    if sum(batch.num_rows for batch in batches[which]) > 2:
                        raise ValueError("this task failed")

        return warehouse.spark.range(len(tasks)).repartition(len(tasks), "id").mapInArrow(work, LANDED).collect()

    return make


@pytest.fixture
def same_rows(warehouse, rows):
    def check(*differs: dict[str, object]) -> None:
        got, wanted = (frame.orderBy("cluster", "id") for frame in (warehouse.read(TABLE), rows(*differs)))
        assert_df_equality(got, wanted, ignore_metadata=True)

    return check


def parquet(warehouse) -> list[Path]:
    return list(Path(warehouse.location(TABLE)).glob("*.parquet"))


def test_what_lands_is_appended_and_replaced_as_rows_are(warehouse, landed, same_rows):
    place = warehouse.landing(TABLE, {"cluster": "c"}, "at")
    warehouse.take(TABLE, landed(place, [{"id": 1}], [{"id": 2}]), ALL, nothing_there=True)
    same_rows({"id": 1}, {"id": 2})
    place = warehouse.landing(TABLE, {"cluster": "d"}, "at")
    warehouse.take(TABLE, landed(place, [{"id": 7}]), "cluster = 'd'", nothing_there=True)
    place = warehouse.landing(TABLE, {"cluster": "c"}, "at")
    warehouse.take(TABLE, landed(place, [{"id": 3, "ratio": None}], []), ALL, nothing_there=False)
    same_rows({"id": 3, "ratio": None}, {"id": 7, "cluster": "d"})
    history = warehouse.spark.sql(f"DESCRIBE HISTORY delta.`{warehouse.location(TABLE)}`").collect()
    assert [(h.operation, h.isBlindAppend) for h in history][:3] == [("WRITE", False), ("WRITE", True), ("WRITE", True)]


def test_what_is_not_taken_is_gone_when_the_transaction_ends(warehouse, landed):
    with Journal(warehouse).transaction("test"):
        place = warehouse.landing(TABLE, {"cluster": "c"}, "at")
        first = landed(place, [{"id": 1}], [{"id": 2}])
        warehouse.take(TABLE, first[:1], ALL, nothing_there=True)
        with pytest.raises(PySparkException, match="this task failed"):
            landed(place, [{"id": 3}, {"id": 4}, {"id": 5}])
    assert [path.name for path in parquet(warehouse)] == [first[0].name]


def said(warehouse) -> dict[str, object]:
    """What the table's first commit says of the table, but for its id and when it was."""
    lines = Path(warehouse.location(TABLE), "_delta_log", f"{0:020}.json").read_text(encoding="utf-8").splitlines()
    actions = {kind: action for line in lines for kind, action in json.loads(line).items()}
    table = {name: value for name, value in actions["metaData"].items() if name not in ("id", "createdTime")}
    table["schemaString"] = json.loads(table["schemaString"])
    clustered = json.loads(actions["domainMetadata"]["configuration"])
    features = sorted(actions["protocol"].pop("writerFeatures"))
    return {"table": table, "clustered": clustered, "features": features, "protocol": actions["protocol"]}


@pytest.mark.parametrize("task", [[], [{"id": 1}]], ids=["no rows", "rows"])
def test_a_table_made_by_its_first_rows_is_what_its_ddl_makes(warehouse, contracts, landed, same_rows, task):
    place = warehouse.landing(TABLE, {"cluster": "c"}, "at")
    warehouse.take(TABLE, landed(place, task), ALL, nothing_there=False)
    same_rows(*task)
    assert not warehouse.ensure(TABLE)
    by_ddl = Warehouse(warehouse.spark, f"{warehouse.root}-by-ddl", contracts)
    assert by_ddl.ensure(TABLE)
    assert said(warehouse) == said(by_ddl)


def test_files_of_a_run_that_died_before_the_first_commit_are_in_nobodys_way(warehouse, landed, rows, same_rows):
    place = Path(warehouse.location(TABLE))
    place.mkdir(parents=True)
    (place / "part-left.zstd.parquet").write_bytes(b"half a file")
    assert not warehouse.exists(TABLE)
    warehouse.replace(TABLE, rows({"id": 1}), ALL)
    same_rows({"id": 1})
    assert not (place / "part-left.zstd.parquet").exists()


def test_nothing_landed_is_no_commit(warehouse, landed):
    warehouse.ensure(TABLE)
    place = warehouse.landing(TABLE, {"cluster": "c"}, "at")
    warehouse.take(TABLE, landed(place, []), ALL, nothing_there=True)
    assert len(list(Path(warehouse.location(TABLE), "_delta_log").glob("*.json"))) == 1


def test_a_broken_check_is_refused_as_by_deltas_own_writer(warehouse, landed, same_rows):
    refused = pytest.raises(ContractError, match=r"CHECK \(id > 0\)")
    place = warehouse.landing(TABLE, {"cluster": "c"}, "at")
    with refused:
        warehouse.take(TABLE, landed(place, [{"id": 1}], [{"id": 0}]), ALL, nothing_there=True)
    same_rows()
    assert not warehouse.exists(TABLE)


def test_files_are_skipped_by_what_was_told_of_them(warehouse, landed):
    days = [dt.datetime(2026, 1, day, 12, tzinfo=dt.UTC) for day in (1, 2, 3)]
    place = warehouse.landing(TABLE, {"cluster": "c"}, "at")
    made = landed(place, *[[{"id": i + 1, "at": at}] for i, at in enumerate(days)])
    warehouse.take(TABLE, made, ALL, nothing_there=True)
    table = warehouse.spark.read.format("delta").load(warehouse.location(TABLE))
    one = table.where("day = DATE'2026-01-02'")
    assert (len(made), len(one.inputFiles())) == (3, 1)
    assert [found.id for found in one.collect()] == [2]


def test_others_read_it_and_it_can_be_compacted(warehouse, landed, same_rows):
    place = warehouse.landing(TABLE, {"cluster": "c"}, "at")
    warehouse.take(TABLE, landed(place, [{"id": 1}], [{"id": 2}]), ALL, nothing_there=True)
    read = pl.read_delta(warehouse.location(TABLE)).sort("id")
    assert read["id"].to_list() == [1, 2]
    assert read["day"].to_list() == [dt.date(2026, 1, 2)] * 2
    assert read["queues"].to_list()[0][1] == {"broker_name": "broker-b", "queue_id": 1}
    warehouse.maintain()
    same_rows({"id": 1}, {"id": 2})


def test_rows_of_the_driver_are_put_as_frames_are(warehouse, rows, same_rows):
    flat = {"queues": None}  # the driver has no rows with structs
    given = [tuple(found) for found in rows({"id": 1} | flat, {"id": 2, "settings": None} | flat).collect()]
    warehouse.put(TABLE, given, ALL, nothing_there=True)
    same_rows({"id": 1} | flat, {"id": 2, "settings": None} | flat)
    warehouse.put(TABLE, given[:1], ALL, nothing_there=False)
    same_rows({"id": 1} | flat)
    warehouse.put(TABLE, [], "cluster = 'other'", nothing_there=True)
    same_rows({"id": 1} | flat)


def test_words_and_small_numbers_have_dictionaries_and_what_names_a_row_has_none(spark) -> None:
    def of(name: str) -> set[str]:
        contract = load_contracts()[name]
        return set(repeating(to_arrow_schema(contract.struct_type(), timestamp_utc=True), contract.alone))

    assert {"cluster", "topic", "queue_id", "day"} <= of("silver.pull")
    assert not {"record_id", "queue_offset", "request_ts"} & of("silver.pull")
    assert "mq_divided.list.element.broker_name" in of("silver.rebalance")
    assert {"topic", "consumer_group"} <= of("silver.offset_change")
