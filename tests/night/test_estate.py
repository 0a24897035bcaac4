"""Many clusters in one run: one that fails is rolled back and reported, the others are completed."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import mqreplay.cli.command_line as cli
from estate_recordings import CLUSTERS
from mqreplay.lake.journal import JOURNAL
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night import estate, nightly
from mqreplay.night.failures import Failure
from mqreplay.night.replay_day import JudgedDay
from mqreplay.settings import LocalSettings, load_settings
from mqreplay.words.errors import ContractError, InputError
from tests_shared import assert_same_tables, run, table_at

IN_THIS_PROCESS = replace(load_settings(), local=LocalSettings(processes=1))


def quiet(text: str) -> None:
    pass


def fails_for(cluster: str, error: Exception) -> Callable[..., None]:
    """Return a commit of a judged day that fails for a cluster after its commits."""
    commit = JudgedDay.commit

    def failing(day: JudgedDay, replaced: RowFilter | None) -> None:
        commit(day, replaced)
        if day.cluster == cluster:
            raise error

    return failing


@pytest.mark.long
def test_a_cluster_that_fails_is_rolled_back_and_the_others_are_done(
    recordings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, given = str(tmp_path / "w"), [str(recordings / name) for name in CLUSTERS]
    failed: list[Failure] = []
    run("ingest", root, load_settings(), quiet, recordings=given)
    with monkeypatch.context() as patch:
        patch.setattr(JudgedDay, "commit", fails_for("b", KeyError("x")))
        outcomes = nightly.run("replay", root, load_settings(), quiet, engine="local", failed=failed)
    assert [each.cluster for each in outcomes] == ["a", "c"]
    assert [(each.what, each.name, str(each.error), each.is_input) for each in failed] == [
        ("cluster", "b", "'x'", False)
    ]
    assert not Path(root, JOURNAL).exists()
    assert {"a", "c"} == set(table_at(root, "gold.judgement")["cluster"])
    run("replay", root, load_settings(), quiet)
    whole = str(tmp_path / "whole")
    for step in ("ingest", "replay"):
        run(step, whole, load_settings(), quiet, recordings=given if step == "ingest" else None)
    assert_same_tables(root, whole)


def test_a_task_that_fails_adds_what_it_had_completed_and_the_others_are_done(
    four: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, failed = str(tmp_path / "w"), list[Failure]()
    with monkeypatch.context() as patch:
        patch.setattr(JudgedDay, "commit", fails_for("b", KeyError("x")))
        outcomes = nightly.run("nightly", root, IN_THIS_PROCESS, quiet, recordings=four, engine="local", failed=failed)
    assert [each.cluster for each in outcomes] == ["a", "c", "d"]
    assert [(each.name, str(each.error)) for each in failed] == [("b", "'x'")]
    assert "test_estate" in "".join(failed[0].error.__notes__)
    assert set(table_at(root, "gold.judgement")["cluster"]) == {"a", "c", "d"}
    assert set(table_at(root, "silver.pull")["cluster"]) == {"a", "b", "c", "d"}
    # One commit has all clusters, after those that made the table and its constraint.
    assert (Warehouse(root).version("gold.judgement"), Warehouse(root).version("silver.pull")) == (1, 2)


@pytest.mark.long
def test_clusters_in_tasks_have_the_tables_of_clusters_one_after_the_other(
    four: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, whole = str(tmp_path / "w"), str(tmp_path / "whole")
    run("nightly", root, load_settings(), quiet, recordings=four)
    with monkeypatch.context() as patch:
        patch.setattr(estate, "FEW", 5)
        one_by_one = run("nightly", whole, load_settings(), quiet, recordings=four)
    assert_same_tables(root, whole)
    before = Warehouse(root).state()
    monkeypatch.setattr(estate, "_judge", pytest.fail)
    again = run("nightly", root, load_settings(), quiet, recordings=four)
    assert Warehouse(root).state() == before
    assert [(each.cluster, each.judgements) for each in again] == [
        (each.cluster, each.judgements) for each in one_by_one
    ]


@pytest.mark.long
def test_a_failure_of_the_machine_in_a_task_stops_the_run(
    four: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JudgedDay, "commit", fails_for("c", OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        nightly.run("nightly", str(tmp_path), IN_THIS_PROCESS, quiet, recordings=four, engine="local", failed=[])
    assert not Warehouse(str(tmp_path)).exists("silver.pull")


@pytest.mark.long
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_tasks_of_other_processes(engine: str, four: list[str], tmp_path: Path) -> None:
    settings = replace(load_settings(), local=LocalSettings(processes=2))
    nightly.run("nightly", str(tmp_path / "w"), settings, quiet, recordings=four, engine=engine)
    run("nightly", str(tmp_path / "whole"), load_settings(), quiet, recordings=four)
    assert_same_tables(str(tmp_path / "w"), str(tmp_path / "whole"))


@pytest.mark.long
def test_what_fails_in_ingest_is_left_out_of_the_steps_after_it(
    recordings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mqreplay.ingest import run as ingest

    write = ingest._write_brokers

    def fail(run: ingest.Run, *more: object) -> None:
        write(run, *more)
        if run.cluster == "a":
            raise ContractError("table x does not fit")

    monkeypatch.setattr(ingest, "_write_brokers", fail)
    root, failed = str(tmp_path / "w"), list[Failure]()
    given = [str(recordings / name) for name in ("a", "b", "empty")]
    outcomes = nightly.run("nightly", root, load_settings(), quiet, recordings=given, engine="local", failed=failed)
    assert [each.cluster for each in outcomes] == ["b"]
    assert [(each.what, Path(each.name).name, each.is_input) for each in failed] == [
        ("recording", "empty", True),
        ("cluster", "a", True),
    ]
    assert set(table_at(root, "bronze.source_file")["cluster"]) == {"b"}
    assert set(table_at(root, "bronze.step")["cluster"]) == {"b"}


def test_without_a_list_of_failures_the_first_is_raised(recordings: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no files"):
        run("ingest", str(tmp_path), load_settings(), quiet, recordings=[str(recordings / n) for n in ("empty", "a")])


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.ENOSPC, "No space left on device")], ids=str)
def test_failures_of_the_machine_stop_the_run(
    error: Exception, recordings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*of: object) -> None:
        raise error

    monkeypatch.setattr("mqreplay.ingest.run._write_brokers", fail)
    failed: list[Failure] = []
    with pytest.raises(type(error)):
        nightly.run(
            "ingest",
            str(tmp_path / "w"),
            load_settings(),
            quiet,
            recordings=[str(recordings / "a"), str(recordings / "b")],
            engine="local",
            failed=failed,
        )
    assert failed == []
    assert Path(tmp_path, "w", JOURNAL).exists()


def ingested(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, list[str]]:
    """Run ingest; return its status, its output, and the lines of its errors."""
    status = cli.main(["ingest", *arguments, "--warehouse", str(tmp_path / "w"), "--engine", "local"])
    out, err = capsys.readouterr()
    return status, out, [line for line in err.splitlines() if line.startswith("mqreplay:")]


def test_the_command_reports_what_failed_and_completes_the_others(
    recordings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(recordings / "[abe]*"), str(recordings / "z*"), "--json"]
    status, out, errors = ingested(given, tmp_path, capsys)
    assert status == 2
    found = json.loads(out)
    assert [each["cluster"] for each in found["clusters"]] == ["a", "b"]
    assert [Path(each["recording"]).name for each in found["failed"]] == ["z*", "empty"]
    assert [line.split(": ")[:2] for line in errors] == [
        ["mqreplay", f"recording {recordings}/z* failed"],
        ["mqreplay", f"recording {recordings}/empty failed"],
    ]
    assert "no recording matches" in errors[0]


def test_an_unexpected_error_of_a_cluster_gives_status_4_and_a_log(
    recordings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from mqreplay.ingest import run as ingest

    read = ingest._Ingest._known

    def fail(of: ingest._Ingest) -> object:
        if of.cluster == "a":
            raise KeyError("defect")
        return read(of)

    monkeypatch.setattr(ingest._Ingest, "_known", fail)
    status, out, errors = ingested([str(recordings / "*")], tmp_path, capsys)
    assert status == 4
    assert len(errors) == 2
    assert errors[1].startswith(
        "mqreplay: cluster a failed: an error that mqreplay did not expect (KeyError: 'defect')"
    )
    assert len(list(Path(tmp_path, "w", "logs").iterdir())) == 1
    assert "\nb  " in out
    assert "\nc  " in out


def test_recordings_of_the_settings(recordings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = tmp_path / "own.toml"
    conf.write_text(f"[nightly]\nrecordings = [{json.dumps(str(recordings / '[ab]'))}]\n", encoding="utf-8")
    status, out, errors = ingested(["--conf", str(conf)], tmp_path, capsys)
    assert (status, errors) == (0, [])
    assert "\na  " in out
    assert "\nb  " in out
    status, out, errors = ingested([], tmp_path, capsys)
    assert (status, out, len(errors)) == (2, "", 1)
    assert "no recording is given" in errors[0]


def test_recordings_of_the_settings_are_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = tmp_path / "own.toml"
    conf.write_text("[nightly]\nrecordings = [1]\n", encoding="utf-8")
    assert ingested(["--conf", str(conf)], tmp_path, capsys)[2] == [
        f"mqreplay: {conf}: [nightly] recordings must be a list of texts, not [1]"
    ]
