"""`mqreplay import`: make a recording of files on disk. Without Spark, Java or a running cluster.

It finds the files, identifies the brokers, and writes. A run that fails leaves nothing.
"""

from __future__ import annotations

import datetime as dt
import os
import zoneinfo
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TextIO

from mqreplay.decode.recording.files import RECORD_TABLES, classify
from mqreplay.decode.text import text_of_bytes
from mqreplay.importer.brokers.broker_names import BrokerNames, broker_of_option
from mqreplay.importer.brokers_file import BrokersFile, described_brokers
from mqreplay.importer.captures.captured_records import Captures, refuse_damaged
from mqreplay.importer.captures.captured_requests import CapturedRequests, MergingWriter
from mqreplay.importer.files.imported_files import ImportedFiles, gather, why_unreadable
from mqreplay.importer.files.layout import CAPTURE, RECORDS, SNAPSHOT, TEXT
from mqreplay.importer.files.other_files import HEAD_BYTES, unused_text
from mqreplay.importer.files.sources import Source
from mqreplay.importer.import_report import ImportReport
from mqreplay.importer.logs.import_logs import import_logs
from mqreplay.importer.logs.line_count import why_no_log
from mqreplay.importer.logs.log_files import LogScan, scan_logs
from mqreplay.importer.logs.log_identity import brokers_in_logs
from mqreplay.importer.mqadmin.admin import Admin
from mqreplay.importer.mqadmin.output_files import NO_OUTPUT, NO_USE, TOO_LARGE, AdminOutputs
from mqreplay.importer.staging import SPOOL, RecordingWriter, final_folder, staged, staging_of
from mqreplay.importer.stores.copy_brokers import CopyBrokers, config_of
from mqreplay.importer.stores.refused_copies import refuse_renamed, take_out
from mqreplay.importer.stores.snapshots import Snapshots
from mqreplay.importer.symptoms import missing_evidence
from mqreplay.importer.times.name_times import zone_misfit, zone_of
from mqreplay.machine.local_files import check_on_disk
from mqreplay.words.errors import DecodeError, InputError
from mqreplay.words.printable import json_text

# Kinds whose records name their source, so that an event in two sources counts once.
SEVERAL_SOURCES: Final = frozenset({"assignments", "rebalance_log", "heartbeats"})
# Kinds of answers to a single request.
POLLED: Final = frozenset(
    {
        *("broker_runtime", "cluster_info", "consume_stats", "consumer_connections", "consumer_lists"),
        *("routes", "topic_stats"),
    }
)


def import_evidence(
    paths: Sequence[str],
    out_folder: str,
    out: TextIO,
    broker: str | None = None,
    time_zone: str | None = None,
    as_json: bool = False,
) -> None:
    """Make a recording in ``out_folder`` of the files at ``paths``, and print a report.

    Raises InputError if an option or a path is wrong, or no file could be used.
    """
    check_on_disk(paths, "import")
    option = None if broker is None else broker_of_option(broker)
    zone = zone_of_option(time_zone)
    final = final_folder(out_folder)
    with staged(final) as folder:
        report = ImportReport(out_folder, time_zone or "UTC", time_zone is not None)
        imported = gather(paths, zone, folder / SPOOL, [final, staging_of(final)])
        write_recording(imported, folder, report, zone, option)
        if not report.files and not report.not_recognised:
            raise InputError(f"no file in {', '.join(paths[:3])}; no recording was made")
        if report.is_empty:
            for line in [json_text(report.as_dict(), indent=1)] if as_json else report.text_lines():
                print(line, file=out)
            raise InputError(
                f"nothing in {', '.join(paths[:3])} is evidence that nightly can use; no recording was made"
                f" ({report.why_empty})"
            )
        report.notes += [
            f"{path} is a recording already: nightly reads it without an import"
            for path in paths
            if report.taken_over and _is_recording(path)
        ]
    print(json_text(report.as_dict(), indent=1) if as_json else "\n".join(report.text_lines()), file=out)


def write_recording(
    imported: ImportedFiles, folder: Path, report: ImportReport, zone: dt.tzinfo, broker: tuple[str, int] | None
) -> None:
    """Write the recording of the files into an empty folder, and fill the report. No content makes it fail.

    ``broker`` is the one of files that name none.
    """
    with closing(RecordingWriter(folder)) as writer:
        chosen = zone if report.zone_is_set else None
        ImportRun(zone, chosen, imported, writer, report, BrokerNames(broker)).run()


def zone_of_option(text: str | None) -> dt.tzinfo:
    """Return the zone of --time-zone; UTC by default. Raises InputError.

    >>> zone_of_option("+08:00"), zone_of_option(None)
    (datetime.timezone(datetime.timedelta(seconds=28800)), datetime.timezone.utc)
    """
    if text is None:
        return dt.UTC
    try:
        return zone_of(text)
    except ValueError:
        pass
    try:
        return zoneinfo.ZoneInfo(text)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(f"--time-zone {text!r} is unknown; give a zone such as Asia/Shanghai, +08:00 or UTC") from None


def _is_recording(path: str) -> bool:
    try:
        return any(classify(name)[0] in RECORD_TABLES for name in os.listdir(path))
    except OSError:  # a file
        return False


@dataclass
class ImportRun:
    """One import: the files, what is known about them, and what was written."""

    zone: dt.tzinfo
    zone_option: dt.tzinfo | None
    imported: ImportedFiles
    writer: RecordingWriter
    report: ImportReport
    names: BrokerNames
    configs: dict[str, tuple[str, int]] = field(default_factory=dict)
    captures: dict[str, Source] = field(default_factory=dict)  # by the file that is read
    captured: CapturedRequests = field(default_factory=CapturedRequests)
    instants: list[int] = field(default_factory=list)
    of_outputs: list[int] = field(default_factory=list)

    def run(self) -> None:
        """Write all files, and fill the report."""
        self.report.files = sum(map(len, self.imported.by_kind.values())) + self.imported.repeated
        brokers = BrokersFile(self.names)
        self.report.notes += take_out(self.imported)
        refuse_renamed(self.imported)
        configs = described_brokers(self.imported, brokers, self.report)
        self.configs = configs.brokers
        outputs = AdminOutputs(Admin(self.zone, self.names, self.zone_option is not None), self.imported)
        outputs.learn()
        scan = scan_logs([source for source, _ in self.imported.by_kind[TEXT]])
        self._refuse_no_logs(scan)
        brokers.add_facts(outputs.admin.facts, outputs.admin.name_servers)
        captures = self._open_captures()
        if captures is not None:
            brokers.add_captured(captures.cluster)
        of_logs = brokers_in_logs(scan.processes, self.zone)
        self.names.add_logs(of_logs.values())
        copies = CopyBrokers(self.names, configs, of_logs, self.zone)
        copies.learn(self.imported.by_kind[SNAPSHOT])
        snapshots = Snapshots(copies, self.imported, self.writer)
        self._take_over()
        if captures is not None:
            self._write_captured(captures)
        snapshots.write_all()
        outputs.write(MergingWriter(self.writer, self.report, SEVERAL_SOURCES | POLLED), self.report)
        self.of_outputs = outputs.instants
        self.instants += outputs.instants
        self.instants += [at for copied in snapshots.copied.values() for at in (*copied.assumed, *copied.known)]
        logs_help = self._read_logs(scan, brokers)
        self._write_brokers(brokers)
        logs = {f"{process.log}.log" for process in scan.processes}
        self._fill_report(snapshots, brokers, logs_help, logs)

    def _take_over(self) -> None:
        for source, place in self.imported.by_kind[RECORDS]:
            try:
                self.report.taken_over.append(self.writer.take_over(source, place.name))
            except DecodeError as error:
                self.imported.refuse(source, why_unreadable(error))

    def _open_captures(self) -> Captures | None:
        files = self.imported.by_kind[CAPTURE]
        captures = None
        for source, _ in files:
            try:
                if len(files) > 1:  # one that is damaged must not end the others
                    refuse_damaged(str(source.file))
                else:
                    captures = Captures([str(source.file)], self.writer.folder)
                self.captures[str(source.file)] = source
            except InputError as error:
                self.imported.refuse(source, str(error).replace(str(source.file), "it"))
        return captures or (Captures(list(self.captures), self.writer.folder) if self.captures else None)

    def _write_captured(self, captures: Captures) -> None:
        into = MergingWriter(self.writer, self.report, frozenset())
        for stem, fields in captures.records():
            into.append(stem, fields)
            self.captured.add(stem, fields)
        self.report.left_out += captures.left_out
        self.report.notes += [_renamed(text, self.captures) for text in (*captures.torn, *captures.notes)]
        paths = ", ".join(source.path for source in self.captures.values())
        what = "packet capture" if len(self.captures) == 1 else "packet captures, read together"
        self.report.recognised.append((paths, what, into.count))

    def _refuse_no_logs(self, scan: LogScan) -> None:
        """Correct why files are refused: a file without an output of mqadmin may be a log, or nearly one."""
        guesses = (NO_USE, NO_OUTPUT, TOO_LARGE)
        refused = {path for path, why in self.imported.refused if why in guesses}
        reasons: dict[str, str | None] = {}
        for source, count in scan.without:
            if source.path not in refused:
                continue  # an output, whose rows are no lines of a log
            head = "" if count.of_rocketmq else text_of_bytes(source.head(HEAD_BYTES))[0]
            if (kind := unused_text(head)) is not None:
                reasons[source.path] = f"it is {kind.words_of(head)}"
                continue
            reasons[source.path] = why_no_log(source.path, count)
            if count.of_rocketmq:
                count.drop_warnings()
                scan.lines.add(count)
        used = scan.read | scan.repeated
        self.imported.refused[:] = [
            (path, (reasons.get(path) or why) if why in guesses else why)
            for path, why in self.imported.refused
            if path not in used or why not in guesses
        ]

    def _read_logs(self, scan: LogScan, brokers: BrokersFile) -> list[str]:
        if not scan.processes:
            self.report.lines = scan.lines
            return []
        known = dict(self.names.addresses)
        for process in scan.processes:
            for folder in process.folders:
                hint = next(
                    part.source.hint
                    for part in process.parts
                    if part.source.folder == folder or len(process.parts) == 1
                )
                config = config_of(folder, self.configs)
                named = config[1] if config is not None else self._broker_of_folder(Path(hint).parts[:-1])
                if named is not None:
                    known[folder] = named
        span = (min(self.instants), max(self.instants)) if self.instants else None
        into = MergingWriter(self.writer, self.report, SEVERAL_SOURCES, self.captured)
        found = import_logs(scan, into, self.zone_option, known, span)
        self.report.recognised += found.recognised
        self.report.not_recognised += found.not_recognised
        self.report.left_out += found.left_out
        self.report.examples |= found.examples
        self.report.lines = found.lines
        self.report.repeated_logs = found.repeated
        self.report.notes += found.notes
        brokers.add_found(found.found_brokers)
        return found.helps

    def _broker_of_folder(self, parts: Sequence[str]) -> tuple[str, int] | None:
        named = self.names.find(reversed(parts))
        return None if named is None else (named.broker_name, named.broker_id)

    def _write_brokers(self, brokers: BrokersFile) -> None:
        try:
            data = brokers.as_bytes()
        except DecodeError as error:
            self.report.notes.append(f"brokers.json is not written: {error.detail}")
            return
        if self.captures and not brokers.cluster:
            self.report.notes.append("the files name no cluster; give nightly --cluster NAME")
        if data is not None:
            self.writer.write("brokers.json", data)
            self.report.brokers = sorted(brokers.brokers)
        if len(brokers.cluster) > 1:
            self.report.notes.append(
                f"the files are of {len(brokers.cluster)} clusters ({', '.join(brokers.cluster)}); import each "
                "into its own recording, or give nightly --cluster"
            )

    def _fill_report(
        self, snapshots: Snapshots, brokers: BrokersFile, logs_help: Sequence[str], logs: Collection[str]
    ) -> None:
        report = self.report
        report.copies = dict(snapshots.copied)
        report.records = self.writer.written
        report.not_recognised += self.imported.refused
        report.repeated = self.imported.repeated + report.repeated_logs
        report.notes += snapshots.check.notes()
        copies = report.copies.values()
        assumed = [at for copied in copies for at in copied.assumed]
        known = [*self.of_outputs, *(at for copied in copies for at in copied.known)]
        if (misfit := zone_misfit(assumed, known, report.time_zone)) is not None:
            report.notes.append(misfit)
        if snapshots.unconfirmed:
            names = ", ".join(sorted(snapshots.unconfirmed)[:5])
            report.notes.append(
                f"{names}: named only by the folder; add the output of mqadmin clusterList to confirm it"
            )
        has_memory = "physical_memory_bytes" in brokers.top or any(
            "physical_memory_bytes" in broker for broker in brokers.brokers.values()
        )
        commands = {what.removeprefix("mqadmin ") for _, what, _ in report.recognised}
        copied = {file.removesuffix(".bak") for one in copies for file in one.files}
        stems = {name.partition(".")[0] for name in [*report.records, *report.taken_over]}
        report.helps = missing_evidence(
            {name: one.offsets for name, one in report.copies.items() if one.offsets},
            {*stems, *copied, *commands, *logs, *(["physical_memory_bytes"] if has_memory else [])},
            self.names.keys,
            report.brokers,
            logs_help,
            report.out,
        )


def _renamed(text: str, captures: dict[str, Source]) -> str:
    for file, source in captures.items():
        text = text.replace(file, source.path)
    return text
