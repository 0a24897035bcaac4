"""A line of consumerOffset.jsonl.gz: a broker's complete offset table, or its changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OffsetTable = Mapping[str, Mapping[int, int] | Mapping[str, int]]  # {"topic@group": {queue id: offset in messages}}


def offset_line(before: OffsetTable | None, table: OffsetTable) -> dict[str, Any]:
    """Return the complete table if there is none before it, else the changes.

    >>> offset_line(None, {"orders@pay": {0: 12, 1: 7}})
    {'offsetTable': {'orders@pay': {0: 12, 1: 7}}}
    >>> offset_line({"orders@pay": {0: 12, 1: 7}}, {"orders@pay": {0: 13}})
    {'changed': {'orders@pay': {0: 13}}, 'removed': {'orders@pay': [1]}}
    >>> offset_line({"orders@pay": {0: 12}}, {"orders@pay": {0: 12}})
    {}
    """
    if before is None:
        return {"offsetTable": {key: dict(queues) for key, queues in table.items()}}
    changed: dict[str, dict[Any, int]] = {}
    removed: dict[str, list[int]] = {}
    for key, queues in table.items():
        known: Mapping[Any, int] = before.get(key, {})
        if queues != known:
            moved = {queue: offset for queue, offset in queues.items() if known.get(queue) != offset}
            gone = [int(queue) for queue in known if queue not in queues]
            changed.update({key: moved} if moved else {})
            removed.update({key: gone} if gone else {})
    removed.update(
        {key: [int(queue) for queue in queues] for key, queues in before.items() if key not in table and queues}
    )
    return ({"changed": changed} if changed else {}) | ({"removed": removed} if removed else {})
