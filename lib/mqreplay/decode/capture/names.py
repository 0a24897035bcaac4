"""Who is who in a capture: which client a connection is of, which broker an address is.

A pull names no client and no broker_id: clients say their id in heartbeats and locks, brokers tell name servers where
they listen, name servers tell everybody. Source: HeartbeatData, LockBatchRequestBody, RegisterBrokerRequestHeader,
TopicRouteData, ClusterInfo.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeVar

from mqreplay.decode.body import body_of, broker_addrs_of, items_of
from mqreplay.decode.capture import codes
from mqreplay.decode.capture.calls import Call
from mqreplay.decode.fields import object_of, text_field
from mqreplay.errors import DecodeError

# fastjson sorts the fields of an object: the id comes first, also of a body that tcpdump cut.
_CLIENT_ID: Final = re.compile(rb'"client(?:ID|Id)":"((?:[^"\\]|\\["\\/]){0,1024}+)"')
_BROKER_ID: Final = re.compile(r"[0-9]{1,19}")
_VIP_BEHIND: Final = 2  # NettyServerConfig's port of the fast way (VIP channel) is the listening one less two
# A capture of a large estate has some thousands of each; what comes beyond is not named.
MOST_NAMED: Final = 100_000
LONGEST_NAME: Final = 1024
_SEVERAL: Final = ""
Key = TypeVar("Key")
Named = TypeVar("Named")


class Broker(NamedTuple):
    """A broker as RocketMQ names it."""

    broker_name: str
    broker_id: int


class Names:
    """What all calls of a capture tell of names."""

    def __init__(self, calls: Iterable[Call]) -> None:
        """Reads the calls once."""
        self._brokers: dict[str, Broker] = {}
        self._of_connection: dict[int, str] = {}
        self._of_host: dict[str, str] = {}
        for call in calls:
            self._take(call)

    def client(self, connection: int) -> str | None:
        """The client of a connection with a broker; None if nothing on it named one, or more than one."""
        return self._of_connection.get(connection) or None

    def client_of_host(self, address: str) -> str | None:
        """The client at ``host:port`` of a connection that names none, where its host has one client."""
        return self._of_host.get(_host(address)) or None

    def broker(self, address: str) -> Broker | None:
        """The broker that listens at ``host:port``."""
        known = self._brokers.get(address)
        if known is None:
            host, _, port = address.rpartition(":")
            known = self._brokers.get(f"{host}:{int(port) + _VIP_BEHIND}")
        return known

    def _take(self, call: Call) -> None:
        code, ext = call.request.code, call.request.ext
        if code in (codes.HEART_BEAT, codes.LOCK_BATCH_MQ, codes.UNLOCK_BATCH_MQ):
            if found := _CLIENT_ID.search(call.request.body):
                self._is(call, found[1].decode("utf-8", "replace"))
        elif code == codes.UNREGISTER_CLIENT and "clientID" in ext:
            self._is(call, ext["clientID"])
        elif code == codes.REGISTER_BROKER and _BROKER_ID.fullmatch(ext.get("brokerId", "")):
            self._listens(ext.get("brokerAddr", ""), Broker(ext.get("brokerName", ""), int(ext["brokerId"])))
        elif code in (codes.GET_ROUTEINFO_BY_TOPIC, codes.GET_BROKER_CLUSTER_INFO):
            for address, broker in _told(call):
                # What brokers say of themselves is newer.
                self._listens(address, self._brokers.get(address, broker))

    def _listens(self, address: str, broker: Broker) -> None:
        _enter(self._brokers, address, broker, max(len(address), len(broker.broker_name)))

    def _is(self, call: Call, client_id: str) -> None:
        _enter_only(self._of_connection, call.connection, client_id)
        _enter_only(self._of_host, _host(call.asker), client_id)


def _enter_only(table: dict[Key, str], key: Key, name: str) -> None:
    _enter(table, key, name if table.get(key, name) == name else _SEVERAL, len(name))


def _enter(table: dict[Key, Named], key: Key, named: Named, length: int) -> None:
    """Put a name into a table that has room for it, or has one already."""
    if length <= LONGEST_NAME and (key in table or len(table) < MOST_NAMED):
        table[key] = named


def _host(address: str) -> str:
    return address.rpartition(":")[0]


def _told(call: Call) -> Iterator[tuple[str, Broker]]:
    answer = call.response
    if answer is None or not answer.is_whole:
        return
    try:
        body = body_of({"body": answer.body.decode("utf-8")}, "body") if answer.body else None
        if body is None:
            return
        table = body.get("brokerAddrTable")
        brokers = items_of(body, "brokerDatas") if table is None else list(object_of(table, "it").values())
        for data in brokers:
            of = object_of(data, "brokerDatas")
            name = text_field(of, "brokerName", None)
            for broker_id, address in broker_addrs_of(of.get("brokerAddrs"), "brokerAddrs").items():
                if name is not None:
                    yield address, Broker(name, broker_id)
    except (DecodeError, UnicodeDecodeError):  # the line made of it will be refused, and say why
        return
