"""Tables as views: the rows of one cluster and day, of files whatever they are called and whoever wrote them."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mqreplay.lake.contract import load_contracts
from mqreplay.lake.row_filter import Days
from mqreplay.quality.tables import Tables
from quality_rows import START, Folder, Row, at

TODAY = START.date()
TOMORROW = TODAY + dt.timedelta(days=1)


def pull(number: int, **differs: object) -> Row:
    return {"cluster": "c", "record_id": f"{number}", "day": TODAY, "request_ts": at(number)} | differs


@pytest.mark.parametrize("name", ["*", "a?b", "[a]{b,c}", 'it\'s "b"', "day=1", "é東京", "${HOME}"])
def test_a_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    for beside in ("other", name):
        Folder(tmp_path / "new", load_contracts()).write("silver.pull", [pull(1, topic=beside)])
        (tmp_path / "new").rename(tmp_path / beside)  # delta-rs does not write into each of them
    with Tables(Folder(tmp_path / name, load_contracts()), "c") as tables:
        assert tables.run(tables.rows("silver.pull", ["topic"])) == [(name,)]


@pytest.mark.parametrize("cluster", ["it's", "a\0b", "x' OR cluster = 'c"])
def test_a_cluster_may_have_any_name(tmp_path: Path, cluster: str) -> None:
    folder = Folder(tmp_path, load_contracts())
    folder.write("silver.pull", [pull(1), pull(2, cluster=cluster), pull(3, cluster="a")])
    with Tables(folder, cluster) as tables:
        assert tables.run(tables.rows("silver.pull", ["cluster", "record_id"])) == [(cluster, "2")]


def test_rows_are_of_the_cluster_and_days(tmp_path: Path) -> None:
    folder = Folder(tmp_path, load_contracts())
    folder.write("silver.pull", [pull(1), pull(2, day=TOMORROW), pull(5, cluster="other")])
    with Tables(folder, "c") as tables:

        def found(days: Days) -> list[str]:
            return sorted(row[0] for row in tables.run(tables.rows("silver.pull", ["record_id"], days)))

        assert found(Days(TODAY, TODAY)) == ["1"]
        assert found(Days(first=TOMORROW)) == ["2"]
        assert found(Days()) == ["1", "2"]


def test_a_table_that_does_not_exist_has_no_rows(tmp_path: Path) -> None:
    with Tables(Folder(tmp_path, load_contracts()), "c") as tables:
        assert tables.count(tables.rows("silver.pull", ["record_id"])) == 0


def test_columns_that_an_older_version_lacked_are_null(tmp_path: Path) -> None:
    folder = Folder(tmp_path, load_contracts())
    folder.write("silver.pull", [pull(1, topic="t")])
    place = folder.location("silver.pull")
    older = pa.table({"cluster": ["c"], "day": [TODAY], "record_id": ["2"]})
    write_deltalake(place, older, mode="append", schema_mode="merge")
    with Tables(folder, "c") as tables:
        rows = tables.run(tables.rows("silver.pull", ["record_id", "topic", "request_ts"]) + " ORDER BY ALL")
    assert rows == [("1", "t", at(1).replace(tzinfo=None)), ("2", None, None)]


def test_instants_are_of_utc_in_any_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(tmp_path, load_contracts())
    folder.write("silver.pull", [pull(1)])
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        with Tables(folder, "c") as tables:
            assert tables.run(tables.rows("silver.pull", ["request_ts"])) == [(at(1).replace(tzinfo=None),)]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_distinct_count_is_of_values(tmp_path: Path) -> None:
    folder = Folder(tmp_path, load_contracts())
    folder.write("silver.topic_stats", [{"cluster": "c", "record_id": name} for name in "aab"])
    with Tables(folder, "c") as tables:
        rows = tables.rows("silver.topic_stats", ["record_id"])
        assert (tables.count(rows), tables.count(rows, "record_id")) == (3, 2)
