"""Scales of the pictures: time across, values up, and the words on the axes."""

from __future__ import annotations

import datetime as dt
import math
import unicodedata
from dataclasses import dataclass

from mqreplay.report.pictures.night import NightSpan
from mqreplay.report.text import visible

WIDTH = 960  # of a picture, in its own units
LEFT = 200  # where the plot begins; the names of the rows are left of it
PLOT = WIDTH - LEFT - 20
MOST_TICKS = 7
STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
CHARACTER = 7.1  # average width of a character of 13 units
UNITS = (("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000), ("T", 1_000_000_000_000))
BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


@dataclass(frozen=True)
class TimeScale:
    """Places instants of a night across the plot."""

    night: NightSpan

    def x(self, moment: dt.datetime) -> float:
        """Return the place of the moment; moments outside the night are placed at its ends."""
        share = (moment - self.night.first).total_seconds() / self.night.seconds
        return round(LEFT + min(max(share, 0.0), 1.0) * PLOT, 1)

    def ticks(self) -> list[tuple[float, str]]:
        """Return the places and labels of round instants."""
        found = ticks(self.night.first, self.night.seconds)
        return [(round(LEFT + share * PLOT, 1), label) for share, label in found]


@dataclass(frozen=True)
class ValueScale:
    """Places values between ``low`` (at the bottom) and ``high`` (at the top) of a panel."""

    low: float
    high: float
    top: float
    height: float

    def y(self, value: float) -> float:
        """Return the place of a value; values outside are placed at the ends."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.top + self.height * (1 - min(max(share, 0.0), 1.0)), 1)


@dataclass(frozen=True)
class ByteScale:
    """Places bytes by their logarithm: the bottom is ``low`` and less."""

    low: float
    high: float
    top: float
    height: float

    def y(self, value: float) -> float:
        """Return the place of a number of bytes."""
        spread = math.log(self.high / self.low) or 1.0
        share = math.log(max(value, self.low) / self.low) / spread
        return round(self.top + self.height * (1 - min(max(share, 0.0), 1.0)), 1)


def ticks(first: dt.datetime, seconds: float) -> list[tuple[float, str]]:
    """Return round instants of the day as shares of the time range and labels, at most MOST_TICKS of them.

    >>> [label for _, label in ticks(dt.datetime(2026, 11, 21, 2, 39, 52), 1110)]
    ['02:40', '02:45', '02:50', '02:55']
    """
    longest = STEPS_S[-1]
    step = next((s for s in STEPS_S if seconds / s <= MOST_TICKS), longest * -int(-seconds // (MOST_TICKS * longest)))
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    since_midnight = (first - midnight).total_seconds()
    form = "%m-%d" if step >= longest else "%H:%M" if step >= 60 else "%H:%M:%S"
    found: list[tuple[float, str]] = []
    second = -int(-since_midnight // step) * step
    while second <= since_midnight + seconds:
        label = (midnight + dt.timedelta(seconds=second)).strftime(form)
        found.append(((second - since_midnight) / seconds, label))
        second += step
    return found


def round_up(value: float) -> int:
    """Return the next of 1, 2, 5, 10, 20, 50, ...

    >>> [round_up(v) for v in (0, 1, 3, 17, 243, 999_999)]
    [1, 1, 5, 20, 500, 1000000]
    """
    if value <= 1:
        return 1
    power = 10 ** math.floor(math.log10(value))
    return next(int(step * power) for step in (1, 2, 5, 10) if step * power >= value)


def short(value: float) -> str:
    """Return a number in at most three digits and its unit.

    >>> [short(v) for v in (0, 7, 999, 1_000, 25_300, 1_200_000, -1_500)]
    ['0', '7', '999', '1k', '25.3k', '1.2M', '-1.5k']
    """
    size = abs(value)
    unit, factor = next(((u, f) for u, f in reversed(UNITS) if size >= f), ("", 1))
    scaled = value / factor
    digits = 0 if float(scaled).is_integer() or abs(scaled) >= 100 else 1
    return f"{scaled:.{digits}f}{unit}"


def in_bytes(value: float) -> str:
    """Return a number of bytes with its unit.

    >>> [in_bytes(v) for v in (0, 512, 1024, 252_765_020)]
    ['0 B', '512 B', '1 KiB', '241 MiB']
    """
    power = min(int(math.log(max(abs(value), 1), 1024)), len(BYTES) - 1)
    scaled = value / 1024**power
    digits = 0 if scaled.is_integer() or abs(scaled) >= 100 else 1
    return f"{scaled:.{digits}f} {BYTES[power]}"


def text_width(text: str, size: float = 13) -> float:
    """Return about how wide the text is."""
    cells = sum(1.8 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
    return cells * CHARACTER * size / 13


def shorten(text: object, width: float, size: float = 13) -> str:
    """Return the text as it is shown, its middle left out where it is too wide.

    >>> shorten("ship-circle-group", 200), shorten("x" * 40 + "-group", 100)
    ('ship-circle-group', 'xxxxxxx…-group')
    """
    shown = str(visible(str(text)))
    if text_width(shown, size) <= width:
        return shown
    room = max(int(width / (CHARACTER * size / 13 * (text_width(shown) / CHARACTER / len(shown)))) - 1, 2)
    head = (room + 1) // 2
    return f"{shown[:head]}…{shown[len(shown) - (room - head) :]}"


def path_through(points: list[tuple[float, float] | None]) -> str:
    """Return the path through the points; None interrupts it."""
    words: list[str] = []
    pen = "M"
    for point in points:
        if point is None:
            pen = "M"
            continue
        words.append(f"{pen}{point[0]:g} {point[1]:g}")
        pen = "L"
    return "".join(words)
