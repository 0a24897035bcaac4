"""Elections and starts in logs as findings, in both languages."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.evidence.brokers.elections import elections
from mqreplay.evidence.brokers.listed_brokers import LISTED_CHANGES
from mqreplay.findings.broker_lists import election_findings, without_listed
from mqreplay.findings.restart_loops import loop_findings
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
OLD = {"event": "inactive", "broker_id": 1, "broker_addr": "h1:1", "ts": at(-2)}
NEW = {"event": "elected", "master_id": 2, "master_addr": "h2:1", "master_epoch": 5, "ts": at(0)}


def events(*differs: Row) -> pl.DataFrame:
    return rows("silver.broker_event", {"broker_name": "b"}, differs)


def summary(*differs: Row) -> str:
    (found,) = election_findings(elections(events(*differs)), "c", 120).to_dicts()
    return str(found["summary"])


@pytest.mark.parametrize(
    ("why", "words"),
    [
        ("expired", "; the controller got no heartbeat of the old one in time."),
        ("closed", "; the connection of the old one to the controller closed."),
        (None, "; the controller lost the old one."),
    ],
)
def test_why_a_controller_elected(why: str | None, words: str) -> None:
    change = "The master of b changed from h1:1 (id 1) to h2:1 (id 2), epoch 5"
    assert summary(OLD | {"detail": why}, NEW) == change + words


def test_no_master_and_many_masters() -> None:
    assert summary(OLD | {"detail": "expired"}, {"event": "not_elected", "ts": at(1)}).startswith(
        "b lost its master at h1:1 (id 1), and the controller found no replica in sync that may become the master;"
    )
    flaps = [
        NEW | {"master_epoch": 5 + n, "master_id": 2 - n % 2, "master_addr": f"h{n % 2}:1", "ts": at(9 * n)}
        for n in range(3)
    ]
    assert summary(*flaps).startswith("The master of b changed 3 times within 18 s to h0:1 (id 2), epoch 7.")


def test_an_election_that_a_name_server_lists_is_one_finding() -> None:
    found = elections(events(NEW))
    listed = {"broker_name": "b", "from_ts": at(-30), "to_ts": at(60)}
    assert len(without_listed(found, pl.DataFrame([listed], LISTED_CHANGES), 120)) == 0
    later = {"broker_name": "b", "from_ts": at(900), "to_ts": at(960)}
    assert len(without_listed(found, pl.DataFrame([later], LISTED_CHANGES), 120)) == 1


def test_starts_without_an_exception() -> None:
    starts = [{"event": "started", "starts": n, "ts": at(30 * n)} for n in (1, 2, 3)]
    (loop,) = loop_findings(events(*starts), "c").to_dicts()
    assert loop["summary"] == (
        "b was started 3 times within 60 s, and was not ready in between; its log shows no exception."
    )
