"""Descriptions of brokers: versions, and whose answers state the ends of queues."""

from __future__ import annotations

import pytest

from mqreplay.evidence.brokers.broker_descriptions import possible_versions, with_stated_ends
from mqreplay.evidence.offsets.queue_ends import pulled_ends
from silver_moments import at
from silver_rows import rows

PULL = {"topic": "t", "broker_name": "b", "queue_id": 0, "broker_id": 0, "request_ts": at(5), "min_offset": 10}
PULL |= {"max_offset": 50, "response_code": 0}
TIERED = {"messageStorePlugIn": "org.apache.rocketmq.tieredstore.TieredMessageStore"}


def test_a_cold_read_of_the_tiered_store_states_no_end() -> None:
    """MessageStoreFetcherImpl#getMessageAsync: max_offset is what the tiered store has committed."""
    pulls = [
        {"queue_offset": 20},
        {"queue_offset": 50, "response_code": 19},
        {"queue_offset": 5, "response_code": 21},
        {"queue_offset": 20, "response_code": 21},  # the end that is sent with a reset is the queue's
        {"queue_offset": 20, "broker_name": "other"},
    ]
    pull = rows("silver.pull", PULL, pulls)
    broker = {"broker_name": "b", "broker_id": 0, "ts": at(0), "rocketmq_version": "5.3.3"}
    tiered = with_stated_ends(pull, rows("silver.broker", broker, [{"properties": TIERED}]))
    assert tiered["max_offset"].to_list() == [None, 50, None, 50, 50]
    assert pulled_ends(tiered)["queue_max_offset"].to_list() == [50, 50, 50]
    plain = with_stated_ends(pull, rows("silver.broker", broker, [{"properties": {"messageStorePlugIn": " "}}]))
    assert plain["max_offset"].to_list() == [50] * 5


@pytest.mark.parametrize(
    ("differs", "end"),
    [
        ({"remark": "OFFSET_RESET", "next_begin_offset": 0}, None),
        ({"remark": None, "next_begin_offset": 7}, None),
        ({"remark": "NO_MESSAGE_IN_QUEUE", "next_begin_offset": 0}, 0),
        ({"remark": "OFFSET_RESET", "next_begin_offset": 7, "min_offset": 3, "max_offset": 9}, 9),
    ],
)
def test_where_a_broadcasting_client_begins_is_no_end(differs: dict[str, object], end: int | None) -> None:
    """PullMessageProcessor#queryBroadcastPullInitOffset of 5.1: the answer has no ends, so they are sent as 0."""
    answer = {"queue_offset": 12, "response_code": 21, "min_offset": 0, "max_offset": 0}
    pull = with_stated_ends(rows("silver.pull", PULL, [answer | differs]), rows("silver.broker", {}, []))
    assert pull["max_offset"].to_list() == [end]


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("5.3.2", ("5.3.2",)),
        ("V5_3_2", ("V5_3_2",)),
        ("4", ("4.9.7",)),
        ("5", ("5.3.3",)),
        (None, ("4.9.7", "5.3.3")),
        ("unknown", ("4.9.7", "5.3.3")),
    ],
)
def test_the_version_of_a_description_is_its_own(named: str | None, expected: tuple[str, ...]) -> None:
    assert possible_versions({"rocketmq_version": named}) == expected
