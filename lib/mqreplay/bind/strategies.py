"""allocation.allocate for clients whose strategies were made with settings: what no recording has, a user tells.

A group's settings come as plain data: ``queues`` (a pattern of client ids -> its CONFIG list, "topic/broker/queue"),
``machine_rooms`` (MACHINE_ROOM), ``client_rooms`` and ``broker_rooms`` (patterns -> room, MACHINE_ROOM_NEARBY),
``virtual_node_cnt`` (CONSISTENT_HASH). Patterns are the shell's, the first that fits counts. What a strategy asks for
and nobody told is SettingsLacking, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from mqreplay.core import allocation
from mqreplay.core.message_queue import MessageQueue
from mqreplay.errors import SettingsLacking

GroupSettings = Mapping[str, Any]
NONE: GroupSettings = {}


class _Rooms:
    """AllocateMachineRoomNearby.MachineRoomResolver, told by patterns."""

    def __init__(self, consumer_group: str | None, group: GroupSettings) -> None:
        self._of, self._group = consumer_group, group

    def broker_deploy_in(self, message_queue: MessageQueue) -> str:
        """The room of a queue's broker."""
        return self._room("broker_rooms", message_queue.broker_name)

    def consumer_deploy_in(self, client_id: str | None) -> str:
        """The room of a client."""
        return self._room("client_rooms", client_id or "")

    def _room(self, key: str, name: str) -> str:
        room = _first(self._group.get(key) or {}, name)
        if room is None:
            raise SettingsLacking(f'[strategies.groups."{self._of}"] {key} says no room of {name}')
        return str(room)


def allocate_with(groups: Mapping[str, GroupSettings], virtual_node_cnt: int) -> Callable[..., list[MessageQueue]]:
    """allocation.allocate by the settings of the group asked for; ``virtual_node_cnt`` where a group has none."""

    def allocate(
        strategy_name: str,
        consumer_group: str | None,
        current_cid: str | None,
        mq_all: Sequence[MessageQueue] | None,
        cid_all: Sequence[str | None] | None,
    ) -> list[MessageQueue]:
        group = groups.get(consumer_group or "", NONE)
        settings = allocation.StrategySettings(
            message_queue_list=_list_of(strategy_name, consumer_group, current_cid, group),
            consumeridcs=_machine_rooms(strategy_name, consumer_group, group),
            virtual_node_cnt=group.get("virtual_node_cnt") or virtual_node_cnt,
            machine_room_resolver=_Rooms(consumer_group, group),
        )
        return allocation.allocate(strategy_name, consumer_group, current_cid, mq_all, cid_all, settings)

    return allocate


def _list_of(strategy_name: str, of: str | None, cid: str | None, group: GroupSettings) -> list[MessageQueue] | None:
    if "CONFIG" not in _parts(strategy_name):
        return None
    told = _first(group.get("queues") or {}, cid or "")
    if told is None:
        raise SettingsLacking(f'[strategies.groups."{of}"] queues says no list of {cid}')
    parts = [text.rsplit("/", 2) for text in told]
    return [MessageQueue(topic, broker_name, int(queue_id)) for topic, broker_name, queue_id in parts]


def _machine_rooms(strategy_name: str, of: str | None, group: GroupSettings) -> list[str] | None:
    if "MACHINE_ROOM" not in _parts(strategy_name):
        return None
    if not group.get("machine_rooms"):
        raise SettingsLacking(f'[strategies.groups."{of}"] machine_rooms is not told')
    return list(group["machine_rooms"])


def _parts(strategy_name: str) -> list[str]:
    """The strategies that a name names: MACHINE_ROOM_NEARBY-CONFIG asks CONFIG too."""
    return strategy_name.split("-")


def _first(patterns: Mapping[str, Any], name: str) -> Any:
    return next((told for pattern, told in patterns.items() if fnmatchcase(name, pattern)), None)
