"""Offsets that no queue has: by one answer of the master, by files of clients, and by their number alone."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.decode.consumer_offset import LARGEST_OFFSET
from mqreplay.evidence.offsets.odd_offsets import NEGATIVE, ODD, PAST_END, UNSURE, odd_offsets_of_answers
from mqreplay.evidence.offsets.odd_offsets import odd_offsets_of_shard as of_shard
from mqreplay.evidence.offsets.queue_ends import polled_ends
from silver_moments import at
from silver_rows import rows

MOST = 2**63 - 1
Row = dict[str, Any]


def answer(second: float, offset: int, end: int, stored: float | None = None, **differs: Any) -> Row:
    """A row of silver.consume_stats as `mqreplay import` writes it; the recorder's have a response_code."""
    queue = {"topic": "T", "broker_name": "b", "queue_id": 0, "broker_offset": end, "consumer_offset": offset}
    queue["last_timestamp"] = None if stored is None else at(stored)
    return {"ts": at(second), "consumer_group": "g", "broker_name": "b", "offsets": [queue]} | differs


def ends(*stated: tuple[float, int]) -> pl.DataFrame:
    listed = [
        {
            "ts": at(second),
            "broker_id": 0,
            "offsets": [{"topic": "T", "broker_name": "b", "queue_id": 0, "max_offset": end}],
        }
        for second, end in stated
    ]
    return rows("silver.topic_stats", {}, listed)


def answered(*answers: Row, stated: tuple[tuple[float, int], ...] = ()) -> list[tuple[Any, ...]]:
    found = odd_offsets_of_answers(rows("silver.consume_stats", {}, answers), ends(*stated))
    assert found.schema == pl.Schema(ODD)
    return found.select("odd", "offset", "queue_max_offset", "from_ts", "to_ts").sort("offset").rows()


POLLED = {"response_code": 0, "broker_id": 0}


@pytest.mark.parametrize(
    ("answers", "stated", "odd"),
    [
        pytest.param([answer(0, 647260583, 100, 0)], (), PAST_END, id="one answer, far past"),
        pytest.param([answer(0, 130, 120, 0)], (), UNSURE, id="one answer, near"),
        pytest.param([answer(0, 130, 120, 0)], ((60, 125),), PAST_END, id="near, and the queue ends before it later"),
        pytest.param([answer(0, 130, 120, 0)], ((60, 130),), None, id="near, and the queue reaches it"),
        pytest.param([answer(0, 130, 120, 0), answer(5, 130, 120, 0)], (), PAST_END, id="near, twice"),
        pytest.param([answer(0, 130, 120, 0), answer(5, 140, 139, 0)], (), UNSURE, id="it moves: the last is unsure"),
        pytest.param([answer(0, 120, 120, 0)], (), None, id="at the end"),
        pytest.param([answer(0, 5000, 120, broker_id=1)], (), None, id="a slave may lack messages"),
        pytest.param([answer(0, 130, 120, 0, **POLLED)], (), None, id="polled: the broker has a message there"),
        pytest.param([answer(0, 9130, 120, 0, **POLLED)], (), None, id="polled, far: the broker has a message there"),
        pytest.param([answer(0, 130, 120, **POLLED)], (), PAST_END, id="polled: the broker has no message there"),
        pytest.param([answer(0, -1, 120)], (), None, id="no entry"),
        pytest.param([answer(0, -3, 120)], (), NEGATIVE, id="negative"),
    ],
)
def test_one_answer(answers: list[Row], stated: tuple[tuple[float, int], ...], odd: str | None) -> None:
    assert [row[0] for row in answered(*answers, stated=stated)] == ([] if odd is None else [odd])


def test_an_offset_that_stays_is_one_row_from_its_first_to_its_last_answer() -> None:
    found = answered(*(answer(second, 9000, 100 + second, **POLLED) for second in (0, 60, 120)))
    assert found == [(PAST_END, 9000, 100, at(0), at(120))]


def change(offset: int | None, **differs: Any) -> Row:
    entry = {"source_name": "b-0", "broker_name": "b", "broker_id": 0, "topic": "T", "consumer_group": "g"}
    return entry | {"queue_id": 0, "to_ts": at(0), "new_offset": offset} | differs


OF_CLIENT = {"source_name": "client-c", "broker_id": None, "client_id": "c"}


@pytest.mark.parametrize(
    ("row", "stated", "found"),
    [
        pytest.param(change(501, **OF_CLIENT), ((10, 500),), (PAST_END, 500), id="a client, past the end"),
        pytest.param(change(500, **OF_CLIENT), ((10, 500),), None, id="a client, at the end"),
        pytest.param(change(501, **OF_CLIENT), ((-10, 500),), None, id="a client, the queue may have grown"),
        pytest.param(change(501, **OF_CLIENT), (), None, id="a client, no end"),
        pytest.param(change(501), ((10, 500),), None, id="a broker, in gold.offset_continuity"),
        pytest.param(change(MOST), ((10, 500),), None, id="a broker, in gold.offset_continuity too"),
        pytest.param(change(MOST), (), (PAST_END, None), id="a broker, past any end"),
        pytest.param(change(LARGEST_OFFSET), (), None, id="a broker, the last possible end"),
        pytest.param(change(-1), (), (NEGATIVE, None), id="a broker, negative"),
        pytest.param(change(-7955368551255983524, **OF_CLIENT), ((10, 9),), (NEGATIVE, 9), id="a client, negative"),
        pytest.param(change(None), ((10, 500),), None, id="removed"),
    ],
)
def test_changes_of_files(
    row: Row, stated: tuple[tuple[float, int], ...], found: tuple[str, int | None] | None
) -> None:
    odd = of_shard(rows("silver.offset_change", {}, [row]), polled_ends(ends(*stated)))
    assert odd.schema == pl.Schema(ODD)
    assert odd.select("odd", "queue_max_offset").rows() == ([] if found is None else [found])
    assert odd["client_id"].to_list() == ([] if found is None else [row.get("client_id")])
