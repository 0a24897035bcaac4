"""Names in a capture: the client of a connection, the broker at an address.

A pull names neither client nor broker_id. Clients send their id in heartbeats and locks, brokers register their address
at name servers, and name servers list them. Source: HeartbeatData, LockBatchRequestBody, RegisterBrokerRequestHeader,
TopicRouteData, ClusterInfo.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from mqreplay.decode.body import body_of, broker_addrs_of, items_of
from mqreplay.decode.capture import codes
from mqreplay.decode.capture.calls import Call
from mqreplay.decode.fastjson_text import Value
from mqreplay.decode.fields import object_of, text_field
from mqreplay.words.errors import DecodeError

# fastjson sorts the fields of an object: the id comes first, also of a body that tcpdump cut.
_CLIENT_ID: Final = re.compile(rb'"client(?:ID|Id)":"((?:[^"\\]|\\["\\/]){0,1024}+)"')
_BROKER_ID: Final = re.compile(r"[0-9]{1,19}")
_VIP_BEHIND: Final = 2  # the port of the VIP channel is the listening port less two
# A capture of a large cluster has some thousands of each; more are not named.
MOST_NAMED: Final = 100_000
LONGEST_CAPTURED_NAME: Final = 1024
MOST_IDS: Final = 1000  # ids of one address, one after the other
_SEVERAL: Final = ""
_LONGEST_KEPT: Final = 65_536
Key = TypeVar("Key")
Named = TypeVar("Named")


class Broker(NamedTuple):
    """A broker by name and id."""

    broker_name: str
    broker_id: int


class Names:
    """The names in all calls of a capture."""

    def __init__(self, calls: Iterable[Call]) -> None:
        """Read the calls once."""
        self._registered: dict[str, list[tuple[int, Broker]]] = {}  # by address, in order of time
        self._listed: dict[str, Broker] = {}
        self._of_connection: dict[int, str] = {}
        self._of_host: dict[str, str] = {}
        for call in calls:
            self._take(call)

    def client(self, connection: int) -> str | None:
        """Return the client of a connection with a broker; None without exactly one name on it."""
        return self._of_connection.get(connection) or None

    def client_of_host(self, address: str) -> str | None:
        """Return the client at ``host:port`` of a connection without a name, if its host has one client."""
        return self._of_host.get(_host(address)) or None

    def broker(self, address: str, ts: int) -> Broker | None:
        """Return the broker that listens at ``host:port`` at ``ts``, epoch microseconds.

        A broker's own statement counts, its last one until then: a controller gives another id to a replica that it
        makes the master, and name servers list a slave under id 0 while it acts as master.
        """
        host, _, port = address.rpartition(":")
        for at in (address, f"{host}:{int(port) + _VIP_BEHIND}"):
            if registered := self._registered.get(at):
                place = bisect_right(registered, ts, key=_first)
                return registered[max(place - 1, 0)][1]
            if at in self._listed:
                return self._listed[at]
        return None

    def _take(self, call: Call) -> None:
        code, ext = call.request.code, call.request.ext
        if code in (codes.HEART_BEAT, codes.LOCK_BATCH_MQ, codes.UNLOCK_BATCH_MQ):
            if found := _CLIENT_ID.search(call.request.body):
                self._is(call, found[1].decode("utf-8", "replace"))
        elif code == codes.UNREGISTER_CLIENT and "clientID" in ext:
            self._is(call, ext["clientID"])
        elif code == codes.REGISTER_BROKER and _BROKER_ID.fullmatch(ext.get("brokerId", "")):
            self._registers(call, ext.get("brokerAddr", ""), Broker(ext.get("brokerName", ""), int(ext["brokerId"])))
        elif code in (codes.GET_ROUTEINFO_BY_TOPIC, codes.GET_BROKER_CLUSTER_INFO):
            for address, broker in _brokers_in_answer(call):
                _enter(self._listed, address, self._listed.get(address, broker), _length(address, broker))

    def _registers(self, call: Call, address: str, broker: Broker) -> None:
        before = self._registered.get(address, [])
        if not before or before[-1][1] != broker:
            stated = (call.request.begin_us, broker)
            # Connections are read side by side, so their calls may be a little out of order.
            _enter(
                self._registered, address, sorted([*before, stated][-MOST_IDS:], key=_first), _length(address, broker)
            )

    def _is(self, call: Call, client_id: str) -> None:
        _enter_only(self._of_connection, call.connection, client_id)
        _enter_only(self._of_host, _host(call.asker), client_id)


def _first(stated: tuple[int, Broker]) -> int:
    return stated[0]


def _length(address: str, broker: Broker) -> int:
    return max(len(address), len(broker.broker_name))


def _enter_only(table: dict[Key, str], key: Key, name: str) -> None:
    _enter(table, key, name if table.get(key, name) == name else _SEVERAL, len(name))


def _enter(table: dict[Key, Named], key: Key, named: Named, length: int) -> None:
    """Put a name into a table if it has room or already has the key."""
    if length <= LONGEST_CAPTURED_NAME and (key in table or len(table) < MOST_NAMED):
        table[key] = named


def _host(address: str) -> str:
    return address.rpartition(":")[0]


def _brokers_in_answer(call: Call) -> Iterator[tuple[str, Broker]]:
    answer = call.response
    if answer is None or not answer.is_whole:
        return
    try:
        for data in listed_brokers(answer.body):
            of = object_of(data, "brokerDatas")
            name = text_field(of, "brokerName", None)
            for broker_id, address in broker_addrs_of(of.get("brokerAddrs"), "brokerAddrs").items():
                if name is not None:
                    yield address, Broker(name, broker_id)
    except DecodeError:  # its line is refused later, with the reason
        return


def listed_brokers(body: bytes) -> list[Value]:
    """Return the brokers in a name server's answer of a route or of the cluster, as fastjson has them.

    Raises:
        DecodeError: it is not such an answer.
    """
    return (_read_brokers if len(body) <= _LONGEST_KEPT else _read_brokers.__wrapped__)(body)


@lru_cache(maxsize=64)  # clients ask again and again, and the answers rarely change
def _read_brokers(body: bytes) -> list[Value]:
    try:
        fields = body_of({"body": body.decode("utf-8")}, "body") if body else None
    except UnicodeDecodeError as error:
        raise DecodeError("not_utf8", f"byte 0x{body[error.start]:02x} is not UTF-8", error.start) from None
    if fields is None:
        return []
    table = fields.get("brokerAddrTable")
    return items_of(fields, "brokerDatas") if table is None else list(object_of(table, "it").values())
