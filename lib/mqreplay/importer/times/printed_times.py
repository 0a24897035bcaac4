"""The times in mqadmin's outputs, which it prints in the zone of its host. Pure."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from mqreplay.importer.times.name_times import HOUR_MS
from mqreplay.words.time_span import MINUTE_MS

_DATE_TIME = re.compile(
    r"(?<![0-9])(?:([0-9]{4})-([0-9]{2})-([0-9]{2}) ([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[,.]([0-9]{3}))?|"
    r"(20[0-9]{2}|1970)([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{3})?)(?![0-9])"
)
_AHEAD_MS: Final = 5 * MINUTE_MS  # a printed time after the output itself by more than a slow clock explains
_ZONE_MS: Final = HOUR_MS // 4  # printed times later than the output by more than this are in another zone
_NO_TIME_MS: Final = 2 * 24 * HOUR_MS  # 0 in any zone is within the first two days of 1970


def local_ms(text: str | None, zone: dt.tzinfo) -> int | None:
    """Return the epoch milliseconds of a time that mqadmin prints in its host's zone; None for N/A and for 0.

    >>> local_ms("2026-11-21 02:41:23,490", dt.UTC), local_ms("20261121024123490", dt.UTC), local_ms("N/A", dt.UTC)
    (1795228883490, 1795228883490, None)
    >>> local_ms("1970-01-01 08:00:00", dt.UTC) is None
    True
    """
    match = _DATE_TIME.fullmatch((text or "").strip())
    return None if match is None else _ms_of(match, zone)


def latest_in(lines: Iterable[str], zone: dt.tzinfo) -> list[int]:
    """Return the times (epoch ms) that lines of an output show, in order.

    >>> latest_in(["t  b  0  5  2026-11-21 02:41:23", "lastPullTimestamp=20261121024123490, x"], dt.UTC)
    [1795228883000, 1795228883490]
    """
    found = (_ms_of(match, zone) for line in lines for match in _DATE_TIME.finditer(line))
    return sorted(ms for ms in found if ms is not None)


def _ms_of(match: re.Match[str], zone: dt.tzinfo) -> int | None:
    groups = match.groups()
    *fields, part = groups[:7] if groups[0] else groups[7:]
    year, month, day, hour, minute, second = (int(field or 0) for field in fields)
    try:
        moment = dt.datetime(year, month, day, hour, minute, second, int(part or 0) * 1000, tzinfo=zone)
        ms = round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
    return ms if _NO_TIME_MS < ms <= 4_102_444_800_000 else None


@dataclass
class PrintedTimes:
    """Reads times of outputs. ``latest_ahead_ms``: how much later one was than its output, at most."""

    zone: dt.tzinfo
    latest_ahead_ms: int = 0
    offsets: set[str] = field(default_factory=set)  # of the hosts' zones, as their times of 0 show

    def of(self, texts: Sequence[str | None], ts_ms: int) -> list[int]:
        """Return the printed times (epoch ms, 0 for none); all 0 if one is later than the output itself."""
        self.offsets |= {offset for text in texts if (offset := offset_of_zero(text)) is not None}
        times = [local_ms(text, self.zone) or 0 for text in texts]
        return [0] * len(times) if any(self.is_ahead(at, ts_ms) for at in times) else times

    def is_ahead(self, at_ms: int, ts_ms: int) -> bool:
        """Return whether a time is later than its output."""
        ahead = at_ms - ts_ms
        self.latest_ahead_ms = max(self.latest_ahead_ms, ahead)
        return ahead > _AHEAD_MS

    def notes(self, zone_name: str, zone_is_set: bool) -> list[str]:
        """Return what the times show about their zone."""
        notes = []
        if self.latest_ahead_ms > _ZONE_MS:
            hours = round(self.latest_ahead_ms / HOUR_MS * 2) / 2
            words = (
                f"times that mqadmin printed are up to {hours:g} hours later than its outputs, so they are left out: "
            )
            if zone_is_set:
                notes.append(f"{words}its host is not in {zone_name}, or the time of an output is wrong")
            else:
                notes.append(f"{words}its host is probably {hours:g} hours ahead of {zone_name}; give --time-zone")
        if not zone_is_set and len(self.offsets) == 1 and (offset := next(iter(self.offsets))) != "+00:00":
            notes.append(f"mqadmin printed the time 0 as that of a zone of {offset}; give --time-zone {offset}")
        return notes


def offset_of_zero(text: str | None) -> str | None:
    """Return the offset from UTC of a host that printed epoch 0; None for other times.

    >>> offset_of_zero("1970-01-01 08:00:00"), offset_of_zero("1969-12-31 18:00:00"), offset_of_zero("N/A")
    ('+08:00', '-06:00', None)
    """
    match = re.fullmatch(r"(1970-01-01|1969-12-31) ([0-9]{2}):([0-9]{2}):00(?:[,.]000)?", (text or "").strip())
    if match is None:
        return None
    minutes = int(match[2]) * 60 + int(match[3])
    if match[1] == "1969-12-31":
        minutes = 24 * 60 - minutes
    sign = "-" if match[1] == "1969-12-31" else "+"
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}" if minutes <= 14 * 60 and minutes % 15 == 0 else None
