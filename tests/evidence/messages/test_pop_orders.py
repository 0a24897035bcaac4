"""Queues that a message without acknowledgement blocks, by copies of consumerOrderInfo.json."""

from __future__ import annotations

import polars as pl

from mqreplay.evidence.messages.pop_orders import blocked_orders
from mqreplay.findings.pop_order import pop_order_findings
from silver_moments import at
from silver_rows import rows

PLACE = {"source_name": "b-0", "broker_name": "b", "broker_id": 0, "topic": "t", "consumer_group": "g", "queue_id": 3}
Copy = tuple[float, int, list[int], int]  # second, second of the POP, offset_list, acknowledged bits


def blocked(
    records: list[Copy], copies: list[float] | None = None, invisible_s: float = 30, **differs: object
) -> list[tuple]:
    return frame(records, copies, invisible_s, **differs).select("from_ts", "to_ts", "offset", "unacknowledged").rows()


def frame(
    records: list[Copy], copies: list[float] | None = None, invisible_s: float = 30, **differs: object
) -> pl.DataFrame:
    orders = [
        {
            "ts": at(second),
            "change": "changed",
            "pop_time": int(at(pop_s).timestamp() * 1000),
            "invisible_time": int(invisible_s * 1000),
            "offset_list": offsets,
            "last_consume_timestamp": 0,
            "commit_offset_bit": bits,
        }
        for second, pop_s, offsets, bits in records
    ]
    copied = [{"ts": at(second)} for second in (copies or [second for second, *_ in records])]
    of_file = {"source_name": "b-0", "file_name": "consumerOrderInfo.json"}
    return blocked_orders(
        rows("silver.pop_order", PLACE | differs, orders), rows("silver.snapshot", of_file, copied), 60
    )


AGAIN: list[Copy] = [(float(second), second, [5, 1, 2], 0b010) for second in range(0, 121, 30)]


def test_a_message_handed_out_again_and_again_blocks_its_queue() -> None:
    assert blocked(AGAIN) == [(at(0), at(120), 5, 2)]


def test_a_long_invisible_time_blocks_while_copies_show_it() -> None:
    hangs: list[Copy] = [(0, 0, [5], 0)]
    assert blocked(hangs, [0, 30, 60, 90, 200], 100) == [(at(0), at(100), 5, 1)]
    assert blocked(hangs, [0, 30, 60, 90], 300) == [(at(0), at(90), 5, 1)]


def test_a_group_that_left_blocks_nothing() -> None:
    assert blocked([(0, 0, [5], 0)], [0, 60, 600], 30) == []


def test_progress_is_no_block() -> None:
    assert blocked([(float(second), second, [second, 1], 0) for second in range(0, 301, 30)]) == []
    assert blocked([(0, 0, [5, 1], 0), (50, 0, [5, 1], 1), (100, 0, [5, 1], 3)]) == []


def test_nothing_is_known_between_two_copies() -> None:
    assert blocked([(0, 0, [5], 0), (3600, 3590, [9], 0)], None, 4000) == []


def test_only_masters_count() -> None:
    assert blocked(AGAIN, broker_id=1) == []


def test_a_removed_record_ends_the_block() -> None:
    assert blocked([]) == []
    gone = frame(AGAIN, [*range(0, 121, 30), 150], 300)
    assert gone["to_ts"].to_list() == [at(150)]


def test_a_group_and_topic_have_one_finding() -> None:
    one = frame(AGAIN)
    both = pl.concat([one, one.with_columns(queue_id=pl.lit(4, pl.Int32))])
    (found,) = pop_order_findings(both, "c", 60).rows(named=True)
    assert found["summary"] == (
        "Group g did not acknowledge the first message of t in b/3 at 5, b/4 at 5 for 120 s; 4 messages were handed out"
        " and not acknowledged, and block what follows."
    )
    assert (found["severity"], found["broker_name"], found["queue_id"]) == ("warning", "b", None)
    assert found["evidence_count"] == 2
