"""The time of each output in a file: of a date line, of the path, of the rows, or of the file's last change. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from mqreplay.record.imports.mqadmin.outputs import Output
from mqreplay.record.imports.times.date_lines import LineDate
from mqreplay.record.imports.times.name_times import (
    BY_CHANGE,
    BY_DAY,
    BY_DAY_ALONE,
    BY_PATH,
    DAY_MS,
    HOUR_MS,
    Dated,
    NameTime,
    dated,
)
from mqreplay.record.imports.times.printed_times import latest_in

NO_DATE: Final = (
    "the same command is in it several times without a date between; run `date` before each command, or use "
    "one file each"
)
DATE_AFTER: Final = "it has no date before it, and later outputs of the file have one; run `date` before each command"
BY_LINE: Final = "the date before it"
BY_EARLIER_LINE: Final = "the date before an earlier output of the file"
BY_DAY_AND_ROWS: Final = "the day in its folder or name, and the last time in its rows"

_LATE_MS: Final = HOUR_MS


class OutputTime(NamedTuple):
    """The time of an output (epoch ms), its source, and whether it is sure to a few minutes.

    ``ms`` is None if it is unknown: ``how`` is then the reason.
    """

    ms: int | None
    how: str
    is_sure: bool = False


def times_of(
    outputs: Sequence[Output], named: NameTime | None, modified_ms: int | None, zone: dt.tzinfo, zone_is_set: bool
) -> Iterator[tuple[Output, OutputTime]]:
    """Yield each output with its time.

    ``named`` is the time in the file's path. The path and the last change give the time of one output a command, since
    they give only one. An output after a dated one is from the same minute or later, unless its command is repeated.
    """
    file = _File(outputs, dated(named, modified_ms), named, modified_ms, zone, zone_is_set)
    earlier: Output | None = None
    since: set[tuple[object, ...]] = set()
    for at, output in enumerate(outputs):
        if output.date is not None:
            earlier, since = output, {output.identity}
            yield output, file.of_line(at, output.date)
        elif earlier is None:
            yield output, file.of_path(at)
        elif output.identity in since and not output.is_empty:
            yield output, OutputTime(None, NO_DATE)
        else:
            since.add(output.identity)
            yield output, _of_earlier(earlier, output, zone, zone_is_set)


class _File(NamedTuple):
    """A file's outputs, and its time by its path and last change."""

    outputs: Sequence[Output]
    when: Dated | None
    named: NameTime | None
    modified_ms: int | None
    zone: dt.tzinfo
    zone_is_set: bool

    def of_line(self, at: int, date: LineDate) -> OutputTime:
        """Return the time of an output after a line with a date; that of the path if the line has no instant."""
        if date.ms is not None:
            return OutputTime(date.ms, BY_LINE, date.has_zone or self.zone_is_set)
        if self.when is not None and self.when.how == BY_PATH and self._is_only(at, self.when):
            return OutputTime(self.when.ms, BY_PATH, not self.when.zone_assumed)
        if date.day is not None:
            found = _of_day(self.outputs[at], dated(date.day, self.modified_ms), date.day, self.zone)
            return OutputTime(None, date.why or "") if found.how == BY_DAY_ALONE else found
        return OutputTime(None, date.why or "")

    def of_path(self, at: int) -> OutputTime:
        """Return the time of an output without a date before it."""
        when = self.when
        if when is None:
            return OutputTime(None, "")
        if not self._is_only(at, when):
            return OutputTime(None, NO_DATE)
        if when.how == BY_CHANGE and any(output.date is not None for output in self.outputs[at:]):
            return OutputTime(None, DATE_AFTER)
        if self.named is not None and when.how in (BY_DAY, BY_DAY_ALONE):
            return _of_day(self.outputs[at], when, self.named, self.zone)
        return OutputTime(when.ms, when.how, when.how == BY_PATH and not when.zone_assumed)

    def _is_only(self, at: int, when: Dated) -> bool:
        """Return whether the time of the file can be that of this output among equal ones.

        A name gives the time when a file was begun, its last change the time when it was ended.
        """
        output = self.outputs[at]
        same = [
            place
            for place, other in enumerate(self.outputs)
            if other.identity == output.identity and other.ts_ms is None and not other.is_empty
        ] or [at]
        return at == (same[-1] if when.how == BY_CHANGE else same[0])


def _of_earlier(earlier: Output, output: Output, zone: dt.tzinfo, zone_is_set: bool) -> OutputTime:
    date = earlier.date
    if date is None or date.ms is None:
        return OutputTime(None, "" if date is None else date.why or "")
    later = [at for at in latest_in(output.lines, zone) if date.ms < at < date.ms + DAY_MS]
    return OutputTime(max([date.ms, *later]), BY_EARLIER_LINE, (date.has_zone or zone_is_set) and not later)


def _of_day(output: Output, when: Dated | None, day: NameTime, zone: dt.tzinfo) -> OutputTime:
    """Return the time of an output from a day or an hour: that is not its beginning, but any time in it.

    The last time in the rows counts if it is later; an output may also have been made a little after the day.
    """
    if when is None:
        return OutputTime(None, "")
    within = [at for at in latest_in(output.lines, zone) if day.ms <= at < day.ms + day.precision_ms + _LATE_MS]
    if within and (when.how == BY_DAY_ALONE or within[-1] > when.ms):
        return OutputTime(within[-1], BY_DAY_AND_ROWS)
    return OutputTime(when.ms, when.how)
