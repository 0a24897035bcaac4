"""What an import says of the logs that it read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from mqreplay.importer.logs.line_count import LineCount

UNANSWERED_BEATS: Final = (
    "heartbeats without an answer, which alone do not show whether the broker or the network failed (give broker.log "
    "of the broker)"
)


@dataclass
class LogReport:
    """Recognised and refused files by path, counts of skipped lines, and notes for the user."""

    recognised: list[tuple[str, str, int]] = field(default_factory=list)  # path, what, records
    left_out: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)  # of what was left out
    not_recognised: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    helps: list[str] = field(default_factory=list)
    found_brokers: dict[str, dict[str, str]] = field(default_factory=dict)  # "<name>-<id>": addr
    lines: LineCount = field(default_factory=LineCount)
    repeated: int = 0  # files with the content of another one

    def leave_out(self, form: str, example: str) -> None:
        """Count something that is not used."""
        self.left_out[form] += 1
        self.examples.setdefault(form, example)
