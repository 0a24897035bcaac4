"""Files with mqadmin's outputs: read for the brokers that they name first, then for their records."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mqreplay.decode.encodings import text_of_bytes
from mqreplay.decode.kinds import KINDS
from mqreplay.errors import DecodeError
from mqreplay.record.imports.files.imported_files import MOST_TEXT, UNREADABLE, ImportedFiles, why_unreadable
from mqreplay.record.imports.files.layout import TEXT, Place
from mqreplay.record.imports.files.sources import Source, Writer
from mqreplay.record.imports.import_report import ImportReport
from mqreplay.record.imports.mqadmin.admin import Admin
from mqreplay.record.imports.mqadmin.answers import Record
from mqreplay.record.imports.mqadmin.dashboard_json import JsonAnswer, json_answer_of, records_of_json
from mqreplay.record.imports.mqadmin.output_times import BY_LINE, OutputTime, times_of
from mqreplay.record.imports.mqadmin.outputs import Output, outputs_of
from mqreplay.record.imports.staging import line_of
from mqreplay.record.imports.stores.snapshots import NO_TIME
from mqreplay.record.imports.times.name_times import BY_CHANGE, BY_PATH
from mqreplay.record.imports.times.printed_times import latest_in

NO_USE: Final = "no decision uses this log"
NO_OUTPUT: Final = "it is neither a file that import knows nor an output of mqadmin"
TOO_LARGE: Final = f"it holds more than {MOST_TEXT >> 20} MiB, so that no output of mqadmin was looked for in it"
_LOG = re.compile(r"\.(?:log|out)\b")
_OLD_MS: Final = 86_400_000  # a file that was changed this long after the times in it was probably copied


class _Answer(NamedTuple):
    """An output or an answer in JSON, its file, and its time (epoch ms)."""

    ts_ms: int
    source: Source
    place: Place
    output: Output
    time: OutputTime
    json: JsonAnswer | None = None


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
        for answer in self._answers:
            source, output = answer.source, answer.output
            try:
                records = self._records_of(answer)
                lines = [(stem, line_of(record)) for stem, record in records]
                for stem, line in lines:
                    KINDS[stem].decode(line)
            except DecodeError as error:
                self.imported.refuse(source, error.detail)
                continue
            self.instants += [answer.ts_ms] if answer.time.is_sure else []
            self._count_source(output, answer.time)
            new = [record for record, line in zip(records, lines, strict=True) if line not in seen]
            seen.update(lines)
            for stem, record in new:
                writer.append(stem, record)
            what = f"mqadmin {output.command}" if answer.json is None else f"{answer.json.what}, as JSON"
            report.recognised.append((source.path, what, len(new)))
            if answer.json is None and (why := self.admin.failure_beside(output)) is not None:
                self.imported.refuse(source, f"{why} (what it printed before is used)")
        report.left_out += self.admin.left_out
        report.notes += self._notes()
        report.notes += self.admin.context.times.notes(report.time_zone, report.zone_is_set)

    def _outputs_of(self, text: str) -> tuple[list[Output], JsonAnswer | None]:
        if "\0" in text[:4096]:
            return [], None
        outputs = outputs_of(text, self.admin.zone, self.admin.zone_is_set)
        is_of_mqadmin = any(output.has_command_line or output.command != "topicRoute" for output in outputs)
        json = None if is_of_mqadmin else json_answer_of(text)
        return (outputs, None) if json is None else ([Output(None, 1, lines=text.splitlines())], json)

    def _records_of(self, answer: _Answer) -> list[Record]:
        names = (answer.place.name, *answer.place.broker_hints)
        if answer.json is not None:
            return records_of_json(answer.json, answer.ts_ms, names)
        return self.admin.records_of(answer.output, answer.ts_ms, names)

    def _refuse(self, source: Source, output: Output, why: str) -> None:
        """Refuse an output without a time. A failure, or that nothing was printed, says more than that."""
        if (failure := self.admin.failure_beside(output)) is not None:
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
