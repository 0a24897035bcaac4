"""Class names of allocation strategies, as real clients of 4.9.7 and 5.3.3 report them."""

from __future__ import annotations

import pytest

from mqreplay.core.allocation import PACKAGES, strategy_name

REPORTED = {
    "AllocateMessageQueueAveragely@56695df8": "AVG",
    "AllocateMessageQueueAveragelyByCircle@5fa9875b": "AVG_BY_CIRCLE",
    "AllocateMessageQueueByConfig@58d82613": "CONFIG",
    "AllocateMessageQueueByMachineRoom@5e92564e": "MACHINE_ROOM",
    "AllocateMachineRoomNearby@662e3ef3": "MACHINE_ROOM_NEARBY",
    "AllocateMessageQueueConsistentHash@70c13619": "CONSISTENT_HASH",
}


@pytest.mark.parametrize(("text", "name"), REPORTED.items())
@pytest.mark.parametrize("package", PACKAGES)
def test_all_strategies_of_rocketmq_have_their_name(package: str, text: str, name: str) -> None:
    assert strategy_name(package + text) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("com.acme.AllocateMessageQueueAveragely@1f", "com.acme.AllocateMessageQueueAveragely"),
        ("org.apache.rocketmq.client.consumer.rebalance.Mine@1f", "org.apache.rocketmq.client.consumer.rebalance.Mine"),
        ("Stock$$Lambda$262/0x00007fe02d158208@2da561e1", "Stock$$Lambda"),
        ("Stock$1@2da561e1", "Stock$1"),
        ("by hand", "by hand"),
        ("@1f", None),
    ],
)
def test_other_classes_keep_their_name(text: str, name: str | None) -> None:
    assert strategy_name(text) == name
