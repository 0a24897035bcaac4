"""Files written by tasks are readable by Delta and others; uncommitted files are removed."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mqreplay.lake.landing import Landed, Landing, land, repeating

from mqreplay.errors import ContractError
from mqreplay.lake import landing as module
from mqreplay.lake.contract import load_contracts
from mqreplay.lake.journal import Journal
from mqreplay.lake.row_filter import RowFilter

TABLE = "silver.everything"
ALL = RowFilter("c")
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
    name, size, rows, stats = told
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
    file = pq.ParquetFile(tmp_path / told.name)
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [2, 2, 11]


def test_no_rows_are_no_file(place, tmp_path):
    assert land(iter([batch([])]), place) == []
    assert list(tmp_path.iterdir()) == []


def test_a_null_where_none_may_be_is_refused(place):
    with pytest.raises(ContractError, match="lack name"):
        land(iter([batch(["a", None])]), place)


def test_a_column_of_nulls_has_no_bounds(tmp_path):
    place = Landing(str(tmp_path), SCHEMA, (("cluster", "c"),), "at", (), ("name",))
    (told,) = land(iter([batch([None, None])]), place)
    assert json.loads(told.stats) == {
        "numRecords": 2,
        "minValues": {},
        "maxValues": {},
        "nullCount": {"name": 2},
    }


@pytest.fixture
def landed(warehouse, rows):
    """landed(landing, [dict(id=2)], [dict(id=3)]): a task for each list, whose rows go to the landing."""

    def work(place: Landing, task: list[dict[str, object]]):
        schema = warehouse.contracts[TABLE].arrow_schema
        columns = [list(c) for c in zip(*rows(*task), strict=True)] or [[] for _ in schema]
        columns = [
            [c and list(c.items()) for c in column] if column[:1] == [{"k": "v"}] else column for column in columns
        ]
        whole = pa.RecordBatch.from_arrays(
            [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
        )
        yield whole.select(place.asked.names)
        if len(task) > 2:
            raise ValueError("this task failed")

    def make(place: Landing, *tasks: list[dict[str, object]]) -> list[Landed]:
        return [file for task in tasks for file in land(work(place, task), place)]

    return make


def parquet(warehouse) -> list[Path]:
    return list(Path(warehouse.location(TABLE)).glob("*.parquet"))


def test_what_lands_is_appended_and_replaced_as_rows_are(warehouse, landed, same_rows):
    place = warehouse.landing(TABLE, {"cluster": "c"}, "at")
    warehouse.commit_files(TABLE, landed(place, [{"id": 1}], [{"id": 2}]), None)
    same_rows({"id": 1}, {"id": 2})
    place = warehouse.landing(TABLE, {"cluster": "d"}, "at")
    warehouse.commit_files(TABLE, landed(place, [{"id": 7}]), None)
    place = warehouse.landing(TABLE, {"cluster": "c"}, "at")
    warehouse.commit_files(TABLE, landed(place, [{"id": 3, "ratio": None}], []), ALL)
    same_rows({"id": 3, "ratio": None}, {"id": 7, "cluster": "d"})


def test_what_is_not_taken_is_gone_when_the_transaction_ends(warehouse, landed):
    with Journal(warehouse).transaction("test"):
        place = warehouse.landing(TABLE, {"cluster": "c"}, "at")
        first = landed(place, [{"id": 1}], [{"id": 2}])
        warehouse.commit_files(TABLE, first[:1], None)
        with pytest.raises(ValueError, match="this task failed"):
            landed(place, [{"id": 3}, {"id": 4}, {"id": 5}])
        assert len(parquet(warehouse)) == 3
    assert [path.name for path in parquet(warehouse)] == [first[0].name]


def test_rows_of_a_landing_are_read_before_they_are_committed(warehouse, landed, same_rows):
    place = warehouse.landing(TABLE, {"cluster": "c"}, "at")
    files = landed(place, [{"id": 1}, {"id": 2}], [{"id": 3}])
    assert sorted(warehouse.written_rows(TABLE, files).collect()["id"]) == [1, 2, 3]
    same_rows()


def test_files_of_a_run_that_died_before_the_first_commit_are_in_nobodys_way(warehouse, rows, same_rows):
    place = Path(warehouse.location(TABLE))
    place.mkdir(parents=True)
    (place / "part-left.zstd.parquet").write_bytes(b"half a file")
    assert not warehouse.exists(TABLE)
    warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
    same_rows({"id": 1})
    assert not (place / "part-left.zstd.parquet").exists()


def test_nothing_landed_is_no_commit(warehouse, landed):
    warehouse.replace_rows(TABLE, [], None)
    place = warehouse.landing(TABLE, {"cluster": "c"}, "at")
    warehouse.commit_files(TABLE, landed(place, []), None)
    assert len(list(Path(warehouse.location(TABLE), "_delta_log").glob("*.json"))) == 1


def test_a_broken_check_is_refused_as_by_deltas_own_writer(warehouse, landed, same_rows):
    place = warehouse.landing(TABLE, {"cluster": "c"}, "at")
    with pytest.raises(ContractError, match=r"CHECK \(id > 0\)"):
        landed(place, [{"id": 1}], [{"id": 0}])
    same_rows()
    assert not warehouse.exists(TABLE)


def test_rows_of_the_driver_are_put_as_frames_are(warehouse, rows, same_rows):
    none = {"id": 2, "settings": None, "queues": None, "names": []}
    warehouse.replace_rows(TABLE, rows({"id": 1}, none), None)
    same_rows({"id": 1}, none)
    warehouse.replace_rows(TABLE, warehouse.read(TABLE).collect(), ALL)
    same_rows({"id": 1}, none)
    warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
    same_rows({"id": 1})
    warehouse.replace_rows(TABLE, [], RowFilter("other"))
    same_rows({"id": 1})


def test_words_and_small_numbers_have_dictionaries_and_what_names_a_row_has_none() -> None:
    def of(name: str) -> set[str]:
        contract = load_contracts()[name]
        return set(repeating(contract.arrow_schema, contract.alone))

    assert {"cluster", "topic", "queue_id", "day"} <= of("silver.pull")
    assert not {"record_id", "queue_offset", "request_ts"} & of("silver.pull")
    assert "mq_divided.list.element.broker_name" in of("silver.rebalance")
    assert {"topic", "consumer_group"} <= of("silver.offset_change")
