"""The time for which a producer avoids a broker that answered slowly or not at all.

Each send leaves the broker's latency; the slower it was, the longer the broker counts as not available, and
a failed send counts as a very slow one. Only with sendLatencyFaultEnable, which is off by default. Follows
org.apache.rocketmq.client.latency.MQFaultStrategy and LatencyFaultToleranceImpl. Tables are arguments and
returned, never changed; all times are ms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mqreplay.core.java import string_hash, to_long
from mqreplay.core.java_maps import concurrent_hash_map_order
from mqreplay.core.version import CLIENT_4, CLIENT_5, at_least

LATENCY_MAX = (50, 100, 550, 1_000, 2_000, 3_000, 15_000)
NOT_AVAILABLE_DURATION = (0, 0, 30_000, 60_000, 120_000, 180_000, 600_000)
ISOLATION_LATENCY = 30_000

LATENCY_MAX_5 = (50, 100, 550, 1_800, 3_000, 5_000, 15_000)
NOT_AVAILABLE_DURATION_5 = (0, 0, 2_000, 5_000, 6_000, 10_000, 30_000)
ISOLATION_LATENCY_5 = 10_000

TABLE_CAPACITY = 16  # faultItemTable is made with it


class FaultItem(NamedTuple):
    """One broker: its last latency (ms), when it is available again (epoch ms), since 5.1.4 if it was reached."""

    current_latency: int
    start_timestamp: int
    reachable: bool = True


class FaultSettings(NamedTuple):
    """Latencies (ms) from which a broker is avoided, for how long, and what a failed send counts as."""

    latency_max: Sequence[int]
    not_available_duration: Sequence[int]
    isolation_latency: int


def default_settings(version: str = CLIENT_4) -> FaultSettings:
    """Return the default settings of a client: the longest isolation is ten minutes, since 5.1.4 half a minute.

    Follows MQFaultStrategy#latencyMax and MQFaultStrategy#notAvailableDuration.

    >>> [default_settings(version).not_available_duration[-1] for version in ("4.9.8", "5.3.3")]
    [600000, 30000]
    """
    if at_least(version, "5.1.4"):
        return FaultSettings(LATENCY_MAX_5, NOT_AVAILABLE_DURATION_5, ISOLATION_LATENCY_5)
    return FaultSettings(LATENCY_MAX, NOT_AVAILABLE_DURATION, ISOLATION_LATENCY)


def compute_not_available_duration(
    current_latency: int,
    latency_max: Sequence[int] = LATENCY_MAX,
    not_available_duration: Sequence[int] = NOT_AVAILABLE_DURATION,
) -> int:
    """Return for how many ms a broker is avoided after a latency in ms.

    The last threshold reached counts; 0 below the first. MQFaultStrategy#computeNotAvailableDuration.

    >>> [compute_not_available_duration(latency) for latency in (549, 550, 99_999)]
    [0, 30000, 600000]
    """
    for threshold, duration in zip(reversed(latency_max), reversed(not_available_duration), strict=True):
        if current_latency >= threshold:
            return duration
    return 0


def update_fault_item(
    fault_items: Mapping[str, FaultItem],
    broker_name: str,
    current_latency: int,
    isolation: bool,
    now: int,
    reachable: bool = True,
    settings: FaultSettings | None = None,
    version: str = CLIENT_4,
) -> dict[str, FaultItem]:
    """Return the table after one send (MQFaultStrategy#updateFaultItem, with sendLatencyFaultEnable).

    ``isolation``: the send failed; ``now`` in epoch ms. Before 5.1.4 each send sets the time of availability
    again, so a fast answer frees the broker; since then it is only put off. ``settings`` default to those of the
    version.

    >>> update_fault_item({}, "b", 700, False, now=1_000)
    {'b': FaultItem(current_latency=700, start_timestamp=31000, reachable=True)}
    """
    used = settings or default_settings(version)
    latency = used.isolation_latency if isolation else current_latency
    duration = compute_not_available_duration(latency, used.latency_max, used.not_available_duration)
    start = to_long(now + duration)
    if at_least(version, "5.1.4"):
        before = fault_items[broker_name].start_timestamp if broker_name in fault_items else 0
        start = max(before, start) if duration > 0 else before
    return {**fault_items, broker_name: FaultItem(current_latency, start, reachable)}


def is_available(fault_items: Mapping[str, FaultItem], broker_name: str, now: int, version: str = CLIENT_5) -> bool:
    """Return whether a broker is available at ``now``, epoch ms; an unknown broker always is.

    LatencyFaultToleranceImpl#isAvailable. In 5.1.4 alone, an unreachable broker never is.

    >>> items = {"b": FaultItem(700, 31_000)}
    >>> is_available(items, "b", 30_999), is_available(items, "b", 31_000), is_available(items, "c", 0)
    (False, True, True)
    """
    item = fault_items.get(broker_name)
    if item is None or now < item.start_timestamp:
        return item is None
    return item.reachable or not at_least(version, "5.1.4") or at_least(version, "5.2.0")


def is_reachable(fault_items: Mapping[str, FaultItem], broker_name: str) -> bool:
    """Return whether a 5.x client may send to a broker as a fallback (LatencyFaultToleranceImpl#isReachable).

    >>> is_reachable({"b": FaultItem(1, 0, False)}, "b"), is_reachable({}, "c")
    (False, True)
    """
    item = fault_items.get(broker_name)
    return item is None or item.reachable


def rank_fault_items(fault_items: Mapping[str, FaultItem], now: int) -> list[str]:
    """Return the brokers from best to worst: available ones first, then by latency, then by time of availability.

    LatencyFaultToleranceImpl.FaultItem#compareTo; equals stay in the order of the table they are kept in.
    ``now`` in epoch ms.

    >>> items = {"slow": FaultItem(900, 0), "gone": FaultItem(1, 10), "fast": FaultItem(2, 0)}
    >>> rank_fault_items(items, now=5)
    ['fast', 'slow', 'gone']
    """
    names = concurrent_hash_map_order(fault_items, string_hash, TABLE_CAPACITY)
    return sorted(names, key=lambda name: (not is_available(fault_items, name, now), *fault_items[name][:2]))


def pick_one_at_least(fault_items: Mapping[str, FaultItem], now: int, which_item_worst: int) -> str | None:
    """Return a broker from the better half, if none of the topic's is available, before 5.1.4.

    ``which_item_worst`` is the positive number that turns with every pick, ``now`` in epoch ms. None where nothing is
    known. The half is of all brokers known, also those that do not hold the topic.
    LatencyFaultToleranceImpl#pickOneAtLeast.

    >>> pick_one_at_least({"a": FaultItem(1, 9), "b": FaultItem(2, 9), "c": FaultItem(3, 9)}, 0, 7)
    'a'
    """
    ranked = rank_fault_items(fault_items, now)
    if not ranked:
        return None
    return ranked[which_item_worst % max(1, len(ranked) // 2)]
