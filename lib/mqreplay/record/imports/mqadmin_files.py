"""Files with mqadmin's outputs: read for the brokers that they name first, then for their records."""

from __future__ import annotations

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mqreplay.decode.encodings import text_of_bytes
from mqreplay.decode.kinds import KINDS
from mqreplay.errors import DecodeError
from mqreplay.record.imports.evidence import MOST_TEXT, UNREADABLE, Evidence, why_unreadable
from mqreplay.record.imports.import_report import ImportReport
from mqreplay.record.imports.layout import TEXT, Place
from mqreplay.record.imports.mqadmin import Admin
from mqreplay.record.imports.mqadmin_text import Output, outputs_of
from mqreplay.record.imports.name_times import BY_CHANGE, HOUR_MS, Dated, dated
from mqreplay.record.imports.snapshots import NO_TIME
from mqreplay.record.imports.sources import Source, Writer
from mqreplay.record.imports.staging import line_of

NO_DATE: Final = (
    "the same command is in it several times without a date between; run `date` before each command, or use "
    "one file each"
)
NO_USE: Final = "no decision uses this log"
NO_OUTPUT: Final = "it is neither a file that import knows nor an output of mqadmin"
_LOG = re.compile(r"\.(?:log|out)\b")
_AHEAD_MS: Final = HOUR_MS // 4  # printed times later than the output by more than this are in another zone


class _Answer(NamedTuple):
    """An output, its file, and its time (epoch ms)."""

    ts_ms: int
    source: Source
    place: Place
    output: Output
    is_sure: bool  # its time has a zone, and is not only the file's last change


@dataclass
class AdminOutputs:
    """A reader of files that their name does not identify: call `learn` for the brokers first, then `write`.

    ``instants`` are the certain ones: a copied file may have another last change.
    """

    admin: Admin
    evidence: Evidence
    instants: list[int] = field(default_factory=list)
    _answers: list[_Answer] = field(default_factory=list)

    def learn(self) -> None:
        """Read all outputs in order of time."""
        for source, place in self.evidence.by_kind[TEXT]:
            try:
                text = source.read(MOST_TEXT)
            except UNREADABLE as error:
                self.evidence.refuse(source, why_unreadable(error))
                continue
            outputs = [] if b"\0" in text[:4096] else outputs_of(text.decode("utf-8", "replace"), self.admin.zone)
            when = dated(place.time, source.modified_ms)
            if not outputs:
                self.evidence.refuse(source, NO_USE if _LOG.search(place.name) else NO_OUTPUT)
            for output, ts_ms in timed(outputs, when):
                if ts_ms is None:
                    self.evidence.refuse(source, NO_TIME if when is None else NO_DATE)
                else:
                    of_path = when is not None and when.how != BY_CHANGE and not when.zone_assumed
                    is_sure = output.ts_ms is not None or of_path
                    self._answers.append(_Answer(ts_ms, source, place, output, is_sure))
        self._answers.sort(key=lambda answer: (answer.ts_ms, answer.source.path, answer.output.line))
        for answer in self._answers:
            try:
                self.admin.learn(answer.output, answer.ts_ms)
            except DecodeError:
                continue  # `write` reports the reason

    def write(self, writer: Writer, report: ImportReport) -> None:
        """Append each record once."""
        seen: set[tuple[str, bytes]] = set()
        for ts_ms, source, place, output, is_sure in self._answers:
            try:
                records = self.admin.records_of(output, ts_ms, (place.name, *place.broker_hints))
                lines = [(stem, line_of(record)) for stem, record in records]
                for stem, line in lines:
                    KINDS[stem].decode(line)
            except DecodeError as error:
                self.evidence.refuse(source, error.detail)
                continue
            self.instants += [ts_ms] if is_sure else []
            new = [record for record, line in zip(records, lines, strict=True) if line not in seen]
            seen.update(lines)
            for stem, record in new:
                writer.append(stem, record)
            report.recognised.append((source.path, f"mqadmin {output.command}", len(new)))
        report.left_out += self.admin.left_out
        if self.admin.latest_ahead_ms > _AHEAD_MS:
            hours = round(self.admin.latest_ahead_ms / HOUR_MS * 2) / 2
            report.notes.append(
                f"times that mqadmin printed are up to {hours:g} hours later than its outputs, so they are left out: "
                f"its host is probably {hours:g} hours ahead of {report.time_zone}; give --time-zone"
            )


def outputs_in(source: Source, zone: dt.tzinfo) -> list[Output]:
    """Return the outputs of mqadmin in a file; none if it is another file. Raises like Source.read."""
    return outputs_of(text_of_bytes(source.read(MOST_TEXT))[0], zone)


def timed(outputs: Sequence[Output], when: Dated | None) -> Iterator[tuple[Output, int | None]]:
    """Yield each output with its own instant, else the file's, which only one of several equal outputs can have."""
    alike: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for at, output in enumerate(outputs):
        if output.ts_ms is None:
            alike[output.identity].append(at)
    for at, output in enumerate(outputs):
        if output.ts_ms is not None:
            yield output, output.ts_ms
            continue
        # A name gives the time when a file was begun, its last change the time when it was ended.
        same = alike[output.identity]
        is_of_file = when is not None and at == (same[-1] if when.how == BY_CHANGE else same[0])
        yield output, when.ms if when is not None and is_of_file else None
