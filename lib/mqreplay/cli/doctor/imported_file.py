"""Examine a file that `mqreplay import` reads: lines of RocketMQ's logs, and outputs of mqadmin."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path

from mqreplay.cli.doctor.verdict import Verdict
from mqreplay.errors import DecodeError, InputError
from mqreplay.quantity import counted
from mqreplay.record.imports.files.sources import Source, source_of
from mqreplay.record.imports.logs.log_files import scan_logs
from mqreplay.record.imports.logs.log_text import OTHER, LineCount, why_no_log
from mqreplay.record.imports.mqadmin.output_files import outputs_in

UNKNOWN = (
    "neither its name nor its content is of a file that mqreplay reads: a broker's or client's snapshot or its .bak, "
    "brokers.json, *.jsonl[.gz], a log of RocketMQ, an output of mqadmin"
)


def examine_imported_file(path: str) -> Verdict:
    """Return the verdict on a file that no recording has, but an import may use. Raises InputError for any other."""
    source = source_of(path, Path(path), Path(path).name)
    commands = _commands(source)
    scan = scan_logs([source])
    verdict = Verdict(path, "mqadmin" if commands else "log")
    if commands:
        verdict.say("kind", "mqadmin, by its content: output that `mqreplay import` reads")
        verdict.say("holds", ", ".join(f"{counted(n, 'output')} of {name}" for name, n in sorted(commands.items())))
        verdict.facts |= {"known_by": "its content", "outputs": dict(commands)}
        if not scan.read:
            return verdict
    if scan.read:
        logs = ", ".join(sorted({process.log for process in scan.processes}))
        verdict.say("kind", f"log, by its content: lines of {logs}.log that `mqreplay import` reads")
        _say_lines(verdict, scan.lines, path)
        return verdict
    why = why_no_log(path, scan.without[0][1])
    if why is None:
        raise InputError(UNKNOWN)
    verdict.whole = False
    verdict.say("kind", "log, by its name or content")
    verdict.say("error", why)
    _say_lines(verdict, scan.without[0][1], path)
    return verdict


def _commands(source: Source) -> Counter[str]:
    try:
        return Counter(output.command or "" for output in outputs_in(source, dt.UTC))
    except DecodeError:
        return Counter()


def _say_lines(verdict: Verdict, lines: LineCount, path: str) -> None:
    verdict.facts |= {"known_by": "its content", "lines": lines.as_dict()}
    verdict.say(
        "holds", f"{counted(lines.read, 'line')}, {lines.used:,} used, {lines.left_out[OTHER]:,} of no decision"
    )
    for form, count in sorted(lines.left_out.items()):
        if form != OTHER and count:
            example = lines.examples.get(form, "").removeprefix(f"{path}:")
            verdict.say("left out", f"{form}: {count:,}" + (f", such as line {example}" if example else ""))
