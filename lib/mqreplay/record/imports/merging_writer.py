"""The records of an import that are added to others: an event that two sources have is written once."""

from __future__ import annotations

from collections.abc import Mapping

from mqreplay.record.imports.captures.captured_requests import CapturedRequests
from mqreplay.record.imports.files.sources import Writer
from mqreplay.record.imports.import_report import ImportReport


class MergingWriter:
    """A writer that adds records to those of a copied recording and of captures, but no events that they have."""

    def __init__(
        self, writer: Writer, report: ImportReport, welcome: frozenset[str], captured: CapturedRequests | None = None
    ) -> None:
        """Take ``welcome``: kinds whose records name their source, or whose records are each a new observation."""
        self._writer, self._report, self._captured = writer, report, captured
        self._there = {name.partition(".")[0] for name in report.taken_over} - welcome
        self.count = 0

    def append(self, stem: str, record: Mapping[str, object]) -> None:
        """Write a record, unless the recording already has its kind, or a capture has it."""
        if stem in self._there:
            self._report.left_out[f"records of {stem}: the copied recording has its own"] += 1
        elif self._captured is not None and self._captured.take(stem, record):
            self._report.left_out[f"records of {stem} in logs of clients: the capture has them, too"] += 1
        else:
            self._writer.append(stem, record)
            self.count += 1
