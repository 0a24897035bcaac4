"""What a master answers about its slaves, and the sizes that brokers print.

Follows org.apache.rocketmq.store.ha.HAService, CommitLog#submitReplicaRequest (4.x), CommitLog#asyncPutMessage and
#handleHA (5.x), and MixAll#humanReadableByteCount. Offsets and sizes in bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from mqreplay.core.store_settings import int_setting, is_set
from mqreplay.core.version import BROKER_4, at_least

SYNC_MASTER: Final = "SYNC_MASTER"
PUT_OK: Final = "PUT_OK"
SLAVE_NOT_AVAILABLE: Final = "SLAVE_NOT_AVAILABLE"
FLUSH_SLAVE_TIMEOUT: Final = "FLUSH_SLAVE_TIMEOUT"
IN_SYNC_REPLICAS_NOT_ENOUGH: Final = "IN_SYNC_REPLICAS_NOT_ENOUGH"
# haSlaveFallbehindMax of 4.x; haMaxGapNotInSync of 5.x.
FALL_BEHIND_MAX: Final = 256 * 1024 * 1024
LARGEST: Final = 1 << 62  # bytes; more is no size of a log
_SIZE: Final = re.compile(r"([0-9]{1,4})(?:([.,])([0-9]))? (?:([KMGTPE])i)?B")
_UNITS: Final = "KMGTPE"


class ReplicaSettings(NamedTuple):
    """The settings of a master that decide how it waits for slaves; the defaults are those of MessageStoreConfig."""

    role: str = "ASYNC_MASTER"
    fall_behind_max: int = FALL_BEHIND_MAX
    in_sync_replicas: int = 1
    min_in_sync_replicas: int = 1
    all_ack_in_sync_state_set: bool = False
    enable_auto_in_sync_replicas: bool = False
    enable_controller_mode: bool = False
    enable_slave_acting_master: bool = False


def replica_settings(role: str, properties: Mapping[str, str]) -> ReplicaSettings:
    """Return the settings of a broker with this role, in effect now, and these properties.

    Follows MixAll#properties2Object, with the defaults of MessageStoreConfig.

    >>> replica_settings("SYNC_MASTER", {"inSyncReplicas": "2"}).in_sync_replicas
    2
    """
    default = ReplicaSettings()
    of_4 = int_setting(properties, "haSlaveFallbehindMax", default.fall_behind_max)
    return ReplicaSettings(
        role=role,
        fall_behind_max=int_setting(properties, "haMaxGapNotInSync", of_4),
        in_sync_replicas=int_setting(properties, "inSyncReplicas", default.in_sync_replicas),
        min_in_sync_replicas=int_setting(properties, "minInSyncReplicas", default.min_in_sync_replicas),
        all_ack_in_sync_state_set=is_set(properties, "allAckInSyncStateSet"),
        enable_auto_in_sync_replicas=is_set(properties, "enableAutoInSyncReplicas"),
        enable_controller_mode=is_set(properties, "enableControllerMode"),
        enable_slave_acting_master=is_set(properties, "enableSlaveActingMaster"),
    )


def is_slave_ok(
    master_put_where: int, push2_slave_max_offset: int, connection_count: int, fall_behind_max: int = FALL_BEHIND_MAX
) -> bool:
    """Return whether a synchronous master waits for a slave at all (HAService#isSlaveOK of 4.x).

    ``push2_slave_max_offset``: what the most advanced slave has confirmed.

    >>> is_slave_ok(300, 100, 1, 201), is_slave_ok(300, 100, 1, 200), is_slave_ok(300, 300, 0)
    (True, False, False)
    """
    return connection_count > 0 and master_put_where - push2_slave_max_offset < fall_behind_max


def replica_status(settings: ReplicaSettings, slaves_ok: int, version: str = BROKER_4) -> str:
    """Return the PutMessageStatus of a message that waits for the store, by the number of slaves that keep up.

    4.x asks for one slave (CommitLog#submitReplicaRequest). 5.x asks for inSyncReplicas copies, of which the master's
    is one: with the default of 1 a SYNC_MASTER does not wait (CommitLog#asyncPutMessage, #handleHA).

    >>> alone = ReplicaSettings("SYNC_MASTER")
    >>> replica_status(alone, 0), replica_status(alone, 1), replica_status(alone, 0, "5.3.3")
    ('SLAVE_NOT_AVAILABLE', 'PUT_OK', 'PUT_OK')
    >>> replica_status(alone._replace(in_sync_replicas=2), 0, "5.3.3")
    'FLUSH_SLAVE_TIMEOUT'
    """
    if settings.role != SYNC_MASTER:
        return PUT_OK
    if not at_least(version, "5.0.0"):
        return PUT_OK if slaves_ok else SLAVE_NOT_AVAILABLE
    in_sync, needed = 1 + slaves_ok, settings.in_sync_replicas
    if settings.enable_controller_mode:
        if in_sync < settings.min_in_sync_replicas:
            return IN_SYNC_REPLICAS_NOT_ENOUGH
        if settings.all_ack_in_sync_state_set:
            return PUT_OK  # the set shrinks to those that keep up
    elif settings.enable_slave_acting_master:
        if settings.enable_auto_in_sync_replicas:
            needed = max(min(needed, in_sync), settings.min_in_sync_replicas)
        if needed > in_sync:
            return IN_SYNC_REPLICAS_NOT_ENOUGH
    return PUT_OK if needed <= 1 or needed <= in_sync else FLUSH_SLAVE_TIMEOUT


def byte_count_range(text: str) -> tuple[int, int] | None:
    """Return the least and the largest number of bytes that a broker prints so; None for another text or 4 EiB.

    MixAll#humanReadableByteCount with si=false, which rounds to a tenth of a unit. The broker's language decides
    between a point and a comma.

    >>> byte_count_range("749 B"), byte_count_range("3.3 KiB"), byte_count_range("much")
    ((749, 749), (3328, 3430), None)
    """
    size = _SIZE.fullmatch(text.strip())
    if size is None:
        return None
    whole, point, tenth, unit = size.groups()
    if unit is None:
        return None if point else (int(whole), int(whole))
    if not point:
        return None
    tenths, size = 10 * int(whole) + int(tenth), 1024 ** (1 + _UNITS.index(unit))
    # In twentieths of a unit, rounded inwards.
    least, largest = -(-(2 * tenths - 1) * size // 20), ((2 * tenths + 1) * size - 1) // 20
    return (least, largest) if largest <= LARGEST else None
