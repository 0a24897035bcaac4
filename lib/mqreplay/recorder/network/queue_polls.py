"""First and last offsets of queues, asked queue by queue: 30 and 31. One request 202 for a topic is the other way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from mqreplay.core.delay_level import SCHEDULE_TOPIC
from mqreplay.recorder.network.bounded import MOST_DIGITS, is_long
from mqreplay.recorder.network.estate import Estate
from mqreplay.recorder.network.readings import Reading, with_error
from mqreplay.recorder.network.schedule import Target
from mqreplay.recorder.network.targets import MOST_SINGLE_QUEUES
from mqreplay.recorder.remoting.frames import SUCCESS, Answer
from mqreplay.recorder.remoting.requests import ReadCode, Request, queue_request

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
        broker = target.broker_key
        if target.subject == SCHEDULE_TOPIC:  # 202 also has the times of the last delayed messages
            return None
        count = self._estate.queue_counts.get(broker, {}).get(target.subject, 0)
        moved = (broker, target.subject) in self._estate.moved_topics
        return range(count) if 0 < count <= (FEW_QUEUES if moved else MOST_SINGLE_QUEUES) else None

    async def ask(self, target: Target, queues: range, ask: Ask, now: int) -> Reading:
        """Ask 30 for each queue, and 31 once in ten minutes. ``now``: epoch ms."""
        least: dict[int, Answer] = {}
        most: dict[int, Answer] = {}
        with_least = now - self._least_asked.get(target, -LEAST_OFFSET_MS) >= LEAST_OFFSET_MS
        for queue in queues:
            most[queue] = await ask(queue_request(ReadCode.GET_MAX_OFFSET, target.subject, queue))
            if with_least:
                least[queue] = await ask(queue_request(ReadCode.GET_MIN_OFFSET, target.subject, queue))
        if with_least:
            self._least_asked[target] = now
        return queue_reading(most, least)


def queue_reading(answers: Mapping[int, Answer], least: Mapping[int, Answer]) -> Reading:
    """Return the reading of answers to 30, and to 31 if it was asked, by queue id."""
    rows, offsets = [], {}
    for queue_id, answer in sorted(answers.items()):
        if answer.code != SUCCESS:
            return with_error(answer)
        offset, lowest = _offset(answer), _offset(least[queue_id]) if queue_id in least else None
        if offset is None:
            return Reading({"error": "the answer has no offset"}, "no offset", None, "the answer has no offset")
        rows.append({"queue_id": queue_id, "min_offset": lowest, "max_offset": offset})
        offsets[queue_id] = offset
    # The smallest offsets are seldom asked: each answer with them counts.
    return Reading({"offsets": rows}, tuple(offsets.items()), offsets, is_kept=bool(least))


def _offset(answer: Answer) -> int | None:
    text = answer.fields.get("offset", "")
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS):
        return None
    return int(text) if is_long(int(text)) else None
