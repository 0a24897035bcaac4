"""Files with mqadmin's outputs: read for the brokers that they name first, then for their records."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mqreplay.decode.kinds import KINDS
from mqreplay.decode.text import text_of_bytes
from mqreplay.importer.files.imported_files import MOST_TEXT, UNREADABLE, ImportedFiles, why_unreadable
from mqreplay.importer.files.layout import TEXT, Place
from mqreplay.importer.files.sources import Source, Writer
from mqreplay.importer.import_report import ImportReport
from mqreplay.importer.mqadmin.admin import READERS, Admin, not_used
from mqreplay.importer.mqadmin.answers import Record
from mqreplay.importer.mqadmin.dashboard_json import JsonAnswer, json_answer_of, records_of_json
from mqreplay.importer.mqadmin.metrics_page import MetricsPage, disks, metrics_page_of
from mqreplay.importer.mqadmin.offsets import lags_seen_once
from mqreplay.importer.mqadmin.outputs import Output, outputs_of
from mqreplay.importer.staging import line_of
from mqreplay.importer.stores.snapshots import NO_TIME
from mqreplay.importer.times.date_lines import LineDate
from mqreplay.importer.times.name_times import (
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
from mqreplay.importer.times.printed_times import latest_in
from mqreplay.words.errors import DecodeError

NO_USE: Final = "no decision uses this log"
NO_OUTPUT: Final = "it is neither a file that import knows nor an output of mqadmin"
TOO_LARGE: Final = f"it holds more than {MOST_TEXT >> 20} MiB, so that no output of mqadmin was looked for in it"
_LOG = re.compile(r"\.(?:log|out)\b")
_OLD_MS: Final = 86_400_000  # a file that was changed this long after the times in it was probably copied
NO_DATE: Final = (
    "the same command is in it several times without a date between; run `date` before each command, or use "
    "one file each"
)
DATE_AFTER: Final = "it has no date before it, and later outputs of the file have one; run `date` before each command"
BY_LINE: Final = "the date before it"
BY_EARLIER_LINE: Final = "the date before an earlier output of the file"
BY_DAY_AND_ROWS: Final = "the day in its folder or name, and the last time in its rows"
_LATE_MS: Final = HOUR_MS


class _Answer(NamedTuple):
    """An output or an answer in JSON, its file, and its time (epoch ms)."""

    ts_ms: int
    source: Source
    place: Place
    output: Output
    time: OutputTime
    json: JsonAnswer | MetricsPage | None = None


@dataclass
class AdminOutputs:
    """A reader of files that their name does not identify: call `learn` for the brokers first, then `write`.

    ``instants`` are the certain ones: a copied file may have another last change.
    """

    admin: Admin
    imported: ImportedFiles
    instants: list[int] = field(default_factory=list)
    _answers: list[_Answer] = field(default_factory=list)
    _dated_by: Counter[str] = field(default_factory=Counter)
    _copied: int = 0

    def learn(self) -> None:
        """Read all outputs in order of time."""
        for source, place in self.imported.by_kind[TEXT]:
            try:
                text, _ = text_of_bytes(source.read(MOST_TEXT))
            except UNREADABLE as error:
                is_large = isinstance(error, DecodeError) and error.code == "too_large"
                self.imported.refuse(source, TOO_LARGE if is_large else why_unreadable(error))
                continue
            outputs, json = self._outputs_of(text)
            if not outputs:
                self.imported.refuse(source, NO_USE if _LOG.search(place.name) else NO_OUTPUT)
            zone, is_set = self.admin.zone, self.admin.zone_is_set
            for output, time in times_of(outputs, place.time, source.modified_ms, zone, is_set):
                if time.ms is None:
                    self._refuse(source, output, time.how or NO_TIME)
                else:
                    self._answers.append(_Answer(time.ms, source, place, output, time, json))
        self._answers.sort(key=lambda answer: (answer.ts_ms, answer.source.path, answer.output.line))
        for answer in self._answers:
            try:
                self.admin.learn(answer.output, answer.ts_ms)
            except DecodeError:
                continue  # `write` reports the reason

    def write(self, writer: Writer, report: ImportReport) -> None:
        """Append each record once."""
        seen: set[tuple[str, bytes]] = set()
        progress = []
        for answer in self._answers:
            source, output = answer.source, answer.output
            try:
                records = self._records_of(answer)
                lines = [(stem, line_of(record)) for stem, record in records]
                rows = [(stem, KINDS[stem].decode(line)) for stem, line in lines]
            except DecodeError as error:
                self.imported.refuse(source, error.detail)
                continue
            self.instants += [answer.ts_ms] if answer.time.is_sure else []
            self._count_source(output, answer.time)
            progress += [row for stem, row in rows if stem == "consume_stats"]
            new = [record for record, line in zip(records, lines, strict=True) if line not in seen]
            seen.update(lines)
            for stem, record in new:
                writer.append(stem, record)
            what = f"mqadmin {output.command}" if answer.json is None else answer.json.title
            report.recognised.append((source.path, what, len(new)))
            if answer.json is None and (why := self.admin.failure_beside(output)) is not None:
                self.imported.refuse(source, f"{why} (what it printed before is used)")
        report.left_out += self.admin.left_out
        report.notes += [*self._notes(), *lags_seen_once(progress)]
        report.notes += self.admin.context.times.notes(report.time_zone, report.zone_is_set)

    def _outputs_of(self, text: str) -> tuple[list[Output], JsonAnswer | MetricsPage | None]:
        if "\0" in text[:4096]:
            return [], None
        outputs = outputs_of(text, self.admin.zone, self.admin.zone_is_set)
        is_of_mqadmin = any(output.has_command_line or output.command != "topicRoute" for output in outputs)
        json = None if is_of_mqadmin else json_answer_of(text) or metrics_page_of(text)
        return (outputs, None) if json is None else ([Output(None, 1, lines=text.splitlines())], json)

    def _records_of(self, answer: _Answer) -> list[Record]:
        names = (answer.place.name, *answer.place.broker_hints)
        if isinstance(answer.json, MetricsPage):
            return disks(answer.json, answer.ts_ms, self.admin.context)
        if answer.json is not None:
            return records_of_json(answer.json, answer.ts_ms, names, self.admin.context)
        return self.admin.records_of(answer.output, answer.ts_ms, names)

    def _refuse(self, source: Source, output: Output, why: str) -> None:
        """Refuse an output without a time, if neither its command, a failure nor its emptiness says more."""
        if output.command is not None and output.command not in READERS:
            why = not_used(output.command, output.lines)
        elif (failure := self.admin.failure_beside(output)) is not None:
            why = failure
        elif output.is_empty:
            why = f"mqadmin {output.command} has no output in it"
        self.imported.refuse(source, why)

    def _count_source(self, output: Output, time: OutputTime) -> None:
        if time.how in (BY_LINE, BY_PATH) or time.ms is None:
            return
        self._dated_by[time.how] += 1
        printed = latest_in(output.lines, self.admin.zone)
        if time.how == BY_CHANGE and printed and time.ms - printed[-1] > _OLD_MS:
            self._copied += 1

    def _notes(self) -> list[str]:
        notes = [
            f"time of {_count(number)} of mqadmin: {how}; run `date -u` before each command for a sure one"
            for how, number in sorted(self._dated_by.items())
        ]
        if self._copied:
            notes.append(
                f"files with {_count(self._copied)} of mqadmin last changed more than a day after the times in them: a "
                "copy may have changed that; name the file or its folder by the time of the command"
            )
        return notes + [remark for remark, _ in sorted(self.admin.context.remarks.items())]


def outputs_in(source: Source, zone: dt.tzinfo) -> list[Output]:
    """Return the outputs of mqadmin in a file; none if it is another file. Raises like Source.read."""
    text, _ = text_of_bytes(source.read(MOST_TEXT))
    return [] if "\0" in text[:4096] else outputs_of(text, zone)


def _count(number: int) -> str:
    return "1 output" if number == 1 else f"{number:,} outputs"


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
