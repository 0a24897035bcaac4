"""Allocation strategies with parameters. No recording has the parameters, so the settings give them.

A group's settings are plain data: ``queues`` (a pattern of client ids -> its CONFIG list, "topic/broker/queue"),
``machine_rooms`` (MACHINE_ROOM), ``client_rooms`` and ``broker_rooms`` (patterns -> room, MACHINE_ROOM_NEARBY),
``nearby_strategy`` (the strategy inside a room, where the recording names MACHINE_ROOM_NEARBY alone),
``virtual_node_cnt`` (CONSISTENT_HASH). Patterns are those of a shell; the first that matches counts. A missing setting
raises SettingsLacking; it is never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from mqreplay.core import allocation
from mqreplay.core.message_queue import MessageQueue
from mqreplay.words.errors import SettingsLacking

GroupSettings = Mapping[str, Any]
Allocate = Callable[
    [str, str | None, str | None, Sequence[MessageQueue] | None, Sequence[str | None] | None],
    list[MessageQueue] | None,
]
NONE: GroupSettings = {}
NEARBY = "MACHINE_ROOM_NEARBY"


class _Rooms:
    """AllocateMachineRoomNearby.MachineRoomResolver by patterns."""

    def __init__(self, consumer_group: str | None, settings: GroupSettings) -> None:
        self._consumer_group, self._settings = consumer_group, settings

    def broker_deploy_in(self, message_queue: MessageQueue) -> str:
        """Return the room of a queue's broker."""
        return self._room("broker_rooms", message_queue.broker_name)

    def consumer_deploy_in(self, client_id: str | None) -> str:
        """Return the room of a client."""
        return self._room("client_rooms", client_id or "")

    def _room(self, key: str, name: str) -> str:
        room = _first_match(self._settings.get(key) or {}, name)
        if room is None:
            raise SettingsLacking(f'[strategies.groups."{self._consumer_group}"] {key} has no room for {name}')
        return str(room)


def allocate_with(groups: Mapping[str, GroupSettings], virtual_node_cnt: int) -> Allocate:
    """Return allocation.allocate with the settings of the group; ``virtual_node_cnt`` is for groups without their own.

    The function takes strategy_name, consumer_group, current_cid, mq_all and cid_all.
    """

    def allocate(
        strategy_name: str,
        consumer_group: str | None,
        current_cid: str | None,
        mq_all: Sequence[MessageQueue] | None,
        cid_all: Sequence[str | None] | None,
    ) -> list[MessageQueue] | None:
        group = groups.get(consumer_group or "", NONE)
        strategy_name = _with_inner(strategy_name, consumer_group, group)
        settings = allocation.StrategySettings(
            message_queue_list=_config_list(strategy_name, consumer_group, current_cid, group),
            consumeridcs=_machine_rooms(strategy_name, consumer_group, group),
            virtual_node_cnt=group.get("virtual_node_cnt") or virtual_node_cnt,
            machine_room_resolver=_Rooms(consumer_group, group),
        )
        return allocation.allocate(strategy_name, consumer_group, current_cid, mq_all, cid_all, settings)

    return allocate


def _with_inner(strategy_name: str, consumer_group: str | None, group: GroupSettings) -> str:
    """Return the full name. A polled client reports MACHINE_ROOM_NEARBY without its inner strategy."""
    if strategy_name != NEARBY:
        return strategy_name
    if "nearby_strategy" not in group:
        raise SettingsLacking(f'[strategies.groups."{consumer_group}"] nearby_strategy is not set')
    return f"{NEARBY}-{group['nearby_strategy']}"


def _config_list(
    strategy_name: str, consumer_group: str | None, client_id: str | None, group: GroupSettings
) -> list[MessageQueue] | None:
    if "CONFIG" not in _parts(strategy_name):
        return None
    listed = _first_match(group.get("queues") or {}, client_id or "")
    if listed is None:
        raise SettingsLacking(f'[strategies.groups."{consumer_group}"] queues has no list for {client_id}')
    parts = [text.rsplit("/", 2) for text in listed]
    return [MessageQueue(topic, broker_name, int(queue_id)) for topic, broker_name, queue_id in parts]


def _machine_rooms(strategy_name: str, consumer_group: str | None, group: GroupSettings) -> list[str] | None:
    if "MACHINE_ROOM" not in _parts(strategy_name):
        return None
    if not group.get("machine_rooms"):
        raise SettingsLacking(f'[strategies.groups."{consumer_group}"] machine_rooms is not set')
    return list(group["machine_rooms"])


def _parts(strategy_name: str) -> list[str]:
    """Return the strategies in a name: MACHINE_ROOM_NEARBY-CONFIG also needs CONFIG."""
    return strategy_name.split("-")


def _first_match(patterns: Mapping[str, Any], name: str) -> Any:
    return next((value for pattern, value in patterns.items() if fnmatchcase(name, pattern)), None)
