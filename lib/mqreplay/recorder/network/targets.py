"""The targets of polls, from what the recorder knows: whom to ask what, and how often. Pure.

Brokers do not know the members behind a proxy in cluster mode, but each proxy knows them. Brokers know the proxies as
members of PROXY_GROUP, with their host but without their port.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final
from zlib import crc32

from mqreplay.core.delay_level import SCHEDULE_TOPIC
from mqreplay.core.retry_topic import DLQ_GROUP_TOPIC_PREFIX, is_retry_topic
from mqreplay.core.system_names import PROXY_GROUP
from mqreplay.recorder.network.estate import Estate
from mqreplay.recorder.network.options import RecordOptions
from mqreplay.recorder.network.polls import POLLS, PROXY_MEMBERS, RARELY_MS, SELDOM_MS
from mqreplay.recorder.network.schedule import Plan, Target
from mqreplay.recorder.network.topology import Broker, leaders
from mqreplay.words.time_span import MINUTE_MS

MEMBERS_WEIGHT: Final = 2  # each master of a cluster has the same members
NO_MEMBERS_MS: Final = 20_000  # a broker logs a warning for each request about a group without members
MOVING_MS: Final = 30_000
MOST_SINGLE_QUEUES: Final = 64  # queues of a topic that does not grow up to which 30 is asked for each; 202 for more
REMOTING_PORT: Final = 8080  # ProxyConfig#remotingListenPort by default


def plans(
    options: RecordOptions,
    name_servers: Sequence[str],
    brokers: Sequence[Broker],
    silent: set[str],
    estate: Estate,
    is_known: Callable[[str], bool] = lambda _: True,
) -> dict[Target, Plan]:
    """Return all targets. ``silent`` are the addresses that do not answer now.

    A broker that never answered (``is_known``) is only probed: name servers may list any number of them.
    """
    every = int(options.every_s * 1000)
    planned = dict(_of_name_servers(every, name_servers, silent, estate))
    for broker in brokers:
        if not is_known(broker.addr):
            probe = POLLS["runtime"].planned(every, urgent=False, is_shared=True)
            planned[Target("runtime", broker.addr, broker.key)] = probe
    brokers = [each for each in brokers if is_known(each.addr)]
    for broker in brokers:
        planned |= _of_broker(every, broker, estate)
    for broker in leaders(brokers, silent):
        planned |= _of_groups(every, broker, estate)
        planned |= _of_topics(every, broker, estate)
        if estate.has_proxies():
            target = Target("connections", broker.addr, broker.key, PROXY_GROUP)
            planned[target] = POLLS["connections"].planned(every)
    planned |= _of_proxies(every, options.proxies, estate)
    planned |= _of_clients(every, {each.key: each.addr for each in brokers if each.addr not in silent}, estate)
    return planned


def proxy_addrs(known: Sequence[str], hosts: set[str]) -> list[str]:
    """Return the addresses of proxies: those with the addresses ``known``, and the default port of the other hosts.

    >>> proxy_addrs(["10.0.0.1:9090"], {"10.0.0.1", "10.0.0.2"})
    ['10.0.0.1:9090', '10.0.0.2:8080']
    """
    known_hosts = {each.rpartition(":")[0] for each in known}
    return [*known, *(f"{host}:{REMOTING_PORT}" for host in sorted(hosts - known_hosts))]


def is_probe(target: Target) -> bool:
    """Return whether an answer shows that a server of any kind is alive."""
    is_of_proxy = target.kind == PROXY_MEMBERS and target.subject == PROXY_GROUP
    return target.kind in ("runtime", "cluster_info") or is_of_proxy


def _of_name_servers(
    every: int, addrs: Sequence[str], silent: set[str], estate: Estate
) -> Iterator[tuple[Target, Plan]]:
    for addr in addrs:
        yield Target("cluster_info", addr), POLLS["cluster_info"].planned(every)
    asked = [addr for addr in addrs if addr not in silent] or list(addrs)
    for addr in asked:
        yield Target("name_server_config", addr), POLLS["name_server_config"].planned(every)
    yield Target("topic_list", asked[0]), POLLS["topic_list"].planned(every)
    listed = estate.listed_topics
    for topic in estate.consumed_topics():
        period = _topic_period(every, topic) if listed is None or topic in listed else RARELY_MS
        first = _spread(topic) % period
        for place, addr in enumerate(asked):  # in turn
            plan = POLLS["route"].planned(period, phase_ms=first + place * period // len(asked))
            yield Target("route", addr, None, topic), plan


def _of_broker(every: int, broker: Broker, estate: Estate) -> dict[Target, Plan]:
    return {
        Target(kind, broker.addr, broker.key): poll.planned(
            SELDOM_MS if (broker.key, kind) in estate.unsupported else every
        )
        for kind, poll in POLLS.items()
        if poll.of_broker
    }


def _of_groups(every: int, broker: Broker, estate: Estate) -> dict[Target, Plan]:
    planned = {}
    for group in estate.groups():
        has_members = estate.has_members(group)
        period, weight = (every, MEMBERS_WEIGHT) if has_members else (max(every, NO_MEMBERS_MS), 1)
        planned[Target("members", broker.addr, broker.key, group)] = POLLS["members"].planned(period, weight=weight)
        for kind in ("connections", "consume_stats") if has_members else ():
            planned[Target(kind, broker.addr, broker.key, group)] = POLLS[kind].planned(every)
    return planned


def _of_topics(every: int, broker: Broker, estate: Estate) -> dict[Target, Plan]:
    counts, poll = estate.queue_counts.get(broker.key, {}), POLLS["topic_offsets"]
    planned = {
        Target("topic_offsets", broker.addr, broker.key, topic): poll.planned(
            _topic_period(every, topic),
            cost=1 if (broker.key, topic) in estate.moved_topics else min(max(1, counts[topic]), MOST_SINGLE_QUEUES),
        )
        for topic in estate.consumed_topics() | estate.revive_topics() | estate.dead_letter_topics()
        if topic in counts
    }
    if estate.records_all and SCHEDULE_TOPIC in counts:
        # Its progress is that of delayOffset.json, which is polled as often. The cost is that of consume_stats.
        target = Target("topic_offsets", broker.addr, broker.key, SCHEDULE_TOPIC)
        planned[target] = poll.planned(max(every, MINUTE_MS), cost=POLLS["consume_stats"].plan.cost)
    return planned


def _topic_period(every: int, topic: str) -> int:
    """Return the poll interval of a topic: longer for retry and dead letter topics, which seldom change."""
    return max(every, MINUTE_MS if is_retry_topic(topic) or topic.startswith(DLQ_GROUP_TOPIC_PREFIX) else MOVING_MS)


def _of_proxies(every: int, known: Sequence[str], estate: Estate) -> dict[Target, Plan]:
    """Return the targets at proxies. One that did not answer yet is only probed, once a minute."""
    poll, minute = POLLS[PROXY_MEMBERS], max(every, MINUTE_MS)
    planned = {}
    for addr in proxy_addrs(known, estate.proxy_hosts):
        planned[Target(PROXY_MEMBERS, addr, None, PROXY_GROUP)] = poll.planned(minute, probe=True)
        for group in estate.groups() - {PROXY_GROUP} if addr in estate.proxies else ():
            # The brokers know members of the group, too.
            period = minute if estate.has_members(group) else every
            planned[Target(PROXY_MEMBERS, addr, None, group)] = poll.planned(period)
    return planned


def _of_clients(every: int, addrs: dict[tuple[str, int], str], estate: Estate) -> dict[Target, Plan]:
    """Return the targets of clients, spread over the brokers that know them."""
    planned = {}
    for (group, client_id), keys in estate.clients().items():
        known = [key for key in keys if key in addrs]
        if known and estate.is_group(group):
            key = known[_spread(client_id) % len(known)]
            planned[Target("running_info", addrs[key], key, group, client_id)] = POLLS["running_info"].planned(
                every, limit=client_id, patient=(group, client_id) not in estate.answering
            )
    return planned


def _spread(name: str) -> int:
    return crc32(name.encode("utf-8", "surrogatepass"))
