"""Time spans of owners: when nobody held a queue, and when several clients did."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

Span = tuple[dt.datetime, dt.datetime]


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return the spans joined where they touch or overlap, in order.

    >>> day = [dt.datetime(2026, 11, n) for n in range(1, 9)]
    >>> [(a.day, b.day) for a, b in merged([(day[2], day[4]), (day[0], day[1]), (day[3], day[5])])]
    [(1, 2), (3, 6)]
    """
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def gaps(spans: Iterable[Span], whole: Iterable[Span]) -> list[Span]:
    """Return the times of ``whole`` that no span covers.

    >>> day = [dt.datetime(2026, 11, n) for n in range(1, 9)]
    >>> [(a.day, b.day) for a, b in gaps([(day[1], day[2]), (day[4], day[7])], [(day[0], day[5])])]
    [(1, 2), (3, 5)]
    """
    covered = merged(spans)
    found: list[Span] = []
    for first, last in merged(whole):
        begin = first
        for since, until in covered:
            if until <= begin or since >= last:
                continue
            if since > begin:
                found.append((begin, since))
            begin = until
        if begin < last:
            found.append((begin, last))
    return found


def overlaps(spans: Iterable[Span]) -> list[Span]:
    """Return the times that at least two spans cover.

    >>> day = [dt.datetime(2026, 11, n) for n in range(1, 9)]
    >>> [(a.day, b.day) for a, b in overlaps([(day[0], day[4]), (day[1], day[2]), (day[3], day[7])])]
    [(2, 3), (4, 5)]
    """
    found: list[Span] = []
    latest: dt.datetime | None = None
    for begin, end in sorted(spans):
        if latest is not None and begin < latest:
            found.append((begin, min(end, latest)))
        latest = end if latest is None else max(latest, end)
    return merged(found)


def seconds(spans: Iterable[Span]) -> float:
    """Return the length of all spans together."""
    return sum((end - begin).total_seconds() for begin, end in spans)
