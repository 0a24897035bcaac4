"""controller.log of 5.x: the brokers that a controller lost, and the masters that it elected.

A controller elects when the master of a broker name is inactive: its connection closes, or no heartbeat comes for
10 s (ControllerManager#onBrokerInactive). Sources: ControllerManager, ReplicasInfoManager, and the managers of
heartbeats in controller/impl/heartbeat.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from mqreplay.decode.logs.form import Form


class BrokerInactive(NamedTuple):
    """A controller lost a broker: ``why`` is expired (no heartbeat in time) or closed; None: the line does not say."""

    broker_name: str
    broker_id: int | None
    why: str | None = None
    broker_addr: str | None = None


class MasterElected(NamedTuple):
    """A controller elected a master; each value is None where the line does not have it."""

    broker_name: str
    master_id: int | None = None
    master_addr: str | None = None
    epoch: int | None = None


class NoneElected(NamedTuple):
    """A controller found no replica that may become the master: only those in sync may (enableElectUncleanMaster)."""

    broker_name: str


_EXPIRED, _CLOSED = "expired", "closed"
_IDENTITY: Final = "BrokerIdentityInfo{clusterName='{:key}', brokerName='{broker_name}', brokerId={broker_id:int}}"
_ADDR: Final = re.compile(r"brokerAddr='([^']{1,255})'")
# Header fields of an answer, as RemotingCommand#toString prints them; they are absent before it is sent.
_ID, _MASTER, _EPOCH = (
    re.compile(rf"\b{name}='?([^,'}}]{{1,255}})", re.ASCII)
    for name in ("masterBrokerId", "masterAddress", "masterEpoch")
)


def _expired(channel: str, broker_name: str, broker_id: int) -> BrokerInactive:
    addr = _ADDR.search(channel)
    return BrokerInactive(broker_name, broker_id, _EXPIRED, addr and addr[1])


def _elected(broker_name: str, result: str) -> MasterElected:
    texts = [match and match[1] for match in (field.search(result) for field in (_ID, _MASTER, _EPOCH))]
    number, addr, epoch = texts
    numbers = [int(text) if text is not None and text.isdecimal() else None for text in (number, epoch)]
    return MasterElected(broker_name, numbers[0], addr, numbers[1])


_EVENT: Final = "Controller Manager received broker inactive event, clusterName: {:name}, brokerName: {broker_name}, "
FORMS: Final = (
    Form(f"{_EVENT}brokerId: {{broker_id:int}}", BrokerInactive, "ControllerManager#onBrokerInactive", "5"),
    Form(
        f"{_EVENT}brokerId: null",
        BrokerInactive,
        "ControllerManager#onBrokerInactive",
        versions="5",
        constants={"broker_id": None},
    ),
    Form(
        f"The broker channel {{channel:text}} expired, brokerInfo {_IDENTITY}{{:text}}",
        _expired,
        "DefaultBrokerHeartbeatManager#scanNotActiveBroker",
        versions="5",
        signs=None,
    ),
    Form(
        "The broker with brokerId: {broker_id:int} in broker-set: {broker_name} has been inactive",
        BrokerInactive,
        "ControllerManager#onBrokerInactive",
        versions="5",
    ),
    Form(
        "Elect a new master in broker-set: {broker_name} done, result: {result:text}",
        _elected,
        "ControllerManager#triggerElectMaster",
        versions="5",
    ),
    Form(
        "Elect new master {master_id:int} for broker {broker_name}",
        MasterElected,
        "ReplicasInfoManager#electMaster",
        versions="5",
    ),
    Form(
        "Failed to elect a new master for broker {broker_name}",
        NoneElected,
        "ReplicasInfoManager#electMaster",
        versions="5",
    ),
)
