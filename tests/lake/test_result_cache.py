"""Cached results count only while the tables are unchanged."""

from __future__ import annotations

import datetime as dt
import json
from types import SimpleNamespace

import pytest

from mqreplay.answers.outcome import Outcome, kept_outcome
from mqreplay.lake.result_cache import CACHE_FILE, CachedQuery, ResultCache, write_kept
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse

ROWS = [("a", 1, None, dt.datetime(2026, 11, 20, 1, 2, 3, 4000, dt.UTC)), ("b", 2, True, None)]


@pytest.fixture
def warehouse(tmp_path):
    place = SimpleNamespace(root=str(tmp_path), now="one")
    place.state = lambda: place.now
    return place


def asked(rows, cluster="c"):
    return CachedQuery(f"files of {cluster}", lambda warehouse: rows)


def never(warehouse):
    raise AssertionError("it was kept, and is read all the same")


KEPT = CachedQuery("files of c", never)


def test_kept_rows_come_back_as_they_were(warehouse):
    ResultCache(warehouse).keep([asked(ROWS)])
    assert ResultCache(warehouse).rows(KEPT) == ROWS
    ResultCache(warehouse).keep([KEPT])


def test_after_a_commit_they_are_read_anew(warehouse):
    ResultCache(warehouse).keep([asked(ROWS)])
    warehouse.now = "two"
    assert ResultCache(warehouse).rows(asked([("z",)])) == [("z",)]
    ResultCache(warehouse).keep([asked([("z",)])])
    assert ResultCache(warehouse).rows(KEPT) == [("z",)]


def test_another_cluster_is_not_kept(warehouse):
    ResultCache(warehouse).keep([asked(ROWS)])
    assert ResultCache(warehouse).rows(asked([], "d")) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"state": "x"}', '{"kept": {}}', "null"])
def test_a_file_that_is_none_of_ours_is_no_loss(warehouse, tmp_path, text):
    (tmp_path / CACHE_FILE).write_text(text)
    assert ResultCache(warehouse).rows(asked(ROWS)) == ROWS


def test_an_outcome_is_kept_with_the_state_it_tells_of(tmp_path):
    file = tmp_path / "c.json"
    path = str(file)
    outcome = Outcome("c", findings=[{"kind": "broker_down"}], judgements={"gold.allocation": {"agree": 3}}, report="r")
    write_kept(path, "one", outcome.as_dict())
    assert kept_outcome(path, "one") == outcome
    assert kept_outcome(path, "two") is None
    for text in ("", "{}", json.dumps({"state": "one", "kept": {"no": "outcome"}})):
        file.write_text(text)
        assert kept_outcome(path, "one") is None


def test_the_state_changes_with_every_commit(tmp_path):
    warehouse = Warehouse(str(tmp_path))
    seen = {warehouse.state()}
    for cluster in ("c", "d"):
        warehouse.replace_rows("bronze.step", [(cluster, "replay", "2026-11-20", "0" * 32)], RowFilter(cluster))
        seen.add(warehouse.state())
    assert len(seen) == 3
    assert warehouse.state() in seen
    warehouse.drop("bronze.step")  # and made again, up to the same version
    for cluster in ("e", "f"):
        warehouse.replace_rows("bronze.step", [(cluster, "replay", "d", "0" * 32)], None)
    assert warehouse.state() not in seen
