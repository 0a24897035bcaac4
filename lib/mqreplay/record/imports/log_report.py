"""The results of logs for the report of an import."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from mqreplay.record.imports.log_text import LineCount


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
