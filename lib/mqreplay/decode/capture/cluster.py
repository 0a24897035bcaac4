"""Facts about the cluster in a capture: its name, its name servers, the settings of its brokers.

Brokers send their cluster's name to each name server when they register; name servers list clusters and brokers;
a broker answers with its settings. Source: RegisterBrokerRequestHeader, ClusterInfo, TopicRouteData, MixAll.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from mqreplay.decode.brokers import LONGEST_CLUSTER
from mqreplay.decode.capture import codes
from mqreplay.decode.capture.calls import Call
from mqreplay.decode.capture.names import listed_brokers
from mqreplay.decode.fields import object_of, text_field
from mqreplay.words.errors import DecodeError

MOST_CLUSTERS: Final = 1_000
MOST_SERVERS: Final = 1_000
MOST_BROKERS: Final = 10_000
_LISTS: Final = (codes.GET_ROUTEINFO_BY_TOPIC, codes.GET_BROKER_CLUSTER_INFO)


@dataclass
class CapturedCluster:
    """The facts in order of appearance. ``brokers`` maps a broker's address to its answered settings."""

    clusters: list[str] = field(default_factory=list)
    name_servers: list[str] = field(default_factory=list)
    brokers: dict[str, str] = field(default_factory=dict)

    def watch(self, calls: Iterable[Call]) -> Iterator[Call]:
        """Yield the calls, and take the facts from each."""
        for call in calls:
            self.take(call)
            yield call

    def take(self, call: Call) -> None:
        """Take the facts from a call. A cut or damaged body, or an error, has none."""
        code = call.request.code
        if code == codes.REGISTER_BROKER:
            self._add_cluster(call.request.ext.get("clusterName"))
            _add(self.name_servers, call.asked, MOST_SERVERS)
        elif code in _LISTS:
            for name in _clusters_of(call):
                self._add_cluster(name)
            if code == codes.GET_BROKER_CLUSTER_INFO and call.response is not None and not call.response.code:
                _add(self.name_servers, call.asked, MOST_SERVERS)
        elif code == codes.GET_BROKER_CONFIG:
            text = _answered(call)
            if text is not None and (call.asked in self.brokers or len(self.brokers) < MOST_BROKERS):
                self.brokers[call.asked] = text

    def _add_cluster(self, name: str | None) -> None:
        if name and len(name) <= LONGEST_CLUSTER:
            _add(self.clusters, name, MOST_CLUSTERS)


def _add(known: list[str], name: str, most: int) -> None:
    if name not in known and len(known) < most:
        known.append(name)


def _answered(call: Call) -> str | None:
    """Return the body of a good answer, None if it is incomplete or not text."""
    answer = call.response
    if answer is None or answer.code or not answer.is_whole or not answer.body:
        return None
    try:
        return answer.body.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _clusters_of(call: Call) -> list[str]:
    answer = call.response
    if answer is None or answer.code or not answer.is_whole:
        return []
    try:
        brokers = listed_brokers(answer.body)
        named = [text_field(object_of(broker, "brokerDatas"), "cluster", None) for broker in brokers]
    except DecodeError:  # its line is refused later, with the reason
        return []
    return [name for name in named if name]
