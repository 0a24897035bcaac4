"""A line that is only a date: what `date` prints in usual locales, and what scripts write between commands. Pure."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from mqreplay.decode.columns import TIME_MAX
from mqreplay.importer.times.date_words import AFTERNOON, MORNING, is_filler, meanings_of, month_of, weekday_of
from mqreplay.importer.times.name_times import DAY_MS, NameTime, times_in, zone_of
from mqreplay.words.time_span import MINUTE_MS

_MARKS: Final = " \t=#-*+[]<>_$%|~\"'`,;"
_QUICK = re.compile(r"[0-9]{4}|[0-9]:[0-9]{2}|[0-9][/.][0-9]")
_LABEL = re.compile(r"[\w ]{0,12}(?:date|time|now|datum|zeit|fecha|时间|日期|時刻|日時)\s*[:=：]\s*", re.IGNORECASE)
_CJK_CLOCK = re.compile(r"([0-9]{1,2})\s?[时時点點시]\s*([0-9]{1,2})\s?[分분](?:\s*([0-9]{1,2})\s?[秒초])?")
_CJK_DATE = re.compile(r"([0-9]{4})\s*[年년]\s*([0-9]{1,2})\s*[月월]\s*([0-9]{1,2})\s*[日号號일]")
_CJK_MONTH = re.compile(r"(?<![0-9])([0-9]{1,2})\s?[月월](?!曜)\s*([0-9]{1,2})\s?[日일]?")
_CLOCK = re.compile(
    r"(?<![0-9:.])(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<part>[0-9]{1,9}))?)?(?![0-9:])"
)
_CLOCK_ALONE = re.compile(r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?(?: ?[AaPp]\.?[Mm]\.?)?")
_DOTTED_CLOCK = re.compile(
    r"(?<![0-9.])(?P<hour>[0-9]{1,2})\.(?P<minute>[0-9]{2})\.(?P<second>[0-9]{2})(?P<part>(?!))?(?![.0-9])"
)
_YEAR_FIRST = re.compile(r"(?<![0-9])([0-9]{4})[-/.] ?([0-9]{1,2})[-/.] ?([0-9]{1,2})\.?(?![0-9])")
_YEAR_LAST = re.compile(r"(?<![0-9])([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4})(?![0-9])")
_OFFSET = re.compile(r"(?:\b(?:UTC|GMT) ?)?(?<![0-9])([+-])([0-9]{1,2})(?::?([0-9]{2}))?(?![0-9])(?:\s*\([^()]*\))?")
_WORD = re.compile(r"[^\W\d_]+")
_SHORT_DATE = re.compile(r"[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}")
_NOT_OF_A_DATE = re.compile(
    r"[={}\[\]\\@|#]|://|(?<![0-9])/|/(?![0-9])|"
    r"\b(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL|the|and|was|in|after|before|with|is|not|from|to|for|broker)\b"
)
_MOST_WORDS: Final = 9
_MOST_UNKNOWN: Final = 3
_LONGEST_ZONE: Final = 5


class LineDate(NamedTuple):
    """The date of a line. ``ms`` is epoch milliseconds, None if it is unknown: ``why`` then gives the reason.

    ``day``: a line with a day but no time. ``has_zone``: the text has its time zone.
    """

    ms: int | None
    why: str | None = None
    has_zone: bool = False
    day: NameTime | None = None


def date_of_line(line: str, zone: dt.tzinfo, zone_is_set: bool = False) -> LineDate | None:
    """Return the date of a line that consists of a date; None for another line.

    Times without a zone, and those with a short name of several zones, are in ``zone``; the latter only if the user
    gave it.

    >>> date_of_line("=== 2026-11-21 02:39:57 ===", dt.UTC).ms, date_of_line("Sat Nov 21 02:39:57 UTC 2026", dt.UTC).ms
    (1795228797000, 1795228797000)
    >>> date_of_line("2026年11月21日 星期六 02时39分57秒 UTC", dt.UTC).ms
    1795228797000
    >>> date_of_line("1795228797", dt.UTC).ms, date_of_line("broker-a  0  2026-11-21 02:41:23,490", dt.UTC)
    (1795228797000, None)
    >>> date_of_line("2021-03-22 10:12:00 CST", dt.UTC).why
    "CST in '2021-03-22 10:12:00 CST' may be China (+08:00), US Central (-06:00) or Cuba (-05:00); give --time-zone"
    """
    if _QUICK.search(line) is None:
        return None
    text = line.strip(_MARKS)
    if not 4 <= len(text) <= 90:
        return None
    if text.startswith("RTC time"):  # timedatectl: the time of the line before it, without its zone
        return None
    date = _date_of(text, zone, zone_is_set)
    if date is not None and date.ms is not None:
        return date
    without_label = _LABEL.sub("", text, count=1).strip(_MARKS)
    return date if without_label == text else _date_of(without_label, zone, zone_is_set) or date


def _date_of(text: str, zone: dt.tzinfo, zone_is_set: bool) -> LineDate | None:
    found = times_in(text, zone)
    if len(found) == 1 and (found[0].begin, found[0].end) == (0, len(text)):
        only = found[0]
        if only.precision_ms <= MINUTE_MS:
            return LineDate(only.ms, None, only.has_zone)
        return LineDate(None, _day_without_time(text), day=only)
    return _Reader(text, zone, zone_is_set).date()


def is_clock(line: str) -> bool:
    """Return whether a line is only a time of day.

    >>> is_clock("06:27:40.12"), is_clock("06:27 AM"), is_clock("1:30:00 h")
    (True, True, False)
    """
    return _CLOCK_ALONE.fullmatch(line.strip()) is not None


def _day_without_time(text: str) -> str:
    return f"{text!r} before it is a day without a time; run date -u '+%F %TZ' before each command"


def not_read(text: str) -> LineDate:
    """Return the date of a line that cannot be read."""
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    return LineDate(None, f"the date {shown!r} before it cannot be read; run date -u '+%F %TZ' before each command")


class _Reader:
    """The parts of a text that may be a date. Each part that is found is removed from ``left``."""

    def __init__(self, text: str, zone: dt.tzinfo, zone_is_set: bool) -> None:
        self.text, self.left = text, text
        self.zone, self.zone_is_set = zone, zone_is_set

    def date(self) -> LineDate | None:
        """Return the date; one without instant if the text looks like a date and is not understood."""
        if len(self.text.split()) > _MOST_WORDS or _NOT_OF_A_DATE.search(self.text):
            return None
        self._replace(_CJK_CLOCK, lambda m: f" {m[1]}:{int(m[2]):02}:{int(m[3] or 0):02} ")
        self._replace(_CJK_DATE, lambda m: f" {m[1]}-{m[2]}-{m[3]} ")
        first = self._take(_YEAR_FIRST)
        clock = self._take(_CLOCK)
        last = None if first else self._take(_YEAR_LAST)
        clock = clock or self._take(_DOTTED_CLOCK)
        half = self._half()
        month_and_day = None if first or last else self._take(_CJK_MONTH)
        offset = self._take(_OFFSET) if clock else None
        words = _Words.of(self.left)
        has_day = first or last or month_and_day or words.months
        if len(words.unknown) > _MOST_UNKNOWN or not self._looks_like_one(clock is not None, has_day is not None):
            return None
        if last is not None:
            day = _day_of(last, words.weekdays)
            if day is None:
                return LineDate(None, f"{self.text!r} before it may be two days; write the month as a word")
        else:
            day = self._day(first or month_and_day, words.months)
        # One word beside a full ISO date, such as "begin", leaves no doubt.
        most_unknown = 1 if first is not None and clock is not None and clock["second"] else 0
        if day is None or len(words.unknown) > most_unknown or (last is None and len(words.months) > 1):
            return None if clock is None else not_read(self.text)
        if clock is None:
            return self._day_alone(day)
        return self._instant(day, clock, half, self._zone(offset, words.zones))

    def _looks_like_one(self, has_clock: bool, has_day: bool) -> bool:
        if not has_clock:
            return has_day
        has_year = re.search(r"\b(?:19|2[0-9])[0-9]{2}\b", self.left) is not None
        return has_day or has_year or is_clock(self.text) or _SHORT_DATE.search(self.text) is not None

    def _day(self, numeric: re.Match[str] | None, months: Sequence[int]) -> tuple[int, int, int] | None:
        """Return year, month and day. ``numeric`` has all three, or month and day."""
        numbers = [int(text) for text in numeric.groups()] if numeric is not None else []
        rest = re.findall("[0-9]+", self.left)
        if len(numbers) == 3:
            return None if rest or months else (numbers[0], numbers[1], numbers[2])
        years = [int(text) for text in rest if len(text) == 4]
        days = [int(text) for text in rest if len(text) <= 2]
        month, days = (numbers[0], [numbers[1], *days]) if numbers else (months[0] if months else 0, days)
        if len(years) != 1 or len(days) != 1 or len(rest) + (len(numbers) > 0) != 2 or not month:
            return None
        return years[0], month, days[0]

    def _day_alone(self, day: tuple[int, int, int]) -> LineDate | None:
        try:
            moment = dt.datetime(*day, tzinfo=self.zone)
        except ValueError:
            return None
        ms = round(moment.timestamp() * 1000)
        return LineDate(None, _day_without_time(self.text), day=NameTime(ms, DAY_MS, False, 0, len(self.text)))

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.search(self.left)
        if match is not None:
            self.left = f"{self.left[: match.start()]} {self.left[match.end() :]}"
        return match

    def _replace(self, pattern: re.Pattern[str], by: Callable[[re.Match[str]], str]) -> None:
        self.left = pattern.sub(by, self.left, count=1)

    def _half(self) -> int | None:
        """Return 0 for a time before noon, 12 for one after it, None for a clock of 24 hours."""
        match = self._take(re.compile(r"\b([AaPp])\.?\s?[Mm]\b\.?"))
        if match is not None:
            return 12 if match[1] in "Pp" else 0
        for names, hours in ((AFTERNOON, 12), (MORNING, 0)):
            if self._take(re.compile("|".join(names[1:]))) is not None:
                return hours
        return None

    def _zone(self, offset: re.Match[str] | None, names: list[str]) -> dt.tzinfo | str | _Named | None:
        """Return the zone of the text, None without one, or the reason why it is not known."""
        if offset is not None:
            try:
                return zone_of(f"{offset[1]}{int(offset[2]):02}{offset[3] or '00'}")
            except ValueError:
                return f"the zone {offset[0].strip()} of {self.text!r} before it does not exist"
        if not names:
            return None
        name = names[0]
        if len(names) == 1 and name in ("UTC", "GMT", "Z", "UCT"):
            return dt.UTC
        meanings = meanings_of(name)
        if len(names) > 1 or (not meanings and not self.zone_is_set):
            return f"the zone {' '.join(names)} of {self.text!r} before it is unknown; give --time-zone"
        if len(meanings) == 1:
            return dt.timezone(next(iter(meanings.values())))
        if not self.zone_is_set:
            shown = [f"{place} ({_offset_text(hours)})" for place, hours in meanings.items()]
            return f"{name} in {self.text!r} may be {', '.join(shown[:-1])} or {shown[-1]}; give --time-zone"
        return _Named(self.zone, name, tuple(meanings.values()))

    def _instant(
        self,
        date: tuple[int, int, int],
        clock: re.Match[str],
        half: int | None,
        zone: dt.tzinfo | str | _Named | None,
    ) -> LineDate:
        hour = int(clock["hour"]) if half is None else int(clock["hour"]) % 12 + half
        micros = int((clock["part"] or "").ljust(6, "0")[:6])
        where = zone.zone if isinstance(zone, _Named) else zone
        try:
            moment = dt.datetime(
                *date, hour, int(clock["minute"]), int(clock["second"] or 0), micros,
                tzinfo=where if isinstance(where, dt.tzinfo) else self.zone,
            )  # fmt: skip
            ms = round(moment.timestamp() * 1000)
        except (ValueError, OverflowError):
            return not_read(self.text)
        if isinstance(zone, str):
            return LineDate(None, zone)
        if isinstance(zone, _Named) and zone.offsets and moment.utcoffset() not in zone.offsets:
            return LineDate(None, f"{zone.name} in {self.text!r} before it is not the zone that --time-zone names")
        return LineDate(ms, None, zone is not None) if DAY_MS < ms <= TIME_MAX else not_read(self.text)


class _Named(NamedTuple):
    """The user's zone for a short name, and the offsets that the name may mean; none if the name is unknown."""

    zone: dt.tzinfo
    name: str
    offsets: tuple[dt.timedelta, ...]


def _offset_text(offset: dt.timedelta) -> str:
    minutes = round(offset.total_seconds() / 60)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def _day_of(match: re.Match[str], weekdays: Sequence[int]) -> tuple[int, int, int] | None:
    """Return year, month and day of 02/13/2026 or 13.02.2026; None if both orders are possible.

    >>> _day_of(_YEAR_LAST.match("02/13/2026"), []), _day_of(_YEAR_LAST.match("02/03/2026"), [0])
    ((2026, 2, 13), (2026, 3, 2))
    >>> _day_of(_YEAR_LAST.match("02/03/2026"), []) is None
    True
    """
    first, sign, second, year = int(match[1]), match[2], int(match[3]), int(match[4])
    fit = []
    for day, month in ((first, second), (second, first)):
        try:
            weekday = dt.date(year, month, day).weekday()
        except ValueError:
            continue
        if (not weekdays or weekday in weekdays) and (year, month, day) not in fit:
            fit.append((year, month, day))
    return fit[0] if len(fit) == 1 or (fit and sign == ".") else None


class _Words(NamedTuple):
    """The words of a date: months as numbers, days of the week from 0, short names of zones, and unknown ones."""

    months: list[int]
    weekdays: list[int]
    zones: list[str]
    unknown: list[str]

    @classmethod
    def of(cls, text: str) -> _Words:
        """Return the words of a text. A word that may be a day of the week or a month is the month if no other is."""
        words = _WORD.findall(text)
        named = [word for word in words if month_of(word) is not None]
        named = [word for word in named if weekday_of(word) is None] or named[-1:]
        weekdays = [day for word in words if (day := weekday_of(word)) is not None]
        rest = [word for word in words if month_of(word) is None and weekday_of(word) is None and not is_filler(word)]
        zones = [word for word in rest if word.isascii() and word.isupper() and len(word) <= _LONGEST_ZONE]
        unknown = [word for word in rest if word not in zones]
        return cls([month_of(word) or 0 for word in named], weekdays, zones, unknown)
