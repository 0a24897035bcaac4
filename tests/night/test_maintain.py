"""`mqreplay maintain`: what later runs and readers find after old days were removed."""

from __future__ import annotations

import dataclasses
import datetime as dt
import gzip
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable
from polars.testing import assert_frame_equal

from mqreplay.cli import command_line as cli
from mqreplay.lake.contract import load_contracts
from mqreplay.lake.journal import interrupted_run
from mqreplay.lake.warehouse import Warehouse
from mqreplay.machine.places import conf_dir
from mqreplay.night.maintain import Maintained, maintain
from mqreplay.quality.conditions import COUNTED_BY_RECORD, KINDS_OF_TABLE
from mqreplay.settings import LocalSettings, Settings, load_settings
from mqreplay.words.errors import InputError
from night.cut import cut, jsonl_files, shifted
from night.later import DAY_MS
from night.over_midnight import days_of_nights, make_nights
from tests_shared import files_of, run, table_at, tables

NIGHTS = 4
LEDGERS = ("bronze.source_file", "bronze.step", "bronze.retention")
RUN = ("run_id",)  # of gold.validation_result: a digest of the ledger


@pytest.fixture(scope="module")
def settings() -> Settings:
    return dataclasses.replace(load_settings(str(conf_dir() / "sample.toml")), local=LocalSettings(processes=1))


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return make_nights(tmp_path_factory.mktemp("nights"), NIGHTS)


@pytest.fixture(scope="module")
def days(nights: list[Path]) -> list[dt.date]:
    return days_of_nights(nights)


@pytest.fixture(scope="module")
def before(nights: list[Path], settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse of all nights but the last. Copy it before you change it."""
    root = tmp_path_factory.mktemp("before") / "warehouse"
    for some in nights[:1], nights[1:-1]:
        run("ingest", str(root), settings, lambda what: None, recordings=list(map(str, some)))
    run("replay", str(root), settings, lambda what: None)
    return root


@pytest.fixture(scope="module")
def next_night(before: Path, nights: list[Path], settings: Settings) -> Path:
    """The same with the last night, without maintenance."""
    root = before.with_name("next-night")
    shutil.copytree(before, root)
    one_more_night(root, nights[-1:], settings)
    return root


def one_more_night(root: Path, recordings: Sequence[Path], settings: Settings) -> list[str]:
    """Ingest and replay, without the seconds of a validation; return the progress lines."""
    said: list[str] = []
    run("ingest", str(root), settings, said.append, recordings=list(map(str, recordings)))
    run("replay", str(root), settings, said.append)
    return said


@pytest.fixture
def kept(before: Path, settings: Settings, tmp_path: Path) -> Callable[[str], Path]:
    """kept("3d"): a warehouse in which only these days were kept."""

    def keep(text: str) -> Path:
        root = tmp_path / "warehouse"
        shutil.copytree(before, root)
        maintain(str(root), settings, lambda what: None, keep=text, engine="local")
        assert_conserved(root)
        return root

    return keep


def days_of(root: Path, name: str) -> list[dt.date]:
    return sorted(table_at(root, name)["day"].unique().drop_nulls())


def assert_same_since(root: Path, other: Path, first: dt.date) -> None:
    """The tables have the same rows of these days, and of none. Ledgers differ: they know what was removed."""
    assert set(tables(str(root))) - set(LEDGERS) == set(tables(str(other))) - set(LEDGERS)
    for name in set(tables(str(root))) - set(LEDGERS):
        found = [table_at(place, name).drop(RUN, strict=False) for place in (root, other)]
        if load_contracts()[name].is_dated or name == "gold.validation_result":
            found = [rows.filter(pl.col("day").is_null() | (pl.col("day") >= first)) for rows in found]
        assert_frame_equal(*found, check_row_order=False, check_exact=True)


def assert_conserved(root: Path) -> None:
    """Each silver table has the rows that the ledger says its files still have."""
    files = table_at(root, "bronze.source_file").filter(pl.col("status") == "read")
    left = pl.col("rows_out") - pl.col("rows_expired").fill_null(0)
    by_kind = dict(files.group_by("kind").agg(left.sum()).iter_rows())
    for name, kinds in KINDS_OF_TABLE.items():
        if sum(by_kind.get(kind, 0) for kind in kinds):
            rows = table_at(root, name)
            held = rows["record_id"].n_unique() if name in COUNTED_BY_RECORD else len(rows)
            assert held == sum(by_kind.get(kind, 0) for kind in kinds), name


@pytest.mark.long
@pytest.mark.parametrize("keep", ["3d", "silver=3d,gold=4d"])
def test_the_next_night_gives_the_same_rows(keep, kept, next_night, nights, days, settings) -> None:
    root = kept(keep)
    assert days_of(root, "silver.pull") == days[1:4]
    assert days_of(root, "gold.finding") == days[1 if keep == "3d" else 0 : 4]
    one_more_night(root, nights[-1:], settings)
    assert_same_since(root, next_night, days[1])


@pytest.mark.long
def test_a_run_of_the_same_recordings_changes_nothing(kept, nights, days, settings) -> None:
    root = kept("silver=3d")
    run("validate", str(root), settings, lambda what: None)
    files = len(table_at(root, "bronze.source_file"))
    maintain(str(root), settings, lambda what: None, keep="silver=3d,bronze=3d", engine="local")
    assert len(table_at(root, "bronze.source_file")) < files
    assert days_of(root, "gold.finding") == days[:4]
    before, said = files_of(str(root)), []
    run("nightly", str(root), settings, said.append, recordings=list(map(str, nights[:-1])))
    assert files_of(str(root)) == before
    assert [line for line in said if "none new or changed" in line], said


@pytest.mark.long
def test_a_removed_day_stays_removed(kept, nights, days, settings, tmp_path) -> None:
    root = kept("3d")
    again = tmp_path / "again"
    shutil.copytree(nights[0], again)  # known files in a new folder, files with more lines, and a late snapshot
    for path in jsonl_files(again):
        lines = gzip.decompress(path.read_bytes())
        path.write_bytes(gzip.compress(lines + b'{"more": 1}\n', 1))
    snapshot = next((again / "snapshots").glob("*/*"))
    shutil.copytree(snapshot, snapshot.with_name(str(int(snapshot.name) + 1)))
    gold = table_at(root, "gold.finding")
    said = one_more_night(root, [again, nights[2]], settings)
    assert any(f"rows of days before {days[1]} are not kept" in line for line in said)
    for name in ("silver.pull", "silver.offset_change", "silver.snapshot", "gold.pull_route"):
        assert days_of(root, name) == days[1:4], name
    assert_frame_equal(table_at(root, "gold.finding"), gold, check_row_order=False)
    assert_conserved(root)


@pytest.mark.long
def test_rows_of_a_slow_clock_are_not_taken_for_old_ones(kept, nights, days, settings, tmp_path) -> None:
    root, slow = kept("3d"), tmp_path / "slow"
    (client,) = table_at(root, "silver.pull")["client_id"].sort()[:1]
    cut(nights[-1], slow, change=shifted(client, -100 * DAY_MS))
    one_more_night(root, [slow], settings)
    for _ in range(2):
        early = table_at(root, "silver.pull").filter(pl.col("day") < days[1])
        assert set(early["client_id"]) == {client}
        assert_conserved(root)
        maintain(str(root), settings, lambda what: None, keep="3d", engine="local")


@pytest.mark.long
def test_files_that_are_gone_are_not_missed(kept, nights, days, settings, tmp_path) -> None:
    """An old recording that was tidied up: what is gone is of removed days, so no row changes."""
    root = kept("3d")
    tidied = tmp_path / "tidied"
    shutil.copytree(nights[1], tidied)
    # The folder was moved, so its files are known; those of the removed day are gone.
    midnight = dt.datetime.combine(days[1], dt.time(), dt.UTC).timestamp() * 1000
    for snapshot in (tidied / "snapshots").glob("*/*"):
        if int(snapshot.name) < midnight:
            shutil.rmtree(snapshot)
    rows = table_at(root, "silver.offset_change"), table_at(root, "silver.offset_checkpoint")
    run("ingest", str(root), settings, lambda what: None, recordings=[str(tidied)])
    now = table_at(root, "silver.offset_change"), table_at(root, "silver.offset_checkpoint")
    for old, new in zip(rows, now, strict=True):
        assert_frame_equal(old, new, check_row_order=False)


@pytest.mark.long
def test_other_settings_judge_only_days_whose_rows_are_kept(kept, days, settings) -> None:
    root = kept("silver=3d")
    near = dataclasses.replace(settings, findings=dataclasses.replace(settings.findings, idle_s=30))
    judged, said = table_at(root, "gold.pull_route"), []
    run("replay", str(root), near, said.append)
    assert [line.split()[-1] for line in said if "replaying" in line and "tasks" not in line] == [str(days[3])]
    assert any("not judged again" in line for line in said)
    now = table_at(root, "gold.pull_route")
    assert_frame_equal(now, judged, check_row_order=False)


@pytest.mark.long
def test_readers_work_on_days_whose_rows_are_gone(kept, days, settings, capsys) -> None:
    root = kept("silver=3d")
    run("report", str(root), settings, lambda what: None)
    old = table_at(root, "gold.finding").filter((pl.col("day") == days[0]) & (pl.col("to_ts").dt.date() == days[0]))
    finding = old["finding_id"][0]
    for command in (
        ["explain", finding],
        ["findings"],
        ["sql", "SELECT count(*) FROM silver.pull"],
        ["validate", "--engine", "local"],
        ["report"],
    ):
        assert cli.main([*command, "--warehouse", str(root)]) == 0, command
    text = capsys.readouterr().out
    assert f"silver rows before {days[1]} are no longer kept" in text
    assert cli.main(["explain", finding, "--warehouse", str(root), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["silver_kept_from"] == str(days[1])


@pytest.mark.long
@pytest.mark.parametrize("commits", [3, pytest.param(25, marks=pytest.mark.long)])
def test_an_interrupted_removal_is_completed(commits, before, kept, settings, tmp_path, monkeypatch) -> None:
    root, made = tmp_path / "interrupted", []
    shutil.copytree(before, root)
    commit_files = Warehouse.commit_files

    def interrupted(*arguments: Any) -> None:
        if len(made) == commits:
            raise KeyboardInterrupt
        made.append(arguments[1])
        commit_files(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Warehouse, "commit_files", interrupted)
        with pytest.raises(KeyboardInterrupt):
            maintain(str(root), settings, lambda what: None, keep="3d", engine="local")
    assert interrupted_run(str(root)) == "removal of old days of DefaultCluster"
    said: list[str] = []
    maintain(str(root), settings, said.append, keep="3d", engine="local")
    assert any("rolling it back" in line for line in said)
    other = kept("3d")
    assert tables(str(root)) == tables(str(other))
    for name in tables(str(root)):
        assert_frame_equal(table_at(root, name), table_at(other, name), check_row_order=False, check_exact=True)


@pytest.mark.long
def test_a_dry_run_changes_nothing(before, settings, tmp_path) -> None:
    root = tmp_path / "warehouse"
    shutil.copytree(before, root)
    files = files_of(str(root))
    planned = maintain(str(root), settings, lambda what: None, keep="3d", engine="local", dry_run=True)
    assert files_of(str(root)) == files
    done = maintain(str(root), settings, lambda what: None, keep="3d", engine="local")
    assert {d.table: d.rows_removed for d in planned} == {d.table: d.rows_removed for d in done}
    assert sum(d.rows_removed for d in done) > 1000
    assert not any(d.changed for d in maintain(str(root), settings, lambda what: None, keep="3d", engine="local"))


def test_compaction_changes_no_row(before, settings, tmp_path) -> None:
    root = tmp_path / "warehouse"
    shutil.copytree(before, root)
    done = {each.table: each for each in maintain(str(root), settings, lambda what: None, engine="local")}
    assert done["silver.broker"].files_before > done["silver.broker"].files_after == 1
    assert not any(each.rows_removed for each in done.values()), "all days are kept without --keep"
    for name in tables(str(before)):
        place, old = root.joinpath(*name.split(".")), table_at(before, name)
        assert_frame_equal(old, table_at(root, name), check_row_order=False, check_exact=True)
        assert pl.scan_delta(str(place)).select(pl.len()).collect().item() == len(old)
        arrow = DeltaTable(str(place)).to_pyarrow_dataset()
        assert duckdb.connect().from_arrow(arrow).count("*").fetchall() == [(len(old),)]
    assert not any(_changes(root, name) for name, each in done.items() if each.files_after < each.files_before)


def _changes(root: Path, name: str) -> list[Any]:
    """The actions of a table's last commit that readers of changes take for new or removed rows."""
    last = max(root.joinpath(*name.split("."), "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in last.read_text(encoding="utf-8").splitlines()]
    return [a for a in actions for kind in ("add", "remove") if a.get(kind, {}).get("dataChange")]


@pytest.mark.long
def test_what_was_done_is_printed(before, tmp_path, capsys) -> None:
    command = ["maintain", "--warehouse", str(before), "--keep", "silver=3d", "--dry-run"]
    assert cli.main([*command, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["dry_run"] is True
    (pulls,) = [each for each in printed["tables"] if each["table"] == "silver.pull"]
    assert pulls["rows_removed"] > 0
    assert cli.main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith(f"silver.pull: {pulls['rows_removed']:,} rows removed")]
    assert not any(line.startswith("gold.") and "rows removed" in line for line in lines)
    assert lines[-1] == "Nothing was changed (--dry-run)."


@pytest.mark.parametrize(
    "keep", ["90", "d", "90d,30d", "silver=30d,silver=40d", "iron=30d", "silver=2d", "-1d", "99999d"]
)
def test_a_wrong_number_of_days_is_refused_in_one_line(keep, tmp_path) -> None:
    with pytest.raises(InputError) as error:
        maintain(str(tmp_path / "w"), Settings(), lambda what: None, keep=keep, engine="local")
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_days_are_counted_from_the_last_recorded_day(before, settings, tmp_path) -> None:
    """The sample is years old, or of the future: no day goes because of the day of the run."""
    root = tmp_path / "warehouse"
    shutil.copytree(before, root)
    done = maintain(str(root), settings, lambda what: None, keep="4d", engine="local", dry_run=True)
    assert [d.rows_removed for d in done if isinstance(d, Maintained)] == [0] * len(done)
