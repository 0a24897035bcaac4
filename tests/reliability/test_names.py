"""Names that mean something to Spark, SQL, Hadoop or a shell: in clusters, topics and folders they are names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mqreplay.answers.explanation import explain
from mqreplay.cli.query import query
from mqreplay.night.maintain import maintain
from mqreplay.settings import load_settings
from mqreplay.words.errors import InputError
from tests_shared import run, table_rows

MS = 1795229406000
NAMES = [
    "${env:HOME}",
    "${system:user.home}",
    "${spark:spark.app.name}",
    "${spark.app.name}",
    "it's \\' \" `b`",
    "%_\\",
    "é東京😀",
]
PATHS = [
    "100% %20 %2F %",
    "a b  c ",
    "#a?b=c&d",
    "*",
    "[a]{b,c}",
    "a\\b\\",
    "-rf",
    "a:b",
    "day=1",
    "_hidden",
    ".hidden",
    "a,b;c",
    'it\'s "b" `c`',
    "${env:HOME}$HOME$(id)",
    "é東京😀",
    "e\u0301",
    "x" * 255,
    "東" * 85,
    "table@v1",
    "~",
    " ",
    "+",
    "<b>&amp;",
]


def record(folder: Path, names: list[str], offset: int, broker: str = "broker-a") -> Path:
    """A recording whose topics and groups have these names."""
    moment = folder / "snapshots" / f"{broker}-0" / str(MS)
    moment.mkdir(parents=True, exist_ok=True)
    offsets = {f"{name}@{name}": {"0": offset} for name in names}
    (moment / "consumerOffset.json").write_text(json.dumps({"offsetTable": offsets}), encoding="utf-8")
    pull = {"request_ts": MS, "client_id": "c", "queue_id": 0, "broker_name": broker, "queue_offset": offset}
    lines = [json.dumps({**pull, "topic": name, "consumer_group": name}) + "\n" for name in names]
    (folder / "pull_log.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


def ingest(root: Path, recordings: list[Path], cluster: str) -> None:
    run("ingest", str(root), load_settings(), lambda what: None, recordings=list(map(str, recordings)), cluster=cluster)


@pytest.mark.parametrize(
    "cluster", [NAMES[0], *(pytest.param(name, marks=pytest.mark.long) for name in NAMES[1:])], ids=repr
)
def test_names_stay_as_they_are_when_their_rows_are_replaced(tmp_path: Path, cluster: str) -> None:
    recording = tmp_path / cluster
    for offset in (1, 22):  # a file that changed is read again, and its rows of before are replaced
        record(recording, NAMES, offset, broker=cluster)
        ingest(tmp_path / "warehouse", [recording], cluster)
        for table, column in (("silver.pull", "queue_offset"), ("silver.offset_change", "new_offset")):
            rows = table_rows(str(tmp_path / "warehouse"), table, cluster)
            assert {name for name in NAMES for row in rows if repr(name) in row} == set(NAMES), table
            assert all(f"'{column}': {offset}" in row for row in rows), table


@pytest.mark.long
@pytest.mark.parametrize("name", PATHS, ids=ascii)
def test_folders_of_odd_names_are_used_as_they_are(spark, tmp_path: Path, monkeypatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    is_of_tables = not re.search(r"[%\\]", name)  # Delta's tables cannot have them: refused for a warehouse
    beside, recording = tmp_path / "beside", Path("recordings", name)
    warehouse = Path("warehouses", name if is_of_tables else "w")
    beside.mkdir()
    for offset in (1, 22):
        record(recording, ["t"], offset)
        ingest(warehouse, [recording], "c")
        (row,) = query(str(warehouse), "SELECT queue_offset FROM silver.pull", load_settings()).collect()
        assert row.queue_offset == offset
    maintain(str(warehouse), load_settings(), lambda what: None, engine="local")
    if not is_of_tables:
        with pytest.raises(InputError, match=r"has a % or \\ in its name"):
            ingest(Path("warehouses", name), [recording], "c")
    assert [path.name for path in Path("warehouses").iterdir()] == [warehouse.name]
    assert [path.name for path in Path("recordings").iterdir()] == [name]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["beside", "recordings", "warehouses"]
    spark.sql("DROP DATABASE IF EXISTS silver CASCADE")


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31mb", "a\udce9", "x" * 256], ids=ascii)
def test_names_that_cannot_work_are_refused_in_one_line(tmp_path: Path, name: str) -> None:
    for root, recording in ((tmp_path / name, tmp_path / "r"), (tmp_path / "w", tmp_path / name)):
        with pytest.raises(InputError) as error:
            ingest(root, [recording], "c")
        assert str(error.value).isprintable()
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_text_is_refused_in_one_line(tmp_path: Path) -> None:
    recording = record(tmp_path / "r", ["t"], 1)
    with pytest.raises(InputError, match="is not Unicode text") as error:
        ingest(tmp_path / "w", [recording], "a\udce9")
    assert str(error.value).isprintable()
    for ask in (lambda text: query("w", text, load_settings()), lambda text: explain("w", text, None)):
        with pytest.raises(InputError, match="is not Unicode text"):
            ask("a\udce9")
