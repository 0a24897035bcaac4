"""namesrv.log: when a name server registered a broker, and when it lost it. Source: RouteInfoManager."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from mqreplay.decode.logs.form import Form

Event = Literal["registered", "destroyed", "expired", "unregistered"]


class BrokerSeen(NamedTuple):
    """A change of the registration of the broker at ``broker_addr``.

    registered; destroyed: its channel closed without an unregistration; expired: 2 minutes without a registration;
    unregistered: a regular shutdown.
    """

    event: Event
    broker_addr: str


class MasterNamed(NamedTuple):
    """The master of a broker name is at ``broker_addr``, or the broker of an id was at it when it was removed."""

    broker_name: str
    broker_addr: str


class AddressRemoved(NamedTuple):
    """A broker was removed with its address; ``broker_id`` is None where it unregistered."""

    broker_id: int | None
    broker_addr: str


class NameRemoved(NamedTuple):
    """A broker name without any address was removed: the one of the address that was removed just before."""

    broker_name: str


class TopicRegistered(NamedTuple):
    """A broker registered a topic that the name server did not know: a new one, or one of a broker that is new."""

    topic: str
    broker_name: str


FORMS: Final = (
    Form(
        "new topic registered, {topic:key} QueueData [brokerName={broker_name}, {:text}",
        TopicRegistered,
        "RouteInfoManager#createAndUpdateQueueData",
        start="new topic registered, ",
        signs=None,
    ),
    Form(
        "new broker registered, {broker_addr:broker} HAS{:text}",
        BrokerSeen,
        "RouteInfoManager#registerBroker",
        constants={"event": "registered"},
        signs=(" HAS",),  # a controller writes other lines that begin like this
    ),
    Form(
        "the broker's channel destroyed, {broker_addr}, clean it's data structure at once",
        BrokerSeen,
        "RouteInfoManager#onChannelDestroy",
        versions="4",
        constants={"event": "destroyed"},
    ),
    Form(
        "the broker's channel destroyed, submit the unregister request at once, broker info: {broker_addr:broker}, "
        "{:text}",
        BrokerSeen,
        "RouteInfoManager#onChannelDestroy",
        versions="5",
        constants={"event": "destroyed"},
        start="the broker's channel destroyed, ",
    ),
    Form(  # some versions print no address
        "the broker's channel destroyed, submit the unregister request{:text}",
        None,
        "RouteInfoManager#onChannelDestroy",
        versions="5",
        start="the broker's channel destroyed, ",
    ),
    Form(
        "The broker channel expired, {broker_addr:broker} {:positive}ms",
        BrokerSeen,
        "RouteInfoManager#scanNotActiveBroker",
        constants={"event": "expired"},
    ),
    Form(
        "unregisterBroker, remove from brokerLiveTable OK, {broker_addr:broker}",
        BrokerSeen,
        "RouteInfoManager#unregisterBroker",
        constants={"event": "unregistered"},
    ),
    Form(
        "unregisterBroker, remove addr from brokerAddrTable OK, {broker_addr:broker}",
        AddressRemoved,
        "RouteInfoManager#unregisterBroker",
        constants={"broker_id": None},
        start="unregisterBroker, ",
        signs=None,
    ),
    Form(
        "unregisterBroker, remove name from brokerAddrTable OK, {broker_name}",
        NameRemoved,
        "RouteInfoManager#unregisterBroker",
        start="unregisterBroker, ",
        signs=None,
    ),
    Form(
        "cluster [{:name}] brokerName [{broker_name}] master address change from {:name} to {broker_addr}",
        MasterNamed,
        "RouteInfoManager#registerBroker",
        signs=None,
    ),
    Form(
        "remove brokerAddr[{broker_id:int}, {broker_addr}] from brokerAddrTable, because channel destroyed",
        AddressRemoved,
        "RouteInfoManager#onChannelDestroy",
        versions="4",
        signs=None,
    ),
    Form(
        "remove brokerName[{broker_name}] from brokerAddrTable, because channel destroyed",
        NameRemoved,
        "RouteInfoManager#onChannelDestroy",
        versions="4",
        signs=None,
    ),
)
