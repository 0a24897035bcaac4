"""Rules that changed begin with the release that changed them, not with 5.0.0: each side of every boundary."""

from __future__ import annotations

from typing import Any

import pytest

from mqreplay.core.consume_queue import ConsumeQueue, CqUnit
from mqreplay.core.faq_url import default_faq_url
from mqreplay.core.fault_strategy import FaultItem, default_settings, update_fault_item
from mqreplay.core.get_message import CommitLog, StoreConfig, get_message
from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.process_queue import ProcessQueue, PulledMessage
from mqreplay.core.rebalance import HeldQueue, drop_queues
from mqreplay.core.send_back_client import ConsumedMessage, as_normal_message, orderly_retry_message, send_message_back
from mqreplay.core.send_retry import TryKind, TryOutcome, isolates_broker, retries_async, retry_response_codes
from mqreplay.core.slave_suggestion import TransferLimits, effective_ratio, is_the_batch_full
from mqreplay.core.sql92 import compile_sql92
from mqreplay.words.errors import NullPointer

QUEUE = MessageQueue("T", "b", 0)


def removes_a_queue_in_consumption(version: str) -> bool:
    held = {QUEUE: HeldQueue(0, consuming=True)}
    return drop_queues("T", held, [], 20_001, orderly=True, version=version).removed == (QUEUE,)


def takes_a_missing_body(version: str) -> bool:
    try:
        ProcessQueue(version).put_message([PulledMessage(0, body_size=None)])
    except NullPointer:
        return False
    return True


def frees_by_a_fast_answer(version: str) -> bool:
    before = {"b": FaultItem(700, 31_000)}
    return update_fault_item(before, "b", 1, False, now=2_000, version=version)["b"].start_timestamp == 2_000


def asks_without_address(version: str) -> bool:
    message = ConsumedMessage("T", "ID", 0)
    return send_message_back(message, 0, None, None, "g", version=version).sent_back_to_broker is not None


def entries_read(version: str) -> int:
    queue = ConsumeQueue([CqUnit(i * 100, 100) for i in range(17_000)])
    config = StoreConfig(10**12)
    return get_message(queue, 0, 32, CommitLog(1_700_000), config, lambda _: False, version).next_begin_offset


BOUNDARIES = {
    "a slave subtracts 10 from its ratio": ("5.1.0", lambda v: effective_ratio(40, "SLAVE", v), 40, 30),
    "the page of errors": ("5.1.0", lambda v: default_faq_url(v)[:5], "http:", "https"),
    "an orderly dead letter has one more retry": (
        "5.1.1",
        lambda v: orderly_retry_message(ConsumedMessage("T", "ID", 3), "g", 3, v).properties["RECONSUME_TIME"],
        "3",
        "4",
    ),
    "a broker is avoided for half a minute at most": (
        "5.1.4",
        lambda v: default_settings(v).not_available_duration[-1],
        600_000,
        30_000,
    ),
    "a fast answer frees a broker": ("5.1.4", frees_by_a_fast_answer, True, False),
    "an MQClientException isolates": ("5.1.4", lambda v: isolates_broker(TryOutcome(TryKind.CLIENT), v), True, False),
    "a queue is unlocked by force": ("5.2.0", removes_a_queue_in_consumption, False, True),
    "a busy broker is tried again": ("5.3.0", lambda v: 2 in retry_response_codes(v), False, True),
    "a broker that goes away is tried again": ("5.3.1", lambda v: 1500 in retry_response_codes(v), False, True),
    "an asynchronous send without time left is repeated": (
        "5.3.2",
        lambda v: retries_async(False, 1, 0, version=v),
        True,
        False,
    ),
    "an answer has no more than 128 MiB": (
        "5.0.0",
        lambda v: is_the_batch_full(1, 32, 1 << 27, 1, False, TransferLimits(1 << 30), v),
        False,
        True,
    ),
    "a message that the broker did not take keeps its first id": (
        "5.3.4",
        lambda v: as_normal_message(ConsumedMessage("T", "ID", 1), "g", -1, v).properties.get("ORIGIN_MESSAGE_ID"),
        None,
        "ID",
    ),
    "a message goes back to an unknown address": ("5.3.2", asks_without_address, True, False),
    "a message without a body is put": ("5.3.2", takes_a_missing_body, False, True),
    "a condition has CONTAINS": ("5.1.3", lambda v: str(compile_sql92("a CONTAINS 'x'", v)), "a", "(CONTAINS a)"),
}
RELEASES = (
    "4.9.8",
    "5.0.0",
    "5.1.0",
    "5.1.1",
    "5.1.2",
    "5.1.3",
    "5.1.4",
    "5.2.0",
    "5.3.0",
    "5.3.1",
    "5.3.2",
    "5.3.3",
    "5.3.4",
)


@pytest.mark.parametrize("name", BOUNDARIES)
def test_a_rule_changes_with_its_release(name: str) -> None:
    since, rule, before, after = BOUNDARIES[name]
    first = RELEASES.index(since)
    found: list[Any] = [rule(version) for version in RELEASES]
    assert found == [before] * first + [after] * (len(RELEASES) - first)


@pytest.mark.parametrize(
    ("version", "entries"),
    [("4.9.8", 800), ("5.0.0", 16_001), ("5.1.0", 801), ("5.3.2", 801), ("5.3.3", 800), ("5.5.0", 800)],
)
def test_a_filtering_pull_reads_a_number_of_entries_by_its_release(version: str, entries: int) -> None:
    assert entries_read(version) == entries
