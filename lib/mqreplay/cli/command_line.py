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
from typing import TYPE_CHECKING, Any, NoReturn

from mqreplay import __version__
from mqreplay.cli import (
    advise_command,
    at_command,
    bundle_command,
    compare_command,
    completion,
    findings_command,
    maintain_command,
    mcp_command,
    mute_command,
    ready_command,
    record_arguments,
    register_command,
    sql_command,
    step_commands,
    tables_command,
    whatif_command,
)
from mqreplay.cli.arguments import add_conf, add_lang, add_warehouse, with_examples
from mqreplay.cli.exit_status import BAD_INPUT, CRASHED, DONE, FAILED, LOCKED
from mqreplay.cli.stores import use_stores
from mqreplay.crash import crash_line
from mqreplay.errors import InputErrors, MqreplayError, OwnDiskError, StoreUnavailable, WarehouseLocked
from mqreplay.language.language import language
from mqreplay.printable import printable, without_secrets
from mqreplay.stop_signals import end_process, handle_stops, leave_at_once, stopped_by

if TYPE_CHECKING:
    from mqreplay.settings import Settings

EXIT_STATUS = """\
exit status:
  0    done
  1    done, and an expectation failed, a finding reaches --fail-on, or a file that doctor examined is broken
  2    bad usage, settings or input; the other recordings and clusters of the run are done
  3    the warehouse is locked by another run
  4    the run failed (full disk, Java ended, a store that does not answer, a defect in mqreplay): nothing is lost,
       run it again; the line names the log file
  130  stopped by Ctrl-C; 143 by SIGTERM: the next run continues
"""


EXPLAIN_EXAMPLES = (
    "mqreplay explain 701391d9 --warehouse warehouse/night",
    "mqreplay explain 701391d9 --warehouse warehouse/night --json",
)
RECORD_EXAMPLES = (
    'mqreplay record "10.0.0.1:9876;10.0.0.2:9876" --out recordings/night --for 8h',
    "mqreplay record --store /home/rocketmq/store --out recordings/store",
)
IMPORT_EXAMPLES = ("mqreplay import /tmp/store-copy /tmp/logs.tar.gz --out recordings/imported --broker broker-a-0",)
UNPACK_EXAMPLES = ("mqreplay unpack night.pcap.gz --out recordings/night",)
DOCTOR_EXAMPLES = ("mqreplay doctor", "mqreplay doctor recordings/night/pull_log.jsonl.gz")
PRINTING = {
    "at": at_command.run,
    "compare": compare_command.run,
    "findings": findings_command.run,
    "tables": tables_command.run,
    "mute": mute_command.run,
    "acknowledge": mute_command.run,
    "bundle": bundle_command.run,
}


class Parser(argparse.ArgumentParser):
    """A parser that reports each error in one line, also of arguments with line breaks."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the error, and exit."""
        self.print_usage(sys.stderr)
        self.exit(BAD_INPUT, f"{self.prog}: error: {printable(without_secrets(message))}\n")


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = Parser(
        prog="mqreplay",
        description="Replay the decisions of an Apache RocketMQ cluster, and report what went wrong.",
        epilog=EXIT_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"mqreplay {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    step_commands.add(commands)
    maintain_command.add(commands)
    text = "run a query on the tables; RocketMQ's decisions are functions"
    sql_command.add(commands.add_parser("sql", help=text, description=sql_command.DESCRIPTION, **sql_command.EXAMPLES))
    text = "list findings by kind, severity, group, topic, broker and time"
    findings_command.add(
        commands.add_parser(
            "findings", help=text, description=findings_command.DESCRIPTION, **findings_command.EXAMPLES
        )
    )
    text = "explain a finding: rule, evidence in time order, cause, effects"
    explain = commands.add_parser("explain", help=text, description=text, **with_examples(*EXPLAIN_EXAMPLES))
    explain.add_argument("finding", metavar="FINDING", help="its finding_id, or enough of its beginning")
    add_warehouse(explain)
    explain.add_argument("--cluster", metavar="NAME", help="the cluster, where several have it")
    add_conf(explain)
    add_lang(explain)
    explain.add_argument("--limit", type=int, metavar="N", help="rows of evidence at most (50)")
    explain.add_argument("--json", action="store_true", help="print the explanation as JSON")
    for of_moment in (at_command, compare_command, ready_command, whatif_command, advise_command):
        of_moment.add(commands)
    mute_command.add(commands)
    mcp_command.add(commands)
    text = "list the tables, or the columns of one table, with comments"
    tables_command.add(
        commands.add_parser("tables", help=text, description=tables_command.DESCRIPTION, **tables_command.EXAMPLES)
    )
    text = "print SQL that registers the tables in a metastore"
    register_command.add(commands.add_parser("register", help=text, description=text, **register_command.EXAMPLES))
    _add_recording(commands)
    text = "check this machine, or files of a recording, and print what to do"
    doctor = commands.add_parser("doctor", help=text, description=text, **with_examples(*DOCTOR_EXAMPLES))
    doctor.add_argument("files", nargs="*", metavar="FILE", help="files of a recording; none: this machine")
    doctor.add_argument("--json", action="store_true", help="print the result as JSON")
    add_conf(doctor)
    text = "print a script that completes commands and options in bash, zsh or fish"
    completion.add(
        commands.add_parser("completion", help=text, description=completion.DESCRIPTION, **completion.EXAMPLES)
    )
    return top


def _add_recording(commands: Any) -> None:
    """Add the commands that make recordings."""
    text = "record a running cluster"
    record_arguments.add(commands.add_parser("record", help=text, **with_examples(*RECORD_EXAMPLES)))
    text = "make a recording of files on disk: copies, mqadmin output, logs, packet captures"
    imports = commands.add_parser("import", help=text, description=text, **with_examples(*IMPORT_EXAMPLES))
    imports.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder, or a tar or zip archive")
    imports.add_argument("--out", required=True, metavar="DIR", help="folder of the recording; new or empty")
    imports.add_argument("--broker", metavar="NAME-ID", help="the broker of files whose path names none: broker-a-0")
    imports.add_argument("--time-zone", metavar="ZONE", help="the zone of times that name none: +08:00 (UTC)")
    imports.add_argument("--json", action="store_true", help="print what came of them as JSON")
    text = "make the JSONL files of a recording from packet captures"
    unpack = commands.add_parser("unpack", help=text, description=text, **with_examples(*UNPACK_EXAMPLES))
    unpack.add_argument("captures", nargs="+", metavar="CAPTURE", help="a .pcap or .pcapng, gzipped or not")
    unpack.add_argument("--out", required=True, metavar="DIR", help="folder of the recording that they go into")
    unpack.add_argument("--json", action="store_true", help="print what came of them as JSON")
    bundle_command.add(commands)


def main(argv: Sequence[str] | None = None, *, own_process: bool | None = None) -> int:
    """Run one command; return its exit status.

    ``own_process``: the process, its signals and its right to write are ours alone; by default, if ``argv`` is None.
    """
    own = argv is None if own_process is None else own_process
    arguments = list(sys.argv[1:] if argv is None else argv)
    if own and completion.is_asked():
        completion.answer(parser())
    if own:
        # polars reads it when it is loaded. Freed memory goes back at once: a million files need 0.9 GB, not 1.2 GB.
        os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
        handle_stops()
        logging.getLogger().addHandler(logging.NullHandler())  # py4j would print a traceback, beside raising it
    args = argparse.Namespace()
    try:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")  # no name is beyond the terminal's character set
        if not arguments:
            parser().print_help()
            return DONE
        parser().parse_args(arguments, args)
        args.own_process, args.arguments = own, arguments
        status = _command(args)
        sys.stdout.flush()
    except BaseException as error:
        if isinstance(error, SystemExit | GeneratorExit):
            raise
        status = _ended_by(error, arguments, getattr(args, "warehouse", None))
    finally:
        if own:
            leave_at_once()
    if own:
        end_process(status)
    return status


def _ended_by(error: BaseException, arguments: list[str], warehouse: str | None) -> int:
    """Print in one line why the run ended early; return the exit status."""
    stop = stopped_by() or (signal.SIGINT if isinstance(error, KeyboardInterrupt) else None)
    if stop is not None:  # whatever failed since then failed because of it
        word = "terminated" if stop == signal.SIGTERM else "interrupted"
        return _say([f"{word}; the next run continues where this one ended"], 128 + stop)
    if isinstance(error, MqreplayError) and not isinstance(error, OwnDiskError):
        known = {WarehouseLocked: LOCKED, StoreUnavailable: CRASHED}
        status = next((known[kind] for kind in known if isinstance(error, kind)), BAD_INPUT)
        return _say(error.messages if isinstance(error, InputErrors) else [str(error)], status)
    if isinstance(error, BrokenPipeError) and _reader_is_gone():
        _discard_output()
        return DONE
    if isinstance(error, OSError) and not _writes_output():
        _discard_output()
    return _say([crash_line(error, arguments, warehouse)], CRASHED)


def _reader_is_gone() -> bool:
    """Return whether nobody reads stdout any more. Other pipes, such as the one to Java, break for other reasons."""
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
    """Discard what is left in the buffer. At exit Python would try again, and complain."""
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
    use_stores(args)
    # What needs Spark is imported late, so that --help and a wrong option answer at once.
    if args.command == "import":
        from mqreplay.record.imports.import_command import import_evidence

        import_evidence(args.paths, args.out, sys.stdout, args.broker, args.time_zone, args.json)
        return DONE
    if args.command == "unpack":
        from mqreplay.record.imports.captures.unpack import unpack

        unpack(args.captures, args.out, sys.stdout, args.json)
        return DONE
    if args.command == "record":
        record_arguments.run(args)
        return DONE
    if args.command == "register":
        register_command.print_registration(args.warehouse, args.catalog, args.prefix, args.s3_scheme, sys.stdout)
        return DONE
    if args.command == "completion":
        print(completion.script(args.shell), end="")
        return DONE
    if args.command in PRINTING:
        PRINTING[args.command](args)
        return DONE
    if args.command == "ready":
        return ready_command.run(args)
    if args.command == "sql":
        return sql_command.run(args)
    from mqreplay.settings import load_settings

    settings = load_settings(args.conf or step_commands.demo_conf(args.command))
    settings = settings.in_language(getattr(args, "lang", None))
    if args.command == "doctor":
        return _doctor(args, settings)
    if args.command == "advise":
        advise_command.run(args, settings)
        return DONE
    if args.command == "mcp":
        mcp_command.run(args, settings)
        return DONE
    if args.command == "whatif":
        return whatif_command.run(args, settings)
    if args.command == "explain":
        from mqreplay.cli.explain import print_explanation

        print_explanation(
            args.warehouse,
            args.finding,
            args.cluster,
            as_json=args.json,
            limit=args.limit,
            words=language(settings.report.language),
        )
        return DONE
    if args.command == "maintain":
        maintain_command.run(args, settings)
        return DONE
    return step_commands.run_step(args, settings)


def _doctor(args: argparse.Namespace, settings: Settings) -> int:
    if args.files:
        from mqreplay.cli.doctor.files import examine_files

        return DONE if examine_files(args.files, sys.stdout, args.json) else FAILED
    from mqreplay.cli.doctor.machine import examine_machine

    return DONE if examine_machine(settings, sys.stdout, args.json) else BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
