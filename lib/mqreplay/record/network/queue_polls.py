"""First and last offsets of queues, asked queue by queue: 30 and 31. One request 202 for a topic is the other way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from mqreplay.core.delay_level import SCHEDULE_TOPIC
from mqreplay.record.network.estate import Estate
from mqreplay.record.network.polls import MOST_QUEUES
from mqreplay.record.network.readings import Reading, queue_reading
from mqreplay.record.network.schedule import Target
from mqreplay.record.remoting import requests
from mqreplay.record.remoting.frames import Answer
from mqreplay.record.remoting.requests import Request

LEAST_OFFSET_MS: Final = 600_000  # poll interval of a queue's minimum offset
FEW_QUEUES: Final = 2  # queues of a topic up to which 30 is as cheap as 202
Ask = Callable[[Request], Awaitable[Answer]]


class QueuePolls:
    """Polls of single queues, of the topics that an estate knows."""

    def __init__(self, estate: Estate) -> None:
        self._estate = estate
        self._least_asked: dict[Target, int] = {}

    def queues_of(self, target: Target) -> range | None:
        """Return the queues to ask one by one; None if one request for the whole topic is better."""
        assert target.broker is not None
        if target.subject == SCHEDULE_TOPIC:  # 202 also has the times of the last delayed messages
            return None
        count = self._estate.queue_counts.get(target.broker, {}).get(target.subject, 0)
        moved = (target.broker, target.subject) in self._estate.moved_topics
        return range(count) if 0 < count <= (FEW_QUEUES if moved else MOST_QUEUES) else None

    async def ask(self, target: Target, queues: range, ask: Ask, now: int) -> Reading:
        """Ask 30 for each queue, and 31 once in ten minutes. ``now``: epoch ms."""
        least: dict[int, Answer] = {}
        most: dict[int, Answer] = {}
        with_least = now - self._least_asked.get(target, -LEAST_OFFSET_MS) >= LEAST_OFFSET_MS
        for queue in queues:
            most[queue] = await ask(requests.get_max_offset(target.subject, queue))
            if with_least:
                least[queue] = await ask(requests.get_min_offset(target.subject, queue))
        if with_least:
            self._least_asked[target] = now
        return queue_reading(most, least)
