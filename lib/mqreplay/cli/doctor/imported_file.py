"""Examine a file that no recording has, as `mqreplay import` reads it."""

from __future__ import annotations

import datetime as dt
import tempfile
from pathlib import Path

from mqreplay.cli.doctor.verdict import Verdict
from mqreplay.importer.files.imported_files import gather
from mqreplay.importer.import_command import write_recording
from mqreplay.importer.import_report import ImportReport
from mqreplay.importer.logs.import_logs import UNKNOWN_BROKER
from mqreplay.importer.logs.line_count import OTHER, LineCount
from mqreplay.importer.mqadmin.output_files import NO_OUTPUT
from mqreplay.words.errors import InputError
from mqreplay.words.quantity import counted

UNKNOWN = (
    "neither its name nor its content is of a file that mqreplay reads: a broker's or client's snapshot or its .bak, "
    "brokers.json, *.jsonl[.gz], a log of RocketMQ, an output of mqadmin"
)
ANY_BROKER = ("broker", 0)  # of a log that does not name its broker: what it holds does not depend on it
SHOWN = 3  # refusals
LOG_SUFFIXES = (".log", ".out")


def examine_imported_file(path: str) -> Verdict:
    """Return the verdict on a file that no recording has, but an import may use. Raises InputError for any other."""
    report = _imported(path)
    is_any_broker = any(why == UNKNOWN_BROKER for _, why in report.not_recognised)
    if is_any_broker:
        report = _imported(path, ANY_BROKER)
    refusals = list(dict.fromkeys(why for _, why in report.not_recognised))
    is_log = report.lines.read or Path(path).suffix in LOG_SUFFIXES
    if not report.recognised and not report.copies and not is_log:
        raise InputError(UNKNOWN if refusals in ([], [NO_OUTPUT]) else f"import does not use it: {refusals[0]}")
    verdict = Verdict(path, _kind(report))
    verdict.facts["known_by"] = "its content"
    for what in sorted({what for _, what, _ in report.recognised}):
        outputs = [records for _, each, records in report.recognised if each == what]
        verdict.say("kind", f"{what}, by its content: `mqreplay import` reads it")
        verdict.say("holds", f"{counted(len(outputs), 'part')} with {counted(sum(outputs), 'record')}")
    for name, copied in sorted(report.copies.items()):
        verdict.say("holds", f"copies of {name}: {', '.join(sorted(copied.files))}")
    commands = [what.removeprefix("mqadmin ") for _, what, _ in report.recognised if what.startswith("mqadmin ")]
    if commands:
        verdict.facts["outputs"] = {command: commands.count(command) for command in dict.fromkeys(commands)}
    verdict.whole = bool(report.recognised or report.copies)
    for why in refusals[:SHOWN]:
        verdict.say("refused" if verdict.whole else "error", why)
    if is_any_broker:
        verdict.say("note", f"{UNKNOWN_BROKER} to import")
    if report.lines.read:
        _say_lines(verdict, report.lines, path)
    for place in dict.fromkeys(each.rpartition("(")[2].rstrip(")") for each in report.helps if each.endswith(")")):
        verdict.say("see", place)
    return verdict


def _imported(path: str, broker: tuple[str, int] | None = None) -> ImportReport:
    report = ImportReport("RECORDING", "UTC", zone_is_set=False)
    with tempfile.TemporaryDirectory() as spool, tempfile.TemporaryDirectory() as folder:
        write_recording(gather([path], dt.UTC, Path(spool), []), Path(folder), report, dt.UTC, broker)
    return report


def _kind(report: ImportReport) -> str:
    if any(what.startswith("mqadmin ") for _, what, _ in report.recognised):
        return "mqadmin"
    return "import" if report.recognised and not report.lines.read else "log"


def _say_lines(verdict: Verdict, lines: LineCount, path: str) -> None:
    verdict.facts["lines"] = lines.as_dict()
    verdict.say(
        "holds", f"{counted(lines.read, 'line')}, {lines.used:,} used, {lines.left_out[OTHER]:,} of no decision"
    )
    for form, count in sorted(lines.left_out.items()):
        if form != OTHER and count:
            example = lines.examples.get(form, "").removeprefix(f"{path}:")
            verdict.say("left out", f"{form}: {count:,}" + (f", such as line {example}" if example else ""))
