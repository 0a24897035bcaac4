"""Units of time, and the time of a finding as text: in the terminal, and in errors."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
ONE_DAY = dt.timedelta(days=1)
MINUTE_MS = 60_000


def time_span(begin: dt.datetime | None, end: dt.datetime | None) -> str:
    """Return from when to when, in UTC and to the second; one instant if both are in the same second.

    The day of the end is left out if it is that of the begin.

    >>> time_span(dt.datetime(2026, 11, 21, 2, 54, 22), dt.datetime(2026, 11, 21, 2, 56, 52))
    '2026-11-21 02:54:22 to 02:56:52 UTC'
    >>> time_span(dt.datetime(2026, 11, 21, 2, 54, 22), dt.datetime(2026, 11, 21, 2, 54, 22, 900_000))
    '2026-11-21 02:54:22 UTC'
    >>> time_span(dt.datetime(2026, 11, 21, 23, 59), dt.datetime(2026, 11, 22)), time_span(None, None)
    ('2026-11-21 23:59:00 to 2026-11-22 00:00:00 UTC', 'at an unknown time')
    >>> time_span(dt.datetime(2026, 11, 21, 23, 59), None), time_span(None, dt.datetime(2026, 11, 22))
    ('since 2026-11-21 23:59:00 UTC', 'until 2026-11-22 00:00:00 UTC')
    """
    if begin is None or end is None:
        word, known = ("since", begin) if end is None else ("until", end)
        return f"{word} {known:%Y-%m-%d %H:%M:%S} UTC" if known else "at an unknown time"
    if begin.replace(microsecond=0) == end.replace(microsecond=0):
        return f"{begin:%Y-%m-%d %H:%M:%S} UTC"
    until = f"{end:%H:%M:%S}" if begin.date() == end.date() else f"{end:%Y-%m-%d %H:%M:%S}"
    return f"{begin:%Y-%m-%d %H:%M:%S} to {until} UTC"


def day_span(days: Sequence[dt.date]) -> str:
    """Return the first and the last of sorted days.

    >>> day_span([dt.date(2026, 11, 21)]), day_span([]), day_span([dt.date(2026, 11, 21), dt.date(2026, 11, 23)])
    ('2026-11-21', 'none', '2026-11-21 to 2026-11-23')
    """
    if not days:
        return "none"
    return f"{days[0]}" if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
