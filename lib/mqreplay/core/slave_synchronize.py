"""Offsets and settings that a slave copies from its master, and when: SlaveSynchronize.

Messages are copied by HA as they come; offsets and settings are fetched whole, every 10 s in 4.9, once a minute in
5.x, and there every 12 s if brokers elect their master. So after a failover a slave's consumer offsets are up to that
much older, and what was consumed since is pulled again. Follows org.apache.rocketmq.broker.slave.SlaveSynchronize and
BrokerController.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mqreplay.core.version import BROKER_4, at_least

QueueOffsets = Mapping[int, int]
OffsetTable = Mapping[str, QueueOffsets]


class Schedule(NamedTuple):
    """The schedule of a slave's requests to its master, all in ms.

    First after ``initial_delay``, then each ``period``; in earnest only if the last time is over ``at_least_after``
    ago.
    """

    initial_delay: int
    period: int
    at_least_after: int


SCHEDULE_4 = Schedule(initial_delay=3_000, period=10_000, at_least_after=0)
SCHEDULE_5 = Schedule(initial_delay=10_000, period=3_000, at_least_after=60_000)
SCHEDULE_OF_ELECTED = Schedule(initial_delay=3_000, period=3_000, at_least_after=10_000)


def schedule(version: str = BROKER_4, elects_master: bool = False) -> Schedule:
    """A slave's schedule by its version, and by whether its master is elected.

    BrokerController#handleSlaveSynchronize, in 5.x #initializeBrokerScheduledTasks; with a controller
    ReplicasManager#handleSlaveSynchronize, with enableDLegerCommitLog DLedgerRoleChangeHandler's.

    >>> schedule("4.9.7").period, schedule("5.3.3").at_least_after, schedule("5.3.3", True).at_least_after
    (10000, 60000, 10000)
    """
    if elects_master and at_least(version, "5.0.0"):
        return SCHEDULE_OF_ELECTED
    return SCHEDULE_5 if at_least(version, "5.0.0") else SCHEDULE_4


def synchronized_parts(version: str = BROKER_4, timer_wheel_enable: bool = True) -> tuple[str, ...]:
    """Return the copied parts in order; a failure of one does not prevent the next.

    5.x adds the request modes (pull or pop) and, with its timer, that one's counts. SlaveSynchronize#syncAll.

    >>> synchronized_parts()
    ('topicConfig', 'consumerOffset', 'delayOffset', 'subscriptionGroupConfig')
    """
    parts: tuple[str, ...] = ("topicConfig", "consumerOffset", "delayOffset", "subscriptionGroupConfig")
    if at_least(version, "5.0.0"):
        parts += ("messageRequestMode",)
        parts += ("timerMetrics",) if timer_wheel_enable else ()
    return parts


def asks_master(master_addr: str | None, broker_addr: str) -> bool:
    """Return whether a slave has a master to ask: it gets one by registering, and is not its own.

    Follows SlaveSynchronize#syncTopicConfig, and the others alike.

    >>> asks_master(None, "1:1"), asks_master("1:1", "1:1"), asks_master("2:1", "1:1")
    (False, False, True)
    """
    return master_addr is not None and master_addr != broker_addr


def is_due(now: int, last_sync_timestamp: int, version: str = BROKER_4, elects_master: bool = False) -> bool:
    """Return whether a turn of the schedule copies anything; in 4.9 always. Times in epoch ms.

    Follows BrokerController#handleSlaveSynchronize (4.9), BrokerController#initializeBrokerScheduledTasks (5.x).

    >>> is_due(60_000, 0, "5.3.3"), is_due(60_001, 0, "5.3.3"), is_due(1, 0)
    (False, True, True)
    """
    threshold = schedule(version, elects_master).at_least_after
    return threshold == 0 or now - last_sync_timestamp > threshold


def staleness_max(version: str = BROKER_4, elects_master: bool = False) -> int:
    """Return the largest age of a slave's offsets in ms, while both brokers run and answer at once.

    The next turn after the threshold, in 5.x up to a period late. The consumers' own delay of 5 s comes on top.
    No method of RocketMQ: it follows from the schedule.

    >>> staleness_max("4.9.7"), staleness_max("5.3.3"), staleness_max("5.3.3", True)
    (10000, 63000, 13000)
    """
    used = schedule(version, elects_master)
    return used.period + used.at_least_after


def sync_consumer_offset(slave: OffsetTable, master: OffsetTable) -> dict[str, QueueOffsets]:
    """Return the slave's offsets after copying its master's: key topic@group -> queue id -> offset in messages.

    Each of the master's keys replaces the slave's whole, queues included, even by lower offsets; keys the master does
    not have stay. So commits taken by the slave while its master was down are lost when the master is back, and a
    group deleted on the master lives on. SlaveSynchronize#syncConsumerOffset.

    >>> sync_consumer_offset({"T@g": {0: 9, 1: 9}, "T@old": {0: 1}}, {"T@g": {0: 5}})
    {'T@g': {0: 5}, 'T@old': {0: 1}}
    """
    return {**slave, **master}


def sync_configs(
    slave: Mapping[str, object], master: Mapping[str, object], same_data_version: bool
) -> Mapping[str, object]:
    """Return the slave's topics or subscription groups after copying its master's.

    Nothing is taken while both versions of the table are equal; else all is, and what the master lacks goes.
    SlaveSynchronize#syncTopicConfig, #syncSubscriptionGroupConfig.

    >>> sync_configs({"T": 1, "U": 1}, {"T": 2}, same_data_version=False)
    {'T': 2}
    """
    return slave if same_data_version else dict(master)


def sync_delay_offset(slave: str | None, master: str | None, version: str = BROKER_4) -> tuple[str | None, bool]:
    """(delayOffset.json of the slave afterwards, whether its running schedule reads it).

    The file is replaced as it is; 4.9 reads it only when it starts or becomes master. SlaveSynchronize#syncDelayOffset.

    >>> sync_delay_offset("old", "new"), sync_delay_offset("old", None)
    (('new', False), ('old', False))
    """
    if master is None:
        return slave, False
    return master, at_least(version, "5.0.0")
