"""The command line. Results go to stdout, progress to stderr.

Exit status: 0 done; 1 done, and an expectation failed, a finding reaches --fail-on, or a file that doctor examined is
broken; 2 bad usage, settings or input; 3 the warehouse is locked by another run; 4 the run failed; 130 and 143 stopped.
"""

from __future__ import annotations

import argparse
import logging
import os
import select
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from mqreplay import __version__
from mqreplay.cli import record_arguments, register_command
from mqreplay.crash import crash_line
from mqreplay.errors import InputErrors, MqreplayError, WarehouseLocked
from mqreplay.printable import json_text, printable
from mqreplay.stop_signals import handle_stops, leave_at_once, stopped_by

if TYPE_CHECKING:
    from mqreplay.settings import Settings

DONE, FAILED, BAD_INPUT, LOCKED, CRASHED = 0, 1, 2, 3, 4
EXIT_STATUS = """\
exit status:
  0    done
  1    done, and an expectation failed, a finding reaches --fail-on, or a file that doctor examined is broken
  2    bad usage, settings or input
  3    the warehouse is locked by another run
  4    the run failed (full disk, Java ended, a defect in mqreplay): nothing is lost, run it again;
       the line names the log file
  130  stopped by Ctrl-C; 143 by SIGTERM: the next run continues
"""
FORMATS = (
    "how rows are printed (%(default)s). Control and invisible characters are shown as escapes such as \\x1b; in csv, "
    "text that a spreadsheet would run as a formula (it begins with = + - or @) gets an apostrophe before it; "
    "json gives every value exactly"
)
STEPS = {
    "nightly": "all of a night: ingest, replay, validate, report",
    "ingest": "recordings into the silver tables; what was read before is not read again",
    "replay": "silver into gold: every decision judged, and the findings",
    "validate": "run the contracts' expectations on the tables",
    "report": "one HTML page for each cluster",
    "maintain": "compact the tables, and remove files that no version needs",
}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line each, whatever was given."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the error, and exit."""
        self.print_usage(sys.stderr)
        self.exit(BAD_INPUT, f"{self.prog}: error: {printable(message)}\n")


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    top = Parser(
        prog="mqreplay",
        description="Replays what an Apache RocketMQ cluster decided, from what it left behind.",
        epilog=EXIT_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"mqreplay {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in STEPS.items():
        command = commands.add_parser(name, help=text, description=text)
        if name in ("nightly", "ingest"):
            command.add_argument("recordings", nargs="+", metavar="RECORDING", help="folder of a recording")
        _common(command)
    demo = commands.add_parser("demo", help="the nightly run on the sample recording")
    demo.add_argument("--warehouse", metavar="DIR", default="warehouse/demo", help="folder of the tables (%(default)s)")
    _options(demo)
    sql = commands.add_parser("sql", help="a query over the tables; RocketMQ's decisions are functions in it")
    sql.add_argument("query", metavar="SELECT", help="the query")
    sql.add_argument("--warehouse", required=True, metavar="DIR", help="folder of the tables")
    sql.add_argument("--format", choices=("table", "csv", "json"), default="table", help=FORMATS)
    sql.add_argument("--conf", metavar="FILE", help="settings over the shipped ones")
    explain = commands.add_parser("explain", help="a finding's story: the rule, the evidence in time order, its cause")
    explain.add_argument("finding", metavar="FINDING", help="its finding_id, or enough of its beginning")
    explain.add_argument("--warehouse", required=True, metavar="DIR", help="folder of the tables")
    explain.add_argument("--cluster", metavar="NAME", help="the cluster, where several have it")
    explain.add_argument("--conf", metavar="FILE", help="settings over the shipped ones")
    explain.add_argument("--limit", type=int, metavar="N", help="rows of evidence at most (50)")
    explain.add_argument("--json", action="store_true", help="print the story as JSON")
    register_command.add(
        commands.add_parser(
            "register",
            help="print SQL that registers the tables in a metastore",
            epilog=register_command.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
    )
    record_arguments.add(commands.add_parser("record", help="a running cluster, as a recording"))
    imports = commands.add_parser("import", help="what lies on disk (copies, mqadmin outputs, logs), as a recording")
    imports.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder, or a tar or zip archive")
    imports.add_argument("--out", required=True, metavar="DIR", help="folder of the recording; new or empty")
    imports.add_argument("--broker", metavar="NAME-ID", help="the broker of files whose path names none: broker-a-0")
    imports.add_argument("--time-zone", metavar="ZONE", help="the zone of times that name none: +08:00 (UTC)")
    imports.add_argument("--json", action="store_true", help="print what came of them as JSON")
    unpack = commands.add_parser("unpack", help="the records in packet captures, as JSONL files of a recording")
    unpack.add_argument("captures", nargs="+", metavar="CAPTURE", help="a .pcap or .pcapng, gzipped or not")
    unpack.add_argument("--out", required=True, metavar="DIR", help="folder of the recording that they go into")
    unpack.add_argument("--json", action="store_true", help="print what came of them as JSON")
    doctor = commands.add_parser("doctor", help="what is wrong with this machine, or with files, and how to mend it")
    doctor.add_argument("files", nargs="*", metavar="FILE", help="files of a recording; none: this machine")
    doctor.add_argument("--json", action="store_true", help="print what is found as JSON")
    doctor.add_argument("--conf", metavar="FILE", help="settings over the shipped ones")
    return top


def _common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--warehouse", required=True, metavar="DIR", help="folder of the tables")
    _options(command)


def _options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--cluster", metavar="NAME", help="the cluster, where the recording does not name it")
    command.add_argument("--conf", metavar="FILE", help="settings over the shipped ones")
    command.add_argument("--json", action="store_true", help="print the outcome as JSON")
    command.add_argument(
        "--engine",
        choices=("spark", "local"),
        default="spark",
        help="what runs the tasks (%(default)s); local needs no Java",
    )
    command.add_argument("--fail-on", choices=("info", "warning", "critical"), help="exit 1 if a finding reaches it")


def main(argv: Sequence[str] | None = None, *, own_process: bool | None = None) -> int:
    """Runs one command; gives its exit status.

    ``own_process``: the process, its signals and its right to write are ours alone; by default, if ``argv`` is None.
    """
    own = argv is None if own_process is None else own_process
    arguments = list(sys.argv[1:] if argv is None else argv)
    if own:
        handle_stops()
        logging.getLogger().addHandler(logging.NullHandler())  # py4j would print a traceback, beside raising it
    args = argparse.Namespace()
    try:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")  # no name is beyond the terminal's character set
        parser().parse_args(arguments, args)
        args.own_process = own
        status = _command(args)
        sys.stdout.flush()
        return status
    except (Exception, KeyboardInterrupt) as error:
        return _ended_by(error, arguments, getattr(args, "warehouse", None))
    finally:
        if own:
            leave_at_once()


def _ended_by(error: BaseException, arguments: list[str], warehouse: str | None) -> int:
    """Say in one line why the run ended early; give the exit status."""
    stop = stopped_by() or (signal.SIGINT if isinstance(error, KeyboardInterrupt) else None)
    if stop is not None:  # whatever failed since then failed because of it
        word = "terminated" if stop == signal.SIGTERM else "interrupted"
        return _say([f"{word}; the next run continues where this one ended"], 128 + stop)
    if isinstance(error, MqreplayError):
        status = LOCKED if isinstance(error, WarehouseLocked) else BAD_INPUT
        return _say(error.messages if isinstance(error, InputErrors) else [str(error)], status)
    if isinstance(error, BrokenPipeError) and _reader_is_gone():
        _discard_output()
        return DONE
    if isinstance(error, OSError) and not _writes_output():
        _discard_output()
    return _say([crash_line(error, arguments, warehouse)], CRASHED)


def _reader_is_gone() -> bool:
    """Whether nobody reads stdout any more: other pipes, such as the one to Java, break for other reasons."""
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), 0)
        return any(event & select.POLLERR for _, event in poll.poll(0))
    except (OSError, ValueError):
        return False


def _writes_output() -> bool:
    try:
        sys.stdout.flush()
    except OSError:
        return False
    return True


def _discard_output() -> None:
    """What is left in the buffer goes nowhere: at exit Python would try again, and complain."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        return


def _say(messages: Sequence[str], status: int) -> int:
    for begin, message in zip(["mqreplay: ", *[" " * 10] * len(messages)], messages, strict=False):
        try:
            print(f"{begin}{printable(message)}", file=sys.stderr, flush=True)
        except OSError:
            break  # nobody reads it
    return status


def _command(args: argparse.Namespace) -> int:
    # What needs Spark is imported late, so that --help and a wrong option answer at once.
    if args.command == "import":
        from mqreplay.record.imports.import_command import import_evidence

        import_evidence(args.paths, args.out, sys.stdout, args.broker, args.time_zone, args.json)
        return DONE
    if args.command == "unpack":
        from mqreplay.record.unpack import unpack

        unpack(args.captures, args.out, sys.stdout, args.json)
        return DONE
    if args.command == "record":
        record_arguments.run(args)
        return DONE
    if args.command == "register":
        register_command.print_registration(args.warehouse, args.catalog, args.prefix, sys.stdout)
        return DONE
    from mqreplay.settings import load_settings

    settings = load_settings(args.conf or _demo_conf(args.command))
    if args.command == "doctor":
        return _doctor(args, settings)
    if args.command == "sql":
        from mqreplay.cli.query import keep_from_writing
        from mqreplay.cli.terminal import print_query

        if args.own_process:
            keep_from_writing(settings)
        print_query(args.warehouse, args.query, settings, args.format)
        return DONE
    if args.command == "explain":
        from mqreplay.cli.explain import print_story

        print_story(args.warehouse, args.finding, args.cluster, as_json=args.json, limit=args.limit)
        return DONE
    return run_step(args, settings)


def _demo_conf(command: str) -> str | None:
    from mqreplay.places import conf_dir

    return str(conf_dir() / "sample.toml") if command == "demo" else None


def _doctor(args: argparse.Namespace, settings: Settings) -> int:
    if args.files:
        from mqreplay.cli.doctor.files import examine_files

        return DONE if examine_files(args.files, sys.stdout, args.json) else FAILED
    from mqreplay.cli.doctor.machine import examine_machine

    return DONE if examine_machine(settings, sys.stdout, args.json) else BAD_INPUT


def run_step(args: argparse.Namespace, settings: Settings) -> int:
    """Runs a step, or all; prints the outcome."""
    from mqreplay.cli.terminal import Progress, print_outcome, require_warehouse
    from mqreplay.night.nightly import run
    from mqreplay.places import sample_dir

    if args.command in ("replay", "validate", "report", "maintain"):
        require_warehouse(args.warehouse)
    step = "nightly" if args.command == "demo" else args.command
    recordings = [str(sample_dir() / "orders-4.9.7")] if args.command == "demo" else getattr(args, "recordings", [])
    with Progress(sys.stderr) as progress:
        outcomes = run(
            step,
            args.warehouse,
            settings,
            progress,
            recordings=recordings,
            cluster=args.cluster,
            engine=args.engine,
        )
    if args.json:
        print(json_text({"clusters": [o.as_dict() for o in outcomes]}, indent=1))
    else:
        print_outcome(outcomes, step, args.warehouse)
    failed = any(o.failed_expectations for o in outcomes) and step in ("nightly", "validate")
    return FAILED if failed or any(o.reaches(args.fail_on) for o in outcomes) else DONE


if __name__ == "__main__":
    sys.exit(main())
