"""The kinds of polls: what is asked, whom, and how often. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple
from zlib import crc32

from mqreplay.core.delay_level import SCHEDULE_TOPIC
from mqreplay.core.retry_topic import DLQ_GROUP_TOPIC_PREFIX, is_retry_topic
from mqreplay.core.system_names import PROXY_GROUP
from mqreplay.record.network.estate import Estate
from mqreplay.record.network.options import RecordOptions
from mqreplay.record.network.proxies import of_proxies
from mqreplay.record.network.schedule import MAX_IN_FLIGHT, Plan, Target
from mqreplay.record.network.topology import Broker, leaders
from mqreplay.record.remoting import requests
from mqreplay.record.remoting.requests import ReadCode, Request

CLIENT_WEIGHT: Final = 4  # queues of clients: without them little can be judged
MEMBERS_WEIGHT: Final = 2  # each master of a cluster has the same members
STATS_COST: Final = 4  # a broker reads a message of each queue for it
CLUSTER_MS: Final = 10_000
HA_MS: Final = 10_000
CLIENT_MS: Final = 20_000  # a client is asked at most this often
NO_MEMBERS_MS: Final = 20_000  # a broker logs a warning for each request about a group without members
RARELY_MS: Final = 300_000
SELDOM_MS: Final = 3_600_000  # of a request that the broker's version does not know, or whose answer seldom changes
MOST_QUEUES: Final = 64  # queues of a topic that does not grow up to which 30 is asked for each; 202 for more


class Poll(NamedTuple):
    """A kind of poll.

    ``stem`` is the kind of record that each poll may add a line to, None where there is none. ``repeated``: a line is
    written for changes and once a minute; otherwise for each answer. ``at_once`` bounds the polls that wait for an
    answer at one server: 307 keeps a thread of the broker while it waits for the client.
    """

    code: ReadCode
    request: Callable[[Target], Request]
    stem: str | None = None
    repeated: bool = True
    at_once: int = MAX_IN_FLIGHT


POLLS: Final[dict[str, Poll]] = {
    "cluster_info": Poll(
        ReadCode.GET_BROKER_CLUSTER_INFO, lambda _: requests.get_broker_cluster_info(), "cluster_info"
    ),
    "topic_list": Poll(ReadCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, lambda _: requests.get_all_topic_list()),
    "route": Poll(
        ReadCode.GET_ROUTEINFO_BY_TOPIC, lambda each: requests.get_route_info_by_topic(each.subject), "routes"
    ),
    "runtime": Poll(
        ReadCode.GET_BROKER_RUNTIME_INFO, lambda _: requests.get_broker_runtime_info(), "broker_runtime", False
    ),
    "offsets": Poll(ReadCode.GET_ALL_CONSUMER_OFFSET, lambda _: requests.get_all_consumer_offset()),
    "topics": Poll(ReadCode.GET_ALL_TOPIC_CONFIG, lambda _: requests.get_all_topic_config()),
    "groups": Poll(ReadCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, lambda _: requests.get_all_subscription_group()),
    "delays": Poll(ReadCode.GET_ALL_DELAY_OFFSET, lambda _: requests.get_all_delay_offset()),
    "modes": Poll(ReadCode.GET_ALL_MESSAGE_REQUEST_MODE, lambda _: requests.get_all_message_request_mode()),
    "ha_status": Poll(ReadCode.GET_BROKER_HA_STATUS, lambda _: requests.get_broker_ha_status(), "ha_status", False),
    "name_server_config": Poll(ReadCode.GET_NAMESRV_CONFIG, lambda _: requests.get_name_server_config()),
    "config": Poll(ReadCode.GET_BROKER_CONFIG, lambda _: requests.get_broker_config()),
    "members": Poll(
        ReadCode.GET_CONSUMER_LIST_BY_GROUP,
        lambda each: requests.get_consumer_list_by_group(each.subject),
        "consumer_lists",
    ),
    "connections": Poll(
        ReadCode.GET_CONSUMER_CONNECTION_LIST,
        lambda each: requests.get_consumer_connection_list(each.subject),
        "consumer_connections",
    ),
    "proxy_members": Poll(
        ReadCode.GET_CONSUMER_CONNECTION_LIST,
        lambda each: requests.get_consumer_connection_list(each.subject),
        "proxy_connections",
    ),
    "running_info": Poll(
        ReadCode.GET_CONSUMER_RUNNING_INFO,
        lambda each: requests.get_consumer_running_info(each.subject, each.client_id),
        "assignments",
        at_once=4,
    ),
    # 30 and 31 queue by queue, or 202 for all queues of a topic.
    "topic_offsets": Poll(
        ReadCode.GET_TOPIC_STATS_INFO,
        lambda each: requests.get_topic_stats_info(each.subject),
        "topic_stats",
        at_once=4,
    ),
    "consume_stats": Poll(
        ReadCode.GET_CONSUME_STATS,
        lambda each: requests.get_consume_stats(each.subject),
        "consume_stats",
        repeated=False,
        at_once=1,
    ),
}
OF_5: Final = frozenset({"modes", "ha_status"})  # brokers of 4.x do not know the request
# The snapshot file for an answer.
SNAPSHOT_FILES: Final = {
    "topics": "topics.json",
    "groups": "subscriptionGroup.json",
    "delays": "delayOffset.json",
    "modes": "messageRequestMode.json",
}


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
    found = dict(_of_name_servers(every, name_servers, silent, estate))
    for broker in brokers:
        if not is_known(broker.addr):
            found[Target("runtime", broker.addr, broker.key)] = Plan(every, probe=True, is_shared=True)
    brokers = [each for each in brokers if is_known(each.addr)]
    for broker in brokers:
        found |= _of_broker(every, broker, estate)
    leading = leaders(brokers, silent)
    for broker in leading:
        found |= _of_groups(every, broker, estate)
        found |= _of_topics(every, broker, estate)
        if estate.has_proxies():
            found[Target("connections", broker.addr, broker.key, PROXY_GROUP)] = Plan(max(every, 60_000))
    found |= of_proxies(every, options.proxies, estate)
    found |= _of_clients(every, {each.key: each.addr for each in brokers if each.addr not in silent}, estate)
    return found


def _of_name_servers(
    every: int, addrs: Sequence[str], silent: set[str], estate: Estate
) -> Iterator[tuple[Target, Plan]]:
    for addr in addrs:
        yield Target("cluster_info", addr), Plan(max(every, CLUSTER_MS), urgent=True, probe=True)
    asked = [addr for addr in addrs if addr not in silent] or list(addrs)
    for addr in asked:
        yield Target("name_server_config", addr), Plan(max(every, SELDOM_MS))
    yield Target("topic_list", asked[0]), Plan(max(every, 60_000))
    listed = estate.listed_topics
    for topic in estate.consumed_topics():
        turn = _topic_period(every, topic) if listed is None or topic in listed else RARELY_MS
        first = crc32(topic.encode("utf-8", "surrogatepass")) % turn
        for place, addr in enumerate(asked):
            yield Target("route", addr, None, topic), Plan(turn, phase_ms=first + place * turn // len(asked))


def _of_broker(every: int, broker: Broker, estate: Estate) -> dict[Target, Plan]:
    def of(kind: str) -> Target:
        return Target(kind, broker.addr, broker.key)

    def of_5(kind: str, period_ms: int) -> Plan:
        return Plan(SELDOM_MS if (broker.key, kind) in estate.unsupported else max(every, period_ms))

    minute = Plan(max(every, 60_000))
    return {
        of("runtime"): Plan(every, urgent=True, probe=True),
        of("offsets"): Plan(every, urgent=True),
        of("topics"): minute,
        of("groups"): minute,
        of("delays"): minute,
        of("modes"): of_5("modes", 60_000),
        of("ha_status"): of_5("ha_status", HA_MS),
        of("config"): Plan(RARELY_MS),
    }


def _of_groups(every: int, broker: Broker, estate: Estate) -> dict[Target, Plan]:
    found = {}
    for group in estate.groups():
        has_members = estate.has_members(group)
        period = every if has_members else max(every, NO_MEMBERS_MS)
        found[Target("members", broker.addr, broker.key, group)] = Plan(
            period, weight=MEMBERS_WEIGHT if has_members else 1
        )
        if has_members:
            found[Target("connections", broker.addr, broker.key, group)] = Plan(max(every, 60_000))
            found[Target("consume_stats", broker.addr, broker.key, group)] = Plan(
                RARELY_MS, at_once=POLLS["consume_stats"].at_once, cost=STATS_COST
            )
    return found


def _of_topics(every: int, broker: Broker, estate: Estate) -> dict[Target, Plan]:
    counts = estate.queue_counts.get(broker.key, {})
    at_once = POLLS["topic_offsets"].at_once
    found = {
        Target("topic_offsets", broker.addr, broker.key, topic): Plan(
            _topic_period(every, topic),
            at_once=at_once,
            cost=1 if (broker.key, topic) in estate.moved_topics else min(max(1, counts[topic]), MOST_QUEUES),
        )
        for topic in estate.consumed_topics() | estate.revive_topics() | estate.dead_letter_topics()
        if topic in counts
    }
    if estate.records_all and SCHEDULE_TOPIC in counts:
        # Its progress is that of delayOffset.json, which is polled as often.
        found[Target("topic_offsets", broker.addr, broker.key, SCHEDULE_TOPIC)] = Plan(
            max(every, 60_000), at_once=at_once, cost=STATS_COST
        )
    return found


def _topic_period(every: int, topic: str) -> int:
    """Return the poll interval of a topic: longer for retry and dead letter topics, which seldom change."""
    return max(every, 60_000 if is_retry_topic(topic) or topic.startswith(DLQ_GROUP_TOPIC_PREFIX) else 30_000)


def _of_clients(every: int, addrs: dict[tuple[str, int], str], estate: Estate) -> dict[Target, Plan]:
    """Return the targets of clients, spread over the brokers that know them."""
    found = {}
    for (group, client_id), keys in estate.clients().items():
        known = [key for key in keys if key in addrs]
        if known and estate.is_group(group):
            key = known[crc32(client_id.encode("utf-8", "surrogatepass")) % len(known)]
            found[Target("running_info", addrs[key], key, group, client_id)] = Plan(
                max(every, CLIENT_MS),
                at_once=POLLS["running_info"].at_once,
                weight=CLIENT_WEIGHT,
                limit=client_id,
                limit_ms=CLIENT_MS,
                patient=(group, client_id) not in estate.answering,
            )
    return found
