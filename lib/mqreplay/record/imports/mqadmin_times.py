"""The time of each output in a file: of a date line, of the path, of the rows, or of the file's last change. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from mqreplay.record.imports.mqadmin_text import Output
from mqreplay.record.imports.name_times import BY_CHANGE, BY_DAY, BY_DAY_ALONE, BY_PATH, DAY_MS, Dated, NameTime, dated
from mqreplay.record.imports.printed_times import latest_in

NO_DATE: Final = (
    "the same command is in it several times without a date between; run `date` before each command, or use "
    "one file each"
)
DATE_AFTER: Final = "it has no date before it, and later outputs of the file have one; run `date` before each command"
BY_LINE: Final = "the date before it"
BY_EARLIER_LINE: Final = "the date before an earlier output of the file"
BY_DAY_AND_ROWS: Final = "the day in its folder or name, and the last time in its rows"


class OutputTime(NamedTuple):
    """The time of an output (epoch ms), its source, and whether it is sure to a few minutes.

    ``ms`` is None if it is unknown: ``how`` is then the reason.
    """

    ms: int | None
    how: str
    is_sure: bool = False


def times_of(
    outputs: Sequence[Output], named: NameTime | None, modified_ms: int | None, zone: dt.tzinfo, zone_is_given: bool
) -> Iterator[tuple[Output, OutputTime]]:
    """Yield each output with its time.

    ``named`` is the time in the file's path. The path and the last change give the time of one output a command, since
    they give only one. An output after a dated one is from the same minute or later, unless its command is repeated.
    """
    when = dated(named, modified_ms)
    alike: dict[tuple[object, ...], list[int]] = {}
    for at, output in enumerate(outputs):
        if output.date is None and not output.is_empty:
            alike.setdefault(output.identity, []).append(at)
    last_dated = max((at for at, output in enumerate(outputs) if output.date is not None), default=-1)
    earlier: Output | None = None
    since: set[tuple[object, ...]] = set()
    for at, output in enumerate(outputs):
        if output.date is not None:
            earlier, since = output, {output.identity}
            yield output, _of_line(output, named, modified_ms, when, zone, zone_is_given)
            continue
        if earlier is not None:
            is_repeated = output.identity in since and not output.is_empty
            since.add(output.identity)
            found = OutputTime(None, NO_DATE) if is_repeated else _of_earlier(earlier, output, zone, zone_is_given)
            yield output, found
            continue
        # A name gives the time when a file was begun, its last change the time when it was ended.
        same = alike.get(output.identity, [at])
        is_by_change = when is not None and when.how == BY_CHANGE
        if when is None:
            yield output, OutputTime(None, "")
        elif at != (same[-1] if is_by_change else same[0]):
            yield output, OutputTime(None, NO_DATE)
        elif is_by_change and at < last_dated:
            yield output, OutputTime(None, DATE_AFTER)
        else:
            yield output, _of_file(output, when, named, zone)


def _of_line(
    output: Output, named: NameTime | None, modified_ms: int | None, when: Dated | None, zone: dt.tzinfo, is_given: bool
) -> OutputTime:
    date = output.date
    if date is not None and date.ms is not None:
        return OutputTime(date.ms, BY_LINE, date.has_zone or is_given)
    if date is not None and date.day is not None:
        of_day = _of_file(output, dated(date.day, modified_ms), date.day, zone)
        return OutputTime(None, date.why or "") if of_day.how == BY_DAY_ALONE else of_day
    if named is not None and when is not None and when.how == BY_PATH:
        return _of_file(output, when, named, zone)
    return OutputTime(None, "" if date is None else date.why or "")


def _of_earlier(earlier: Output, output: Output, zone: dt.tzinfo, zone_is_given: bool) -> OutputTime:
    date = earlier.date
    if date is None or date.ms is None:
        return OutputTime(None, "" if date is None else date.why or "")
    later = [at for at in latest_in(output.lines, zone) if date.ms < at < date.ms + DAY_MS]
    return OutputTime(max([date.ms, *later]), BY_EARLIER_LINE, (date.has_zone or zone_is_given) and not later)


def _of_file(output: Output, when: Dated | None, named: NameTime | None, zone: dt.tzinfo) -> OutputTime:
    """Return the time of an output from its file; a day or an hour is not its beginning, but any time in it."""
    if when is None:
        return OutputTime(None, "")
    if named is None or when.how not in (BY_DAY, BY_DAY_ALONE):
        return OutputTime(when.ms, when.how, when.how == BY_PATH and not when.zone_assumed)
    within = [at for at in latest_in(output.lines, zone) if named.ms <= at < named.ms + named.precision_ms]
    if within and (when.how == BY_DAY_ALONE or within[-1] > when.ms):
        return OutputTime(within[-1], BY_DAY_AND_ROWS)
    return OutputTime(when.ms, when.how)
