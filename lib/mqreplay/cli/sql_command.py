"""`mqreplay sql`: a query of an argument, a file or stdin, or an interactive shell; by DuckDB or by Spark SQL."""

from __future__ import annotations

import argparse
import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqreplay.answers.query_bounds import MOST_MEMORY, TOO_LARGE
from mqreplay.cli.arguments import add_conf, add_format, add_warehouse
from mqreplay.cli.command import DONE, Command
from mqreplay.words.errors import InputError

if TYPE_CHECKING:
    from mqreplay.settings import Settings

DESCRIBE_FUNCTION = re.compile(r'\s*DESC(?:RIBE)?\s+FUNCTION\s+(?:EXTENDED\s+)?[`"]?(\w+)[`"]?\s*;?\s*', re.IGNORECASE)


def add(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("query", nargs="?", metavar="SELECT", help="the query; -: it is read from stdin")
    command.add_argument("--file", metavar="FILE", help="read the query from a file")
    add_warehouse(command)
    command.add_argument(
        "--engine",
        choices=("duckdb", "spark"),
        default="duckdb",
        help="whose SQL it is (%(default)s); spark needs Java, and takes several seconds to start",
    )
    add_format(command)
    add_conf(command)


def run(args: argparse.Namespace) -> int:
    """Print the rows of the query, or start the shell; return the exit status.

    Raises InputError before anything heavy is loaded. DuckDB runs in a child with a bound of its memory.
    """
    if args.own_process and args.engine == "duckdb":
        from mqreplay.lake.separate_process import continue_in_child

        status = continue_in_child()
        if status is not None and status < 0:
            raise InputError(f"{TOO_LARGE} (its process was ended by {signal.Signals(-status).name})")
        if status is not None:
            return status
    try:
        _run(args)
    except MemoryError:
        raise InputError(f"{TOO_LARGE}; --format csv and json print rows as they come, and keep none") from None
    return DONE


def _run(args: argparse.Namespace) -> None:
    from mqreplay.lake.local_folder import require_warehouse

    require_warehouse(args.warehouse)
    if args.engine == "spark":
        from mqreplay.engines.choice import require_spark

        require_spark("leave out --engine spark")
    text = query_text(args.query, args.file)
    from mqreplay.settings import load_settings

    settings = load_settings(args.conf)
    from mqreplay.cli.rows import print_rows
    from mqreplay.terminal.console import note_interruption

    note_interruption(args.warehouse)
    if text is None:
        from mqreplay.cli.sql_shell import history_file, run_shell

        history = history_file()
        _confine(args, settings, [history.parent] if history else [])
        run_shell(args.warehouse, lambda query: answer(args, query, settings), args.format, history)
        return
    _confine(args, settings, [])
    names, rows = answer(args, text, settings)
    print_rows(names, rows, args.format)


def query_text(argument: str | None, file: str | None) -> str | None:
    """Return the query of an argument, a file or stdin; None where stdin is a terminal. Raises InputError."""
    if file is not None:
        if argument is not None:
            raise InputError("give the query or --file, not both")
        try:
            return Path(file).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise InputError(f"query file {file} cannot be read: {why}") from None
    if argument is not None and argument != "-":
        return argument
    if argument is None and sys.stdin.isatty():
        return None
    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        raise InputError("the query on stdin is not UTF-8") from None


def answer(args: argparse.Namespace, text: str, settings: Settings) -> tuple[list[str], Any]:
    """Return the names of the columns and the rows of a query."""
    warehouse, engine = args.warehouse, args.engine
    if (described := DESCRIBE_FUNCTION.fullmatch(text)) is not None:
        from mqreplay.bind.functions import FUNCTIONS
        from mqreplay.bind.reference import description_lines

        if bound := FUNCTIONS.get(described[1].lower()):
            return ["function_desc"], [(line,) for line in description_lines(bound, engine)]
    if engine == "duckdb":
        from mqreplay.answers.duckdb_query import duckdb_stream

        return duckdb_stream(warehouse, text, MOST_MEMORY if args.own_process else None)
    from mqreplay.cli.query import fetch, query

    return fetch(query(warehouse, text, settings))


def _confine(args: argparse.Namespace, settings: Settings, folders: list[Path]) -> None:
    """Take from a process of our own the right to write, but in its temporary folder and ``folders``."""
    if not args.own_process:
        return
    if args.engine == "spark":
        from mqreplay.cli.query import keep_from_writing

        keep_from_writing(settings, folders)
        return
    from mqreplay.lake.confinement import confine_writes
    from mqreplay.lake.scratch import scratch
    from mqreplay.machine.log_folder import temporary_logs

    confine_writes([scratch().folder, *temporary_logs(), *folders])


COMMAND = Command("sql", add, run)
