"""Passes name the tables that the contracts have, with the keys by which their files are sorted."""

from __future__ import annotations

import pytest

from mqreplay.engines.passes import Pass
from mqreplay.lake.buckets import key_of
from mqreplay.lake.contract import load_contracts
from mqreplay.replay.plan import PASSES
from mqreplay.replay.queue_pass import QUEUE_PASS

CONTRACTS = load_contracts()


@pytest.mark.parametrize("step", PASSES, ids=lambda step: step.name)
def test_tables_and_columns_of_passes_exist(step: Pass[object, object]) -> None:
    for table in step.tables:
        names = {column.name for column in CONTRACTS[table.name].columns}
        assert set(table.columns or ()) <= names
        assert {name for part in table.key or () for name in part} <= names
    assert set(step.gold) <= set(CONTRACTS)


def test_queues_are_dealt_by_the_keys_of_the_files() -> None:
    keys = {table.name: table.key for table in QUEUE_PASS.tables}
    sorted_tables = {name: key_of(CONTRACTS[name].shard_key) for name in keys if CONTRACTS[name].shard_key}
    assert len(sorted_tables) >= 6
    assert {name: keys[name] for name in sorted_tables} == sorted_tables
