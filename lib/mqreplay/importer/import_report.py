"""The report of an import: recognised files, refused files with reasons, and the evidence that would help most."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from mqreplay.importer.logs.line_count import OTHER, LineCount
from mqreplay.importer.stores.snapshots import Copied
from mqreplay.words.printable import printable
from mqreplay.words.quantity import counted

SHOWN_PATHS: Final = 3  # paths of one reason; --json has all
CONFIGURATION: Final = "configuration of a broker"


@dataclass
class ImportReport:
    """The result of an import. Times are epoch ms."""

    out: str
    time_zone: str
    zone_is_set: bool
    files: int = 0
    repeated: int = 0
    repeated_logs: int = 0
    lines: LineCount = field(default_factory=LineCount)  # of logs
    copies: dict[str, Copied] = field(default_factory=dict)  # by <broker>-<id> or client-<id>
    taken_over: list[str] = field(default_factory=list)
    recognised: list[tuple[str, str, int]] = field(default_factory=list)  # path, what, records
    not_recognised: list[tuple[str, str]] = field(default_factory=list)  # path, why
    left_out: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)  # of what was left out
    notes: list[str] = field(default_factory=list)
    helps: list[str] = field(default_factory=list)
    records: Counter[str] = field(default_factory=Counter)  # by the written file's name
    brokers: list[str] = field(default_factory=list)  # of brokers.json

    @property
    def is_empty(self) -> bool:
        """Return whether nothing was recognised that nightly reads."""
        return not (self.copies or self.taken_over or self.records)

    @property
    def why_empty(self) -> str:
        """Return what became of the files, if nothing was recognised that nightly reads."""
        unused = {**self.left_out, **self.lines.left_out}
        unread = unused.pop(OTHER, 0)
        causes = [f"{form}: {count:,}" for form, count in sorted(unused.items()) if count]
        causes += [f"lines without a message that import uses: {unread:,}"] if unread else []
        causes += [f"{counted(len(self.not_recognised), 'refusal')}, see above"] if self.not_recognised else []
        settings = sum(what == CONFIGURATION for _, what, _ in self.recognised)
        causes += [f"{counted(settings, 'configuration')}: settings alone show no event"] if settings else []
        return "; ".join(causes)

    def as_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        return {
            "out": self.out,
            "time_zone": self.time_zone,
            "files": self.files,
            "repeated": self.repeated,
            "copies": {
                name: {
                    "files": dict(copied.files),
                    "from": _iso(copied.first_ms),
                    "to": _iso(copied.last_ms),
                    "dated_by": dict(copied.dated_by),
                    "named_by": dict(copied.named_by),
                }
                for name, copied in sorted(self.copies.items())
            },
            "taken_over": self.taken_over,
            "recognised": [{"path": path, "what": what, "records": count} for path, what, count in self.recognised],
            "not_recognised": [{"path": path, "why": why} for path, why in self.not_recognised],
            "left_out": dict(self.left_out),
            "examples": self.examples,
            "lines": self.lines.as_dict(),
            "records": dict(sorted(self.records.items())),
            "brokers": self.brokers,
            "notes": self.notes,
            "would_help": self.helps,
        }

    def text_lines(self) -> list[str]:
        """Return the lines for the terminal."""
        zone = "" if self.zone_is_set else " (no --time-zone was given)"
        text = [f"{_count(self.files, 'file')} read; times without a zone are read as {self.time_zone}{zone}"]
        if self.copies:
            text.append("copies of brokers' and clients' files")
            for name, copied in sorted(self.copies.items()):
                what = ", ".join(f"{count:,} {file}" for file, count in sorted(copied.files.items()))
                text.append(f"  {name}: {what}; {_iso(copied.first_ms)} to {_iso(copied.last_ms)}")
            copies = self.copies.values()
            text += [f"  time from {how}: {_count(n, 'file')}" for how, n in _summed(c.dated_by for c in copies)]
            text += [f"  broker from {how}: {_count(n, 'file')}" for how, n in _summed(c.named_by for c in copies)]
        if self.taken_over:
            text.append(f"files of recordings, copied unchanged: {', '.join(self.taken_over)}")
        for what, paths in _grouped((path, what) for path, what, _ in self.recognised):
            records = sum(count for _, w, count in self.recognised if w == what)
            counted = f", {_count(records, 'record')}" if records else ""
            files = len(set(paths))
            outputs = f"{_count(len(paths), 'output')} in " if len(paths) > files else ""
            text.append(f"{what}: {outputs}{_count(files, 'file')}{counted}")
        text += ["records written"] if self.records else []
        text += [f"{count:>10,}  {name}" for name, count in sorted(self.records.items())]
        if self.repeated:
            text.append(f"duplicates of other files: {_count(self.repeated, 'file')}, taken once")
        if self.not_recognised:
            text.append("not recognised")
            for why, paths in _grouped(self.not_recognised):
                more = f" and {len(paths) - SHOWN_PATHS:,} more" if len(paths) > SHOWN_PATHS else ""
                text += [f"  {why}", f"    {', '.join(paths[:SHOWN_PATHS])}{more}"]
        text += self._left_out_lines()
        text += [f"note: {note}" for note in self.notes]
        if self.helps:
            text.append("what would help most")
            shown = self.helps[:SHOWN_PATHS] if self.is_empty else self.helps
            text += [f"  {number}. {text}" for number, text in enumerate(shown, 1)]
        if not self.is_empty:
            text.append(f"The recording is {self.out}. Next: mqreplay nightly {self.out} --warehouse DIR")
        return [printable(line) for line in text]

    def _left_out_lines(self) -> list[str]:
        found = []
        for what, count in sorted(self.left_out.items()):
            found.append(f"  {what}: {count:,}" + (f", such as {self.examples[what]}" if what in self.examples else ""))
        for form, count in sorted(self.lines.left_out.items()):
            if form != OTHER and count:
                example = f", such as {self.lines.examples[form]}" if form in self.lines.examples else ""
                found.append(f"  {form}: {count:,}{example}")
        text = ["left out", *found] if found else []
        if self.lines.read:
            other = self.lines.left_out[OTHER]
            text.append(
                f"lines of logs: {self.lines.read:,} read, {self.lines.used:,} used, {other:,} that no decision uses"
            )
        return text


def _grouped(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for path, what in pairs:
        groups[what].append(path)
    return sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))


def _summed(counters: Iterable[Counter[str]]) -> list[tuple[str, int]]:
    total: Counter[str] = Counter()
    for counter in counters:
        total += counter
    return total.most_common()


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _iso(ms: int) -> str:
    return dt.datetime.fromtimestamp(ms // 1000, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
