"""Large clusters of one run, at the same time: each is committed or rolled back alone."""

from __future__ import annotations

import errno
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from mqreplay.engines.local import LocalEngine
from mqreplay.lake import catalog as catalog_names
from mqreplay.lake.journal import JOURNAL
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night import estate, nightly, nightly_run
from mqreplay.night.catalog import Catalog
from mqreplay.night.failures import Failure
from mqreplay.night.replay_day import JudgedDay
from mqreplay.settings import load_settings
from night.test_estate import IN_THIS_PROCESS, fails_for, quiet
from reliability.table_rows import difference, read_tables
from tests_shared import assert_same_tables, run, table_at, tables


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count all clusters as large, two of which may be replayed at the same time."""
    monkeypatch.setattr(estate, "CLUSTER_BYTES", -1)
    monkeypatch.setattr(LocalEngine, "clusters_at_once", 2)


@pytest.mark.usefixtures("large")
def test_of_large_clusters_at_the_same_time_one_that_fails_is_rolled_back_alone(
    four: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits take turns: the second cluster's waits until that of the first is rolled back."""
    root, failed = str(tmp_path / "w"), list[Failure]()
    both, judged = threading.Barrier(2, timeout=60), nightly_run.judge_day

    def judge(warehouse: Warehouse, engine: object, cluster: str, *more: object, **named: object) -> JudgedDay:
        if cluster in ("a", "b"):
            both.wait()  # so both are replayed at the same time
        return judged(warehouse, engine, cluster, *more, **named)

    with monkeypatch.context() as patch:
        patch.setattr(JudgedDay, "commit", fails_for("a", KeyError("x")))
        patch.setattr(nightly_run, "judge_day", judge)
        outcomes = nightly.run("nightly", root, IN_THIS_PROCESS, quiet, recordings=four, engine="local", failed=failed)
    assert [each.cluster for each in outcomes] == ["b", "c", "d"]
    assert [(each.name, str(each.error)) for each in failed] == [("a", "'x'")]
    assert not Path(root, JOURNAL).exists()
    assert set(table_at(root, "gold.judgement")["cluster"]) == {"b", "c", "d"}
    assert set(table_at(root, "gold.validation_result")["cluster"]) == {"b", "c", "d"}
    # The expectations of all clusters are one commit, after the two that made the table.
    assert Warehouse(root).version("gold.validation_result") == 1


@pytest.mark.long
@pytest.mark.usefixtures("large")
def test_large_clusters_by_name_at_the_same_time_have_the_tables_of_one_after_the_other(
    spark: Any, four: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog_names, "missing_catalog", lambda session, catalog: None)
    root, whole = str(tmp_path / "w"), str(tmp_path / "whole")
    names = Catalog("spark_catalog", "estate_")
    nightly.run("nightly", root, load_settings(), quiet, recordings=four, engine="spark", catalog=names)
    for layer in ("bronze", "silver", "gold"):
        spark.sql(f"DROP DATABASE estate_{layer} CASCADE")
    with monkeypatch.context() as patch:
        patch.setattr(LocalEngine, "clusters_at_once", 1)
        run("nightly", whole, load_settings(), quiet, recordings=four)
    assert not difference(read_tables(Path(root)), read_tables(Path(whole)))


@pytest.mark.long
@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_large_clusters_at_the_same_time_have_the_tables_of_one_after_the_other(
    engine: str, four: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, whole = str(tmp_path / "w"), str(tmp_path / "whole")
    nightly.run("nightly", root, load_settings(), quiet, recordings=four, engine=engine)
    with monkeypatch.context() as patch:
        patch.setattr(LocalEngine, "clusters_at_once", 1)
        run("nightly", whole, load_settings(), quiet, recordings=four)
    before = Warehouse(root).state()
    monkeypatch.setattr(estate, "_judge", pytest.fail)
    nightly.run("nightly", root, load_settings(), quiet, recordings=four, engine=engine)
    assert Warehouse(root).state() == before
    for name in set(tables(root)) - set(tables(whole)):  # all tables are made before the first transaction
        assert table_at(root, name).is_empty()
        Warehouse(root).drop(name)
    assert_same_tables(root, whole)


@pytest.mark.usefixtures("large")
def test_a_large_cluster_that_fails_while_another_commits_leaves_its_commits(
    four: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, failed = str(tmp_path / "w"), list[Failure]()
    commits, fails, (judged, commit) = threading.Event(), threading.Event(), (nightly_run.judge_day, JudgedDay.commit)

    def judge(warehouse: Warehouse, engine: object, cluster: str, *more: object, **named: object) -> JudgedDay:
        if cluster == "a":
            assert commits.wait(60)
            fails.set()
            raise KeyError("x")
        return judged(warehouse, engine, cluster, *more, **named)

    def slow(day: JudgedDay, replaced: RowFilter | None) -> None:
        is_first = not commits.is_set()
        commit(day, replaced)
        commits.set()
        assert fails.wait(60)
        time.sleep(2 if is_first else 0)  # as long as a rollback takes

    with monkeypatch.context() as patch:
        patch.setattr(JudgedDay, "commit", slow)
        patch.setattr(nightly_run, "judge_day", judge)
        outcomes = nightly.run("replay", ingested_at(root, four), IN_THIS_PROCESS, quiet, engine="local", failed=failed)
    assert [each.name for each in failed] == ["a"]
    assert [each.cluster for each in outcomes] == ["b", "c", "d"]
    assert set(table_at(root, "gold.judgement")["cluster"]) == {"b", "c", "d"}


def ingested_at(root: str, recordings: list[str]) -> str:
    """Ingest the recordings into a warehouse; return it."""
    run("ingest", root, load_settings(), quiet, recordings=recordings)
    return root


@pytest.mark.usefixtures("large")
def test_a_failure_of_the_machine_stops_large_clusters(
    four: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JudgedDay, "commit", fails_for("b", OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        nightly.run("nightly", str(tmp_path), IN_THIS_PROCESS, quiet, recordings=four, engine="local", failed=[])
    assert "b" not in set(table_at(str(tmp_path), "gold.judgement")["cluster"])
