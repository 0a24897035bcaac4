"""Files written by tasks, one for each partition, are readable by Delta; uncommitted files are in no table."""

from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from everything_table import TABLE
from made_warehouse import live_files
from mqreplay.lake import table_writer as module
from mqreplay.lake.contract import load_contracts
from mqreplay.lake.journal import Journal
from mqreplay.lake.maintenance import remove_unused
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.table_writer import OPEN_FILES, TableWriter, WrittenFile, repeating
from mqreplay.words.errors import ContractError

ALL = RowFilter("c")
DAY_US = 86_400_000_000
SCHEMA = pa.schema(
    [("cluster", pa.string()), ("name", pa.string()), ("at", pa.timestamp("us", "UTC")), ("day", pa.date32())]
)


def batch(names, first_us=0):
    at = pa.array(range(first_us, first_us + len(names)), pa.int64()).cast(pa.timestamp("us", "UTC"))
    return pa.RecordBatch.from_arrays([pa.array(names, pa.string()), at], ["name", "at"])


@pytest.fixture
def writer(tmp_path):
    return TableWriter(str(tmp_path), SCHEMA, ("cluster", "day"), (("cluster", "c"),), "at", ("cluster", "name"))


def test_the_stats_of_a_file_hold_its_rows(tmp_path):
    """Bounds are rounded outwards; a column without values, with long texts, or with instants that no reader parses
    has none."""
    names = ("name", "at", "empty", "long", "late")
    schema = pa.schema([("cluster", pa.string()), *SCHEMA.remove(0).remove(2), ("empty", pa.string())])
    schema = schema.append(pa.field("long", pa.string())).append(pa.field("late", pa.timestamp("us", "UTC")))
    writer = TableWriter(str(tmp_path), schema, ("cluster",), (("cluster", "c"),), bounded=names)
    at = pa.array([1_500, -1, None], pa.int64()).cast(pa.timestamp("us", "UTC"))
    late = pa.array([2**62] * 3, pa.int64()).cast(pa.timestamp("us", "UTC"))
    columns = [["b", "é", "a"], at, [None] * 3, ["x" * 9_000] * 3, late]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, writer.asked, strict=True)]
    [file] = writer.write([pa.RecordBatch.from_arrays(arrays, schema=writer.asked)])
    assert json.loads(file.stats) == {
        "numRecords": 3,
        "minValues": {"name": "a", "at": "1969-12-31T23:59:59.999Z"},
        "maxValues": {"name": "é", "at": "1970-01-01T00:00:00.002Z"},
        "nullCount": {"name": 0, "at": 1, "empty": 3, "long": 0, "late": 0},
    }


def test_a_file_has_the_rows_of_one_partition(writer, tmp_path):
    """Two partitions in one task's write make two files, without the columns of the partition."""
    given = [batch(["b", "é"]), batch([]), batch(["a", "c", "b"], DAY_US - 1), batch(["x"], 5)]
    files = writer.write(iter(given))
    assert [file.partition for file in files] == [
        (("cluster", "c"), ("day", "1970-01-02")),
        (("cluster", "c"), ("day", "1970-01-01")),
    ]
    assert [file.path.rpartition("/")[0] for file in files] == [
        "cluster=c/day=1970-01-02",
        "cluster=c/day=1970-01-01",
    ]
    read = [pq.ParquetFile(tmp_path / file.path).read() for file in files]
    assert [table["name"].to_pylist() for table in read] == [["c", "b"], ["b", "é", "a", "x"]]
    assert {tuple(table.column_names) for table in read} == {("name", "at")}
    assert [(file.rows, file.bytes) for file in files] == [
        (table.num_rows, (tmp_path / file.path).stat().st_size) for table, file in zip(read, files, strict=True)
    ]


def test_rows_are_written_once_they_are_so_many(writer, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "GROUP_ROWS", 4)
    (told,) = writer.write(iter([batch(["b", "é"]), batch(["a", "c", "b"]), batch(["x"], 5)]))
    file = pq.ParquetFile(tmp_path / told.path)
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [5, 1]


def test_rows_are_written_once_they_have_so_many_bytes(writer, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "GROUP_BYTES", 100_000)
    given = [batch(["x" * 60_000]) for _ in range(5)] + [batch(["x"] * 10)]
    (told,) = writer.write(iter(given))
    file = pq.ParquetFile(tmp_path / told.path)
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [2, 2, 11]


def test_no_rows_are_no_file(writer, tmp_path):
    assert writer.write(iter([batch([])])) == []
    assert list(tmp_path.iterdir()) == []


def test_a_null_where_none_may_be_is_refused(writer):
    with pytest.raises(ContractError, match="lack name"):
        writer.write(iter([batch(["a", None])]))


@pytest.mark.parametrize("in_order", [True, False], ids=["one day after the other", "all days in each batch"])
def test_clocks_of_many_days_lose_no_row(writer, tmp_path, monkeypatch, in_order) -> None:
    """Clients' clocks may be off by any number of days; only some files are open at once."""
    days, count = 40, 5
    opened, most = set(), 0
    begin, end = module._File.__init__, module._File.closed

    def started(self: Any, *arguments: Any) -> None:
        nonlocal most
        begin(self, *arguments)
        opened.add(self)
        most = max(most, len(opened))

    def closed(self: Any) -> WrittenFile:
        opened.discard(self)
        return end(self)

    monkeypatch.setattr(module._File, "__init__", started)
    monkeypatch.setattr(module._File, "closed", closed)
    numbers = [(day, n) for day in range(days) for n in range(count)]
    numbers = numbers if in_order else sorted(numbers, key=lambda pair: pair[1])
    rows = pl.DataFrame(
        {"name": [f"{day}-{n}" for day, n in numbers], "at": [day * DAY_US + n for day, n in numbers]}
    ).with_columns(pl.from_epoch("at", "us").dt.replace_time_zone("UTC"))
    step = count if in_order else days
    pieces = [module.as_table(rows[n : n + step], writer.asked, "") for n in range(0, rows.height, step)]
    files = writer.write(batch for piece in pieces for batch in piece.to_batches())
    found = {}
    for file in files:
        names = pq.ParquetFile(tmp_path / file.path).read()["name"].to_pylist()
        assert len(names) == file.rows
        found |= dict.fromkeys(names, file.partition[1][1])
    assert found == {f"{day}-{n}": str(dt.date(1970, 1, 1) + dt.timedelta(days=day)) for day, n in numbers}
    assert sum(file.rows for file in files) == days * count
    assert most <= OPEN_FILES + 1
    assert opened == set()


@pytest.fixture
def written(warehouse, rows):
    """written(writer, [dict(id=2)], [dict(id=3)]): a task for each list, whose rows the writer writes."""

    def work(place: TableWriter, task: list[dict[str, object]]):
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

    def make(place: TableWriter, *tasks: list[dict[str, object]]) -> list[WrittenFile]:
        return [file for task in tasks for file in place.write(work(place, task))]

    return make


def parquet(warehouse) -> list[Path]:
    return list(Path(warehouse.location(TABLE)).rglob("part-*.parquet"))


def test_written_files_are_appended_and_replaced_as_rows_are(warehouse, written, same_rows):
    place = warehouse.writer(TABLE, {"cluster": "c"}, "at")
    warehouse.commit_files(TABLE, written(place, [{"id": 1}], [{"id": 2}]), None)
    same_rows({"id": 1}, {"id": 2})
    place = warehouse.writer(TABLE, {"cluster": "d"}, "at")
    warehouse.commit_files(TABLE, written(place, [{"id": 7}]), None)
    place = warehouse.writer(TABLE, {"cluster": "c"}, "at")
    warehouse.commit_files(TABLE, written(place, [{"id": 3, "ratio": None}], []), ALL)
    same_rows({"id": 3, "ratio": None}, {"id": 7, "cluster": "d"})


def test_files_that_are_not_committed_are_in_no_table_and_maintenance_removes_them(warehouse, written, same_rows):
    place = warehouse.writer(TABLE, {"cluster": "c"}, "at")
    with Journal(warehouse).transaction("test"):
        first = written(place, [{"id": 1}], [{"id": 2}])
        warehouse.commit_files(TABLE, first[:1], None)
        with pytest.raises(ValueError, match="this task failed"):
            written(place, [{"id": 3}, {"id": 4}, {"id": 5}])
    same_rows({"id": 1})
    assert live_files(warehouse, TABLE) == [first[0].path]
    assert len(parquet(warehouse)) == 3
    assert remove_unused(warehouse, TABLE, 1)[0] == 0, "another program may be about to commit them"
    for path in parquet(warehouse):
        os.utime(path, (0, 0))
    assert remove_unused(warehouse, TABLE, 1)[0] == 2
    assert [str(path.relative_to(warehouse.location(TABLE))) for path in parquet(warehouse)] == [first[0].path]
    same_rows({"id": 1})


def test_files_without_the_rows_of_a_condition(warehouse, written, same_rows):
    place = warehouse.writer(TABLE, {"cluster": "c"}, "at")
    files = written(place, [{"id": 1}, {"id": 2}], [{"id": 3}], [{"id": 4}])
    kept = warehouse.without(TABLE, files, pl.col("id").is_in([2, 3]))
    assert [file.rows for file in kept] == [1, 1]
    assert kept[1] == files[2]
    warehouse.commit_files(TABLE, kept, None)
    same_rows({"id": 1}, {"id": 4})


def test_written_rows_are_read_before_they_are_committed(warehouse, written, same_rows):
    place = warehouse.writer(TABLE, {"cluster": "c"}, "at")
    files = written(place, [{"id": 1}, {"id": 2}], [{"id": 3}])
    assert sorted(warehouse.written_rows(TABLE, files).collect()["id"]) == [1, 2, 3]
    same_rows()


def test_files_of_a_run_that_died_before_the_first_commit_are_in_nobodys_way(warehouse, rows, same_rows):
    place = Path(warehouse.location(TABLE))
    place.mkdir(parents=True)
    (place / "cluster=c" / "day=2026-01-02").mkdir(parents=True)
    left = place / "cluster=c" / "day=2026-01-02" / "part-left.zstd.parquet"
    left.write_bytes(b"half a file")
    assert not warehouse.exists(TABLE)
    warehouse.replace_rows(TABLE, rows({"id": 1}), ALL)
    same_rows({"id": 1})
    os.utime(left, (0, 0))
    remove_unused(warehouse, TABLE, 1)
    assert not left.exists()


def test_nothing_written_is_no_commit(warehouse, written):
    warehouse.replace_rows(TABLE, [], None)
    place = warehouse.writer(TABLE, {"cluster": "c"}, "at")
    before = warehouse.version(TABLE)
    warehouse.commit_files(TABLE, written(place, []), None)
    assert warehouse.version(TABLE) == before


def test_a_broken_check_is_refused_by_the_task(warehouse, written, same_rows):
    place = warehouse.writer(TABLE, {"cluster": "c"}, "at")
    with pytest.raises(ContractError, match=r"CHECK \(id > 0\)"):
        written(place, [{"id": 1}], [{"id": 0}])
    same_rows()
    assert not warehouse.exists(TABLE)


def test_rows_of_the_driver_are_written_as_frames_are(warehouse, rows, same_rows):
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
        return set(repeating(contract.arrow_schema, {contract.single_column_key, *contract.partitioned_by}))

    assert {"topic", "queue_id"} <= of("silver.pull")
    assert not {"cluster", "day", "record_id", "queue_offset", "request_ts"} & of("silver.pull")
    assert "mq_divided.list.element.broker_name" in of("silver.rebalance")
    assert {"topic", "consumer_group"} <= of("silver.offset_change")
