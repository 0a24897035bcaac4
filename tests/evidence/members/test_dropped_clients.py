"""Clients that a broker dropped without an unregistration: lost, unless its log or another sign says otherwise."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.evidence.gap_rows import GAP
from mqreplay.evidence.members.dropped_clients import dropped_clients, dropped_gaps, dropped_signs
from mqreplay.evidence.members.membership import membership, signs
from silver_moments import at
from silver_rows import rows

SILENT_S, LOST_S = 90, 45
Row = dict[str, Any]


def beats(*seconds: float, client: str = "c", broker: str = "a") -> list[Row]:
    data = ("g", "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET", False, [("T", "*", "TAG", 1)])
    row = {"client_id": client, "kind": "HEART_BEAT", "consumer_data_set": [data], "broker_name": broker}
    return [row | {"ts": at(second)} for second in seconds]


def closed(second: float, heard: float | None, client: str = "c", broker: str = "a") -> Row:
    row = {"client_id": client, "kind": "CHANNEL_CLOSE", "closed_consumer_group": "g", "broker_name": broker}
    return row | {"ts": at(second), "heard_ts": None if heard is None else at(heard)}


def left(second: float, broker: str = "a") -> Row:
    row = {"client_id": "c", "kind": "UNREGISTER_CLIENT", "unregistered_consumer_group": "g", "broker_name": broker}
    return row | {"ts": at(second)}


def lines(*seconds: float, broker: str = "a", error: str | None = None, source: str = "broker_log") -> list[Row]:
    row = {"broker_name": broker, "error": error, "source": source}
    return [row | {"ts": at(second)} for second in seconds]


WHOLE = lines(*range(0, 601, 60))
WHOLE_B = lines(*range(0, 601, 60), broker="b")
STOP = lines(203, error="stopped")


def judged(heartbeats: list[Row], runtime: list[Row]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The members and the gaps."""
    heartbeat = rows("silver.heartbeat", {"broker_id": 0, "source": "broker_log"}, heartbeats)
    dropped = dropped_clients(heartbeat, rows("silver.broker_runtime", {"broker_id": 0}, runtime), LOST_S)
    none = [rows(f"silver.{name}", {}, []) for name in ("rebalance", "assignment")]
    members = membership(pl.concat([signs(heartbeat, *none), dropped_signs(dropped)]), SILENT_S)
    return members.sort("session"), dropped_gaps(dropped, members)


@pytest.mark.parametrize(
    ("heartbeats", "runtime", "dropped", "last", "has_gap"),
    [
        pytest.param([*beats(0, 60, 120, 180), closed(200, 190)], WHOLE, "closed", 190, False, id="killed"),
        pytest.param([closed(200, 190)], WHOLE, "closed", 190, False, id="joined before the log begins"),
        pytest.param([*beats(0, 60, 120), closed(320, None)], WHOLE, "expired", 200, False, id="no time in the line"),
        pytest.param(
            [*beats(0, 60, 120, 180), closed(200, 190), *beats(220, 280)], WHOLE, None, 280, False, id="connected again"
        ),
        pytest.param(
            [*beats(0, 60, 120, 180), *beats(*range(0, 600, 60), broker="b"), closed(200, 190)],
            [*WHOLE, *WHOLE_B],
            None,
            540,
            False,
            id="registered at another broker",
        ),
        pytest.param(
            [*beats(0, 60, 120, 180), closed(200, 190), closed(201, 191, broker="b")],
            [*WHOLE, *WHOLE_B],
            "closed",
            191,
            False,
            id="closed by both brokers",
        ),
        pytest.param(
            [*beats(0, 60, 120, 180), closed(200, 190)], lines(0, 60, 120, 180, 220), None, 180, True, id="the log ends"
        ),
        pytest.param(
            [*beats(0, 60, 120, 180), closed(200, 190)], [*WHOLE, *STOP], None, 180, True, id="the broker stops"
        ),
        pytest.param(
            [*beats(0, 60, 120, 180), closed(200, 190), *beats(300)],
            [*WHOLE, *STOP],
            None,
            180,
            False,
            id="the broker stops and the client comes back",
        ),
        pytest.param(
            [*beats(0, 60, 120, 180), closed(200, 190)],
            [*lines(0, 60, 120, 180), *lines(240, 300, 360, source="namesrv_log")],
            None,
            180,
            True,
            id="only a name server goes on",
        ),
    ],
)
def test_who_was_dropped(
    heartbeats: list[Row], runtime: list[Row], dropped: str | None, last: float, has_gap: bool
) -> None:
    members, gaps = judged(heartbeats, runtime)
    first = members.row(0, named=True)
    assert (first["dropped"], first["to_ts"], first["left"]) == (dropped, at(last), False)
    assert gaps.schema == pl.Schema(GAP)
    assert len(gaps) == has_gap
    if has_gap:
        (row,) = gaps.to_dicts()
        assert (row["decision"], row["consumer_group"], row["decisions"]) == ("finding consumer_lost", "g", 1)
        assert "the log of a does not show" in row["reason"]


@pytest.mark.parametrize("heard", [185, None], ids=["closed", "expired"])
@pytest.mark.parametrize("unregistered", [190, 202])
def test_a_client_that_unregistered_at_another_broker_left(heard: int | None, unregistered: float) -> None:
    at_s = 200 if heard else 320
    runtime = [*lines(*range(0, 601, 60)), *WHOLE_B]
    members, gaps = judged([*beats(0, 60, 120, 180), closed(at_s, heard), left(unregistered, broker="b")], runtime)
    assert members["left"].to_list() == [True]
    assert gaps.is_empty()


def test_a_client_that_left_while_the_broker_stopped_has_no_gap() -> None:
    _, gaps = judged([*beats(0, 60, 120, 180), left(195, broker="b"), closed(200, 190)], [*WHOLE, *STOP])
    assert gaps.is_empty()
