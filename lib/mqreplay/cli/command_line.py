"""The command line. Results go to stdout, progress to stderr.

Exit status: 0 done; 1 done, and an expectation failed, a finding reaches --fail-on, or a file that doctor examined is
broken; 2 bad usage, settings or input; 3 the warehouse is locked by another run; 4 the run failed; 130 and 143 stopped.
"""

from __future__ import annotations

import argparse
import logging
import os
import select
import shlex
import signal
import sys
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import NoReturn

from mqreplay import __version__
from mqreplay.cli import (
    advise_command,
    completion,
    findings_command,
    maintain_command,
    moment_commands,
    mute_command,
    recording_commands,
    sql_command,
    step_commands,
    tables_command,
    whatif_command,
)
from mqreplay.cli.arguments import add_tables, settings_of
from mqreplay.cli.command import BAD_INPUT, CRASHED, DONE, LOCKED, Command, command_texts
from mqreplay.cli.doctor import command as doctor_command
from mqreplay.machine.crash import crash_line
from mqreplay.machine.stop_signals import end_process, handle_stops, leave_at_once, stopped_by
from mqreplay.words.errors import (
    InputError,
    InputErrors,
    MqreplayError,
    OwnDiskError,
    StoreUnavailable,
    WarehouseLocked,
)
from mqreplay.words.printable import printable, without_secrets
from mqreplay.words.similar import did_you_mean

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


# Deprecated names of commands, and what they are now.
RENAMED = {"acknowledge": ("mute",), "register": ("tables", "--sql"), "unpack": ("import",)}


def run_mcp(args: argparse.Namespace) -> None:
    """Serve a warehouse to an agent."""
    from mqreplay.mcp.server import serve

    serve(args.warehouse, settings_of(args))


COMMANDS = (
    *step_commands.COMMANDS,
    maintain_command.COMMAND,
    sql_command.COMMAND,
    *findings_command.COMMANDS,
    *moment_commands.COMMANDS,
    whatif_command.COMMAND,
    advise_command.COMMAND,
    mute_command.COMMAND,
    Command("mcp", add_tables, run_mcp, needs_tables=True),
    tables_command.COMMAND,
    *recording_commands.COMMANDS,
    doctor_command.COMMAND,
    completion.COMMAND,
)
BY_NAME = {command.name: command for command in COMMANDS}


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
        usage="mqreplay [-h] [--version] COMMAND ...",
        description="Replay the decisions of an Apache RocketMQ cluster, and report what went wrong.",
        epilog=EXIT_STATUS,
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, indent_increment=4),
    )
    top.add_argument("--version", action="version", version=f"mqreplay {__version__}")
    commands = top.add_subparsers(
        prog="mqreplay", dest="command", required=True, metavar="COMMAND", help=argparse.SUPPRESS
    )
    texts = command_texts()
    for title, names in groupby(texts, key=lambda name: str(texts[name]["group"])):
        group = top.add_argument_group(title)
        for name in names:
            BY_NAME[name].add_to(commands, group)
    return top


def main(argv: Sequence[str] | None = None, *, own_process: bool | None = None) -> int:
    """Run one command; return its exit status.

    ``own_process``: the process, its signals and its right to write are ours alone; by default, if ``argv`` is None.
    """
    own = argv is None if own_process is None else own_process
    arguments = list(sys.argv[1:] if argv is None else argv)
    if own and completion.is_asked():
        completion.answer(parser())
    if own:
        # polars reads it when it is loaded. Freed memory goes back soon: a million files need 0.9 GB, not 1.2 GB. At
        # once would cost a twentieth of the CPU time of a night.
        os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:500,muzzy_decay_ms:0")
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
        if (new := RENAMED.get(arguments[0])) is not None:
            name, arguments = arguments[0], [*new, *arguments[1:]]
            _say([f"{name} is deprecated, use {' '.join(new)}: {shlex.join(['mqreplay', *arguments])}"], DONE)
        if arguments[0] == "help":
            arguments = [*arguments[1:], "--help"]
        if not arguments[0].startswith("-") and arguments[0] not in BY_NAME:
            meant = did_you_mean(arguments[0], BY_NAME)
            hint = f"did you mean {meant}?" if meant else "`mqreplay --help` lists them"
            raise InputError(f"there is no command {without_secrets(arguments[0])}; {hint}")
        parser().parse_args(arguments, args)
        args.own_process, args.arguments = own, arguments
        status = BY_NAME[args.command].execute(args)
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


if __name__ == "__main__":
    sys.exit(main())
