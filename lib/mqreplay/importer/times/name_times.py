"""Times in names of files and folders: epoch seconds and milliseconds, ISO dates and times, `date` suffixes.

Pure: names in, epoch milliseconds out. A time without a zone is in the zone that the caller gives.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from mqreplay.decode.columns import TIME_MAX
from mqreplay.words.time_span import MINUTE_MS

DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000
_LEAST_GAP_MS: Final = 2 * HOUR_MS  # a shorter gap is mostly that between two steps of an operator
_FIRST_EPOCH_S: Final = 978_307_200  # 2001: shorter numbers are not times

_EPOCH = re.compile(r"(?<![0-9A-Za-z])([0-9]{10}|[0-9]{13}|[0-9]{16}|[0-9]{19})(?![0-9A-Za-z])")
_ZONE = r"(?P<zone>[Zz]|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})?"
_DATE = r"(?<![0-9])(?P<year>20[0-9]{2})(?P<sep>[-_.]?)(?P<month>[0-9]{2})(?P=sep)(?P<day>[0-9]{2})"
_SECOND = r"(?P<second>[0-9]{2})s?(?:[.,](?P<part>[0-9]{1,9}))?"
_CLOCK = rf"(?P<hour>[0-9]{{2}})(?:[:\-_.h]?(?P<minute>[0-9]{{2}})(?:[:\-_.m]?{_SECOND})?)?"
_INSTANT = re.compile(rf"{_DATE}(?:(?:[Tt_\-. @]|(?<=[0-9]{{8}})){_CLOCK}(?![0-9]){_ZONE})?(?![0-9])")
_WHOLE_CLOCK = re.compile(rf"{_CLOCK}{_ZONE}")
_CLOCK_IN_NAME = re.compile(
    r"(?<![0-9A-Za-z])(?P<hour>[0-9]{2})(?:[:h](?P<minute>[0-9]{2})(?:[:m](?P<second>[0-9]{2}))?|"
    r"(?P<minute2>[0-9]{2})(?P<second2>[0-9]{2})?)(?![0-9A-Za-z])"
)
# The rest of a name after removing a time: separators without text around them.
_EDGES: Final = " ._-@:,+T"


class NameTime(NamedTuple):
    """An instant (epoch ms), the precision of its text (ms), whether the text has a zone, and its position."""

    ms: int
    precision_ms: int
    has_zone: bool
    begin: int
    end: int


def times_in(text: str, zone: dt.tzinfo) -> list[NameTime]:
    """Return the instants in a name, in order.

    >>> [(t.ms, t.precision_ms) for t in times_in("consumerOffset-20261121030000.json", dt.UTC)]
    [(1795230000000, 1000)]
    >>> [t.ms for t in times_in("1795228794427", dt.UTC) + times_in("2026-11-21T03-00-00Z", dt.UTC)]
    [1795228794427, 1795230000000]
    >>> times_in("broker-a-0", dt.UTC)
    []
    """
    found = []
    for match in _INSTANT.finditer(text):
        instant = _instant(match.groupdict(), zone, match.span())
        if instant is not None:
            found.append(instant)
    for match in _EPOCH.finditer(text):
        if any(t.begin < match.end() and match.start() < t.end for t in found):
            continue
        digits = match[1]
        ms = int(digits) * 1000 if len(digits) == 10 else int(digits[:13])
        if _FIRST_EPOCH_S * 1000 <= ms <= TIME_MAX:
            found.append(NameTime(ms, 1000 if len(digits) == 10 else 1, True, *match.span()))
    return sorted(found, key=lambda t: t.begin)


def without_times(text: str, zone: dt.tzinfo) -> str:
    """Return a name without the instants in it.

    >>> without_times("broker-a-0_20261121_030000", dt.UTC)
    'broker-a-0'
    """
    for found in reversed(times_in(text, zone)):
        text = f"{text[: found.begin].rstrip(_EDGES)}_{text[found.end :].lstrip(_EDGES)}"
    return text.strip(_EDGES)


def time_of_path(parts: Sequence[str], zone: dt.tzinfo) -> NameTime | None:
    """Return the instant in the path of a file: of the most precise ones, the nearest to the file.

    ``begin`` is the index of its part. A clock time alone counts below a date's folder, or after a date.

    >>> time_of_path(("copies", "2026-11-21", "03:00", "consumerOffset.json"), dt.UTC).ms
    1795230000000
    >>> time_of_path(("2026", "11", "21", "03", "topics.json"), dt.UTC).precision_ms == HOUR_MS
    True
    >>> time_of_path(("broker-a", "0", "topics.json"), dt.UTC) is None
    True
    """
    dates: list[tuple[int, NameTime]] = []
    for index in reversed(range(len(parts))):
        found = times_in(parts[index], zone)
        exact = [t for t in found if t.precision_ms <= MINUTE_MS]
        if exact:
            return exact[-1]._replace(begin=index)
        dates += [(index, t) for t in found]
        if (date := _date_of_folders(parts, index, zone)) is not None:
            dates.append((index, date))
    if not dates:
        return None
    index, date = dates[0]
    if date.precision_ms == DAY_MS:
        clock = _clock_below(parts, index)
        if clock is not None:
            begun = dt.datetime.fromtimestamp(date.ms / 1000, zone)
            fields = {"year": str(begun.year), "month": str(begun.month), "day": str(begun.day), **clock}
            if (instant := _instant(fields, zone, (index, index))) is not None:
                return instant
    return date._replace(begin=index)


def _date_of_folders(parts: Sequence[str], index: int, zone: dt.tzinfo) -> NameTime | None:
    """Return the day of folders such as 2026/11/21 whose last part is ``index``."""
    if index < 2 or index == len(parts) - 1 or not all(part.isascii() for part in parts[index - 2 : index + 1]):
        return None
    year, month, day = parts[index - 2 : index + 1]
    if not (re.fullmatch("20[0-9]{2}", year) and re.fullmatch("[0-9]{2}", month) and re.fullmatch("[0-9]{2}", day)):
        return None
    return _instant({"year": year, "month": month, "day": day}, zone, (index, index))


def _clock_below(parts: Sequence[str], index: int) -> dict[str, str | None] | None:
    """Return the clock time of a folder below that of the date, or of the file's name."""
    last = len(parts) - 1
    for at in reversed(range(index + 1, last)):
        below_date = at == index + 1
        match = _WHOLE_CLOCK.fullmatch(parts[at])
        if match and (match["minute"] or below_date):
            hours = {"hour": match["hour"], "minute": match["minute"]}
            if match["minute"] is None and at + 1 < last and re.fullmatch("[0-9]{2}", parts[at + 1]):
                hours["minute"] = parts[at + 1]
            return {**hours, "second": match["second"], "part": match["part"], "zone": match["zone"]}
    if index < last and (match := _CLOCK_IN_NAME.search(parts[last])):
        return {
            "hour": match["hour"],
            "minute": match["minute"] or match["minute2"],
            "second": match["second"] or match["second2"],
        }
    return None


def _instant(fields: dict[str, str | None], zone: dt.tzinfo, span: tuple[int, int]) -> NameTime | None:
    year, month, day, hour, minute, second = (
        int(fields.get(name) or 0) for name in ("year", "month", "day", "hour", "minute", "second")
    )
    part, named = fields.get("part") or "", fields.get("zone")
    try:
        moment = dt.datetime(year, month, day, hour, minute, second, int(part.ljust(6, "0")[:6]))
        moment = moment.replace(tzinfo=zone if named is None else zone_of(named))
        ms = round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
    if not 0 <= ms <= TIME_MAX:
        return None
    is_named = [fields.get(name) is not None for name in ("part", "second", "minute", "hour")]
    precision = next((p for has, p in zip(is_named, (1, 1000, MINUTE_MS, HOUR_MS), strict=True) if has), DAY_MS)
    return NameTime(ms, precision, named is not None, *span)


def zone_of(text: str) -> dt.tzinfo:
    """Return the zone of an offset from UTC. Raises ValueError.

    >>> zone_of("+08:00"), zone_of("Z")
    (datetime.timezone(datetime.timedelta(seconds=28800)), datetime.timezone.utc)
    """
    if text.upper() in ("Z", "UTC", "GMT"):
        return dt.UTC
    match = re.fullmatch(r"([+-])([0-9]{2}):?([0-9]{2})", text)
    if match is None:
        raise ValueError(f"{text!r} is not an offset from UTC")
    offset = dt.timedelta(hours=int(match[2]), minutes=int(match[3]))
    return dt.timezone(-offset if match[1] == "-" else offset)


class Dated(NamedTuple):
    """The time of a file in epoch ms, its source, and whether the zone was assumed."""

    ms: int
    how: str
    zone_assumed: bool = False


BY_PATH: Final = "its name or folder"
BY_DAY: Final = "the day in its name or folder, and the time of its last change"
BY_DAY_ALONE: Final = "only the day or hour in its name or folder; its beginning is used"
BY_CHANGE: Final = "the time of its last change"


def dated(named: NameTime | None, modified_ms: int | None) -> Dated | None:
    """Return the time of a file from its path, else from its last change; None without either.

    If the path has only a day or an hour, a last change within it is used.

    >>> dated(NameTime(1795219200000, DAY_MS, False, 0, 0), 1795228794427).ms
    1795228794427
    >>> dated(None, 0) is None
    True
    """
    if named is not None and named.precision_ms <= MINUTE_MS:
        return Dated(named.ms, BY_PATH, not named.has_zone)
    if named is not None:
        within = modified_ms is not None and named.ms <= modified_ms < named.ms + named.precision_ms
        return Dated(modified_ms, BY_DAY) if within and modified_ms else Dated(named.ms, BY_DAY_ALONE)
    if modified_ms is None or not _FIRST_EPOCH_S * 1000 <= modified_ms <= TIME_MAX:
        return None
    return Dated(modified_ms, BY_CHANGE)


def zone_misfit(assumed: Sequence[int], known: Sequence[int], zone: str) -> str | None:
    """Return a note if times with an assumed zone do not overlap those with a known zone (both epoch ms).

    >>> zone_misfit([36_000_000, 37_000_000], [7_200_000, 8_300_000], "UTC")
    'times in names, read as UTC, are 8 hours later than all other times; give --time-zone if their clock was ahead'
    >>> zone_misfit([5, 9], [7], "UTC") is None
    True
    """
    if not assumed or not known or max(min(assumed) - max(known), min(known) - max(assumed)) < _LEAST_GAP_MS:
        return None
    later = min(assumed) > max(known)
    hours = round((min(assumed) - min(known)) / HOUR_MS * 2) / 2
    words = "later" if later else "earlier"
    side = "ahead" if later else "behind"
    return (
        f"times in names, read as {zone}, are {abs(hours):g} hours {words} than all other times; "
        f"give --time-zone if their clock was {side}"
    )
