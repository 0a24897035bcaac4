"""Owners after a failed poll of a client: not known, which is not nobody."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from made_warehouse import made_warehouse
from mqreplay.answers.ready import readiness
from mqreplay.answers.state import state_at
from mqreplay.moment.instant import Recorded
from mqreplay.moment.queues import queues_at
from mqreplay.settings import Settings
from mqreplay.suppose.instants import lost_master

AT = dt.datetime(2026, 11, 21, 2, 30, tzinfo=dt.UTC)
DAY = AT.date()
MEMBER = {"consumer_group": "g", "client_id": "c1", "day": DAY}
TEXT = "the owner of 1 queue of g since 02:29:00 UTC: c1 held it until then, and its next poll failed"


def ago(seconds: float) -> dt.datetime:
    return AT - dt.timedelta(seconds=seconds)


def poll(seconds: float, error: str | None = None) -> dict[str, Any]:
    return MEMBER | {"ts": ago(seconds), "record_id": str(seconds), "source": "running_info", "error": error}


def night(folder: Path, *polls: dict[str, Any], member_until: float = -60) -> Recorded:
    """c1 held a queue until a minute ago; ``member_until``: seconds before AT at which its session ends."""
    queue = {"topic": "t", "broker_name": "b", "queue_id": 0}
    held = MEMBER | queue | {"from_ts": ago(600), "to_ts": ago(60), "source": "running_info"}
    session = MEMBER | {"from_ts": ago(600), "to_ts": ago(member_until), "ended": "silent", "shares_queues": True}
    master = {"broker_name": "b", "broker_id": 0}
    tables: dict[str, list[dict[str, Any]]] = {
        "gold.queue_owner": [held],
        "gold.member": [session],
        "silver.assignment": [poll(600), poll(60), *polls],
        "silver.offset_commit": [
            MEMBER
            | queue
            | {"kind": "UPDATE", "ts": ago(300), "commit_offset": 7, "broker_id": 0, "error": None, "response_code": 0}
        ],
        "silver.broker": [master | {"ts": ago(600), "recording": "r"}],
        "silver.broker_runtime": [master | {"ts": ago(5), "error": None, "day": DAY}],
    }
    return Recorded(made_warehouse(folder, tables), "c", ago(1200), AT + dt.timedelta(hours=1))


@pytest.mark.parametrize(
    ("polls", "owners"),
    [
        ([poll(40, "timeout"), poll(-30)], None),
        ([poll(40, "timeout"), poll(20, "timeout")], None),
        ([poll(-10, "timeout")], None),  # the poll after the last answer fails later
        ([poll(40, "timeout"), poll(20)], []),  # another answer, without the queue
        ([poll(40)], []),
    ],
)
def test_the_owner_after_a_failed_poll_is_not_known(tmp_path: Path, polls: list[dict[str, Any]], owners: Any) -> None:
    (row,) = queues_at(night(tmp_path, *polls), AT).to_dicts()
    assert row["owners"] == owners
    known = (["c1"], ago(60).replace(tzinfo=None)) if owners is None else (None, None)
    assert (row["last_owners"], row["unknown_since"] and row["unknown_since"].replace(tzinfo=None)) == known


def test_a_client_that_left_holds_nothing(tmp_path: Path) -> None:
    recorded = night(tmp_path, poll(40, "timeout"), member_until=30)
    assert queues_at(recorded, AT)["owners"].to_list() == [[]]


def test_each_answer_says_who_held_it_last(tmp_path: Path) -> None:
    recorded = night(tmp_path, poll(40, "timeout"))
    state = state_at(recorded, AT)
    assert TEXT in state.unknown
    assert state.groups.select(pl.col("without_owner")).item() == 0
    ready = readiness(recorded, "b", 0, AT, Settings())
    assert ready is not None
    assert [check.text for check in ready.checks if check.name == "owners"] == [f"not known: {TEXT}"]
    lost = lost_master(recorded, "b", AT)
    assert (lost.readers, lost.unknown_readers) == ({}, [TEXT])
