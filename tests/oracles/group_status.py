"""The status of a consumer group by those of its queues: Burrow's rule, which gold.group_status applies to frames."""

from __future__ import annotations

from collections.abc import Iterable

from mqreplay.core.status_windows import STATUSES, Status


def group_status(statuses: Iterable[Status | None]) -> Status | None:
    """Return the worst status of a group's queues, by Burrow's numbers: OK, WARN, STOP, STALL, REWIND.

    Burrow itself returns ERR for the last three. An undetermined queue (None) does not hide the problem of another one;
    if all others are OK, the group is undetermined. OK without queues. No method of RocketMQ: Burrow's
    evaluateConsumerStatus.

    >>> group_status(["OK", "STOP", "WARN"]), group_status([None, "WARN"]), group_status([None, "OK"])
    ('STOP', 'WARN', None)
    """
    distinct = set(statuses)
    worst: Status = "OK"
    for status in STATUSES:
        if status in distinct:
            worst = status
    return None if worst == "OK" and None in distinct else worst
