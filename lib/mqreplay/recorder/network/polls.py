"""The kinds of polls: one record says what is asked, how the answer is read, what is written and what is learned.

A new poll is a new entry of `POLLS`, and its target in `mqreplay.recorder.network.targets`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mqreplay.core.system_names import PROXY_GROUP
from mqreplay.recorder.network.answers import (
    Brokers,
    Connected,
    read_brokers,
    read_caches,
    read_connected,
    read_ha_status,
    read_max_offsets,
    read_members,
    read_names,
    read_properties,
    read_queue_counts,
    read_route,
    read_runtime,
    read_topic_list,
    running_signature,
    table_signature,
    text_of_body,
)
from mqreplay.recorder.network.estate import Estate
from mqreplay.recorder.network.readings import (
    Reading,
    code_as_value,
    error_of_client,
    no_members,
    not_online,
    unsupported,
    with_error,
)
from mqreplay.recorder.network.schedule import Plan, Target
from mqreplay.recorder.network.topology import Topology
from mqreplay.recorder.remoting.frames import SUCCESS, Answer
from mqreplay.recorder.remoting.requests import ReadCode, Request
from mqreplay.words.errors import DecodeError
from mqreplay.words.time_span import MINUTE_MS

if TYPE_CHECKING:
    from mqreplay.recorder.network.brokers_json import BrokersJson
    from mqreplay.recorder.network.events import Events

PROXY_MEMBERS: Final = "proxy_members"
CLIENT_MS: Final = 20_000  # a client is asked at most this often
RARELY_MS: Final = 300_000
SELDOM_MS: Final = 3_600_000  # of a request that the broker's version does not know, or whose answer seldom changes


class Known(NamedTuple):
    """What the recorder knows of the cluster, and where it writes what is not a line of a poll."""

    topology: Topology
    estate: Estate
    brokers: BrokersJson
    events: Events


@dataclass(frozen=True, slots=True)
class Poll:
    """A kind of poll.

    ``read`` reads the body of an answer; ``refused`` an answer with an error code. ``fields`` are those of the request,
    ``identity`` those of the line that name the target, after the broker. ``learn`` takes the fact of a reading and its
    time. ``plan`` is the plan of each target: its period is the shortest one. ``stem`` is the kind of record that each
    poll may add a line to, None where there is none. ``repeated``: a line is written for changes and once a minute;
    otherwise for each answer. ``snapshot`` is the file in which the answer is kept. ``of_broker``: each broker is
    asked. ``is_optional``: brokers of 4.x do not know the request.
    """

    code: ReadCode
    read: Callable[[bytes], Reading]
    plan: Plan
    fields: Callable[[Target], dict[str, str]] = lambda _: {}
    identity: Callable[[Target], dict[str, Any]] = lambda _: {}
    learn: Callable[[Known, Target, int, Any], None] = lambda known, target, ts, fact: None
    refused: Callable[[Answer], Reading] = with_error
    stem: str | None = None
    repeated: bool = True
    snapshot: str | None = None
    of_broker: bool = False
    is_optional: bool = False
    timeout_s: float | None = None

    def planned(self, every_ms: int, **changes: Any) -> Plan:
        """Return the plan of a target. ``every_ms`` is the interval of the most frequent polls."""
        return self.plan._replace(**{"period_ms": max(every_ms, self.plan.period_ms), **changes})

    def request(self, target: Target) -> Request:
        """Return the request. Raises DecodeError for a name that is invalid in a request."""
        return Request(self.code, tuple(self.fields(target).items()))


def _answer(body: bytes) -> dict[str, Any]:
    return {"response_code": SUCCESS, "body": text_of_body(body)}


def _cluster_info(body: bytes) -> Reading:
    brokers = read_brokers(body)
    return Reading({"body": text_of_body(body)}, frozenset(brokers.addrs.items()), brokers)


def _runtime(body: bytes) -> Reading:
    table = read_runtime(body)
    return Reading({"table": table}, None, table)


def _modes(body: bytes) -> Reading:
    read_names(body, "messageRequestModeMap")
    return Reading({}, table_signature(body), True)


def _ha_status(body: bytes) -> Reading:
    read_ha_status(body)
    return Reading({"body": text_of_body(body)}, None, True)


def _members(body: bytes) -> Reading:
    ids = read_members(body)
    return Reading(_answer(body), ids, frozenset(ids))


def _connections(body: bytes) -> Reading:
    connected = read_connected(body)
    return Reading(_answer(body), connected.signature, connected)


def _running_info(body: bytes) -> Reading:
    fields, caches = _answer(body), read_caches(body)
    return Reading(fields, running_signature(body), True, is_kept=caches.is_large, heads=caches.heads)


def _learn_brokers(known: Known, target: Target, ts: int, brokers: Brokers) -> None:
    if known.topology.update(target.addr, brokers, ts):
        known.estate.revision += 1


def _learn_support(known: Known, target: Target, _ts: int, is_known: bool) -> None:
    known.estate.take_support(target.broker_key, target.kind, is_known)


def _learn_connections(known: Known, target: Target, _ts: int, connected: Connected) -> None:
    known.estate.take_subscriptions(target.broker_key, target.subject, connected.topics)
    if target.subject == PROXY_GROUP:
        known.estate.take_proxy_hosts(connected.hosts)


def _learn_proxied(known: Known, target: Target, _ts: int, connected: Connected) -> None:
    known.estate.take_proxied(target.addr, target.subject, frozenset(map(str, connected.languages)))


POLLS: Final[Mapping[str, Poll]] = {
    "cluster_info": Poll(
        ReadCode.GET_BROKER_CLUSTER_INFO,
        _cluster_info,
        Plan(10_000, urgent=True, probe=True),
        identity=lambda at: {"namesrv_addr": at.addr},
        learn=_learn_brokers,
        stem="cluster_info",
    ),
    "topic_list": Poll(
        ReadCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
        lambda body: Reading({}, None, read_topic_list(body)),
        Plan(MINUTE_MS),
        learn=lambda known, _at, _ts, topics: known.estate.take_listed_topics(topics),
    ),
    "route": Poll(
        ReadCode.GET_ROUTEINFO_BY_TOPIC,
        lambda body: Reading(_answer(body), read_route(body)),
        Plan(0),
        fields=lambda at: {"topic": at.subject, "acceptStandardJsonOnly": "true"},
        identity=lambda at: {"namesrv_addr": at.addr, "topic": at.subject},
        refused=code_as_value,
        stem="routes",
    ),
    "runtime": Poll(
        ReadCode.GET_BROKER_RUNTIME_INFO,
        _runtime,
        Plan(0, urgent=True, probe=True),
        identity=lambda at: {"broker_addr": at.addr},
        stem="broker_runtime",
        repeated=False,
        of_broker=True,
    ),
    "offsets": Poll(  # `OffsetReader` reads what changed of the answer before
        ReadCode.GET_ALL_CONSUMER_OFFSET, lambda _: Reading({}), Plan(0, urgent=True), of_broker=True
    ),
    "topics": Poll(
        ReadCode.GET_ALL_TOPIC_CONFIG,
        lambda body: Reading({}, table_signature(body), read_queue_counts(body)),
        Plan(MINUTE_MS),
        learn=lambda known, at, _ts, counts: known.estate.take_queue_counts(at.broker_key, counts),
        snapshot="topics.json",
        of_broker=True,
    ),
    "groups": Poll(
        ReadCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        lambda body: Reading({}, table_signature(body), read_names(body, "subscriptionGroupTable")),
        Plan(MINUTE_MS),
        learn=lambda known, at, _ts, groups: known.estate.take_groups(at.broker_key, groups),
        snapshot="subscriptionGroup.json",
        of_broker=True,
    ),
    "delays": Poll(
        ReadCode.GET_ALL_DELAY_OFFSET,
        lambda body: Reading({}, table_signature(body), read_names(body, "offsetTable")),
        Plan(MINUTE_MS),
        snapshot="delayOffset.json",
        of_broker=True,
    ),
    "modes": Poll(
        ReadCode.GET_ALL_MESSAGE_REQUEST_MODE,
        _modes,
        Plan(MINUTE_MS),
        learn=_learn_support,
        refused=unsupported,
        snapshot="messageRequestMode.json",
        of_broker=True,
        is_optional=True,
    ),
    "ha_status": Poll(
        ReadCode.GET_BROKER_HA_STATUS,
        _ha_status,
        Plan(10_000),
        identity=lambda at: {"broker_addr": at.addr},
        learn=_learn_support,
        refused=unsupported,
        stem="ha_status",
        repeated=False,
        of_broker=True,
        is_optional=True,
    ),
    "name_server_config": Poll(
        ReadCode.GET_NAMESRV_CONFIG,
        lambda body: Reading({}, None, read_properties(body)),
        Plan(SELDOM_MS),
        learn=lambda known, at, ts, settings: known.events.name_server(at, ts, settings),
    ),
    "config": Poll(
        ReadCode.GET_BROKER_CONFIG,
        lambda body: Reading({}, None, read_properties(body)),
        Plan(RARELY_MS),
        learn=lambda known, at, _ts, settings: known.brokers.configured(at.broker_key, settings),
        of_broker=True,
    ),
    "members": Poll(
        ReadCode.GET_CONSUMER_LIST_BY_GROUP,
        _members,
        Plan(0),
        fields=lambda at: {"consumerGroup": at.subject},
        identity=lambda at: {"broker_addr": at.addr, "consumer_group": at.subject},
        learn=lambda known, at, _ts, ids: known.estate.take_members(at.broker_key, at.subject, ids),
        refused=no_members,
        stem="consumer_lists",
    ),
    "connections": Poll(
        ReadCode.GET_CONSUMER_CONNECTION_LIST,
        _connections,
        Plan(MINUTE_MS),
        fields=lambda at: {"consumerGroup": at.subject},
        identity=lambda at: {"consumer_group": at.subject},
        learn=_learn_connections,
        refused=code_as_value,
        stem="consumer_connections",
    ),
    PROXY_MEMBERS: Poll(
        ReadCode.GET_CONSUMER_CONNECTION_LIST,
        _connections,
        Plan(CLIENT_MS),
        fields=lambda at: {"consumerGroup": at.subject},
        identity=lambda at: {"proxy_addr": at.addr, "consumer_group": at.subject},
        learn=_learn_proxied,
        refused=not_online,
        stem="proxy_connections",
    ),
    "running_info": Poll(  # keeps a thread of the broker while it waits for the client; no stack traces are asked for
        ReadCode.GET_CONSUMER_RUNNING_INFO,
        _running_info,
        # Queues of clients: without them little can be judged.
        Plan(CLIENT_MS, at_once=4, weight=4, limit_ms=CLIENT_MS),
        fields=lambda at: {"consumerGroup": at.subject, "clientId": at.client_id, "jstackEnable": "false"},
        identity=lambda at: {
            "broker_addr": at.addr,
            "client_id": at.client_id,
            "source": "running_info",
            "consumer_group": at.subject,
        },
        learn=lambda known, at, _ts, _fact: known.estate.take_running(at.subject, at.client_id),
        refused=error_of_client,
        stem="assignments",
        timeout_s=5.0,  # a broker waits up to 10 s for the client
    ),
    "topic_offsets": Poll(  # 30 and 31 queue by queue, or 202 for all queues of a topic
        ReadCode.GET_TOPIC_STATS_INFO,
        lambda body: Reading({"body": text_of_body(body)}, body, read_max_offsets(body)),
        Plan(0, at_once=4),
        fields=lambda at: {"topic": at.subject},
        identity=lambda at: {"topic": at.subject},
        learn=lambda known, at, _ts, offsets: known.estate.take_max_offsets(at.broker_key, at.subject, offsets),
        stem="topic_stats",
    ),
    "consume_stats": Poll(  # a broker reads a message of each queue for it
        ReadCode.GET_CONSUME_STATS,
        lambda body: Reading({"body": text_of_body(body)}),
        Plan(RARELY_MS, at_once=1, cost=4),
        fields=lambda at: {"consumerGroup": at.subject},
        identity=lambda at: {"consumer_group": at.subject},
        stem="consume_stats",
        repeated=False,
    ),
}


def identity(target: Target) -> dict[str, Any]:
    """Return the fields that name the request and its target."""
    broker = {} if target.broker is None else {"broker_name": target.broker[0], "broker_id": target.broker[1]}
    return broker | POLLS[target.kind].identity(target)


def reading(target: Target, answer: Answer) -> Reading:
    """Return the reading of an answer. A body of another form is an error and is not kept."""
    poll = POLLS[target.kind]
    if answer.code != SUCCESS:
        return with_error(answer) if answer.denied is not None else poll.refused(answer)
    try:
        return poll.read(answer.body)
    except DecodeError as error:
        detail = f"the answer cannot be read: {error}"
        return Reading({"error": detail}, ("unreadable", error.code), None, detail)
