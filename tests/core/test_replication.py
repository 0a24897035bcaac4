"""What a master answers about its slaves, and the sizes that brokers print."""

from __future__ import annotations

import pytest

from mqreplay.core.replication import (
    FALL_BEHIND_MAX,
    FLUSH_SLAVE_TIMEOUT,
    IN_SYNC_REPLICAS_NOT_ENOUGH,
    PUT_OK,
    SLAVE_NOT_AVAILABLE,
    ReplicaSettings,
    byte_count_range,
    is_slave_ok,
    replica_settings,
    replica_status,
)

ALONE = ReplicaSettings("SYNC_MASTER")
SETS = {"role": "SYNC_MASTER", "in_sync_replicas": 3, "min_in_sync_replicas": 2}


def test_a_slave_256_mib_behind_counts_as_none() -> None:
    assert is_slave_ok(FALL_BEHIND_MAX + 9, 10, 1)
    assert not is_slave_ok(FALL_BEHIND_MAX + 10, 10, 1)
    assert not is_slave_ok(10, 10, 0)


@pytest.mark.parametrize(
    ("settings", "slaves", "version", "status"),
    [
        (ReplicaSettings(), 0, "4.9.7", PUT_OK),
        (ALONE, 0, "4.9.7", SLAVE_NOT_AVAILABLE),
        (ALONE, 1, "4.9.7", PUT_OK),
        (ALONE, 0, "5.3.3", PUT_OK),
        (ALONE._replace(in_sync_replicas=2), 0, "5.3.3", FLUSH_SLAVE_TIMEOUT),
        (ALONE._replace(in_sync_replicas=2), 1, "5.3.3", PUT_OK),
        (ReplicaSettings(**SETS, enable_controller_mode=True), 0, "5.3.3", IN_SYNC_REPLICAS_NOT_ENOUGH),
        (ReplicaSettings(**SETS, enable_controller_mode=True), 1, "5.3.3", FLUSH_SLAVE_TIMEOUT),
        (
            ReplicaSettings(**SETS, enable_controller_mode=True, all_ack_in_sync_state_set=True),
            1,
            "5.3.3",
            PUT_OK,
        ),
        (ReplicaSettings(**SETS, enable_slave_acting_master=True), 1, "5.3.3", IN_SYNC_REPLICAS_NOT_ENOUGH),
        (
            ReplicaSettings(**SETS, enable_slave_acting_master=True, enable_auto_in_sync_replicas=True),
            1,
            "5.3.3",
            PUT_OK,
        ),
    ],
)
def test_the_status_of_a_message_that_waits(settings: ReplicaSettings, slaves: int, version: str, status: str) -> None:
    assert replica_status(settings, slaves, version) == status


def test_settings_of_4_and_5() -> None:
    assert replica_settings("SYNC_MASTER", {"haSlaveFallbehindMax": "7"}).fall_behind_max == 7
    read = replica_settings("SYNC_MASTER", {"haMaxGapNotInSync": "8", "enableControllerMode": "true"})
    assert (read.fall_behind_max, read.enable_controller_mode, read.in_sync_replicas) == (8, True, 1)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("0 B", (0, 0)),
        ("1023 B", (1023, 1023)),
        ("1.0 KiB", (973, 1075)),
        ("3,3 KiB", (3328, 3430)),
        ("10.4 MiB", (10_852_762, 10_957_619)),
        ("9999.9 EiB", None),
        ("-5 B", None),
        ("3.3 B", None),
        ("3 KiB", None),
        ("", None),
    ],
)
def test_sizes(text: str, sizes: tuple[int, int] | None) -> None:
    assert byte_count_range(text) == sizes
