"""The interactive shell of `mqreplay sql`: statements end with a semicolon; history, completion, a few commands."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mqreplay.answers.query_bounds import TOO_LARGE
from mqreplay.bind.functions import FUNCTIONS
from mqreplay.cli.shell_output import ShellOutput
from mqreplay.lake.contract import Contract
from mqreplay.lake.warehouse import Warehouse
from mqreplay.machine.stop_signals import forget_stops, stopped_by
from mqreplay.words.errors import MqreplayError
from mqreplay.words.printable import printable
from mqreplay.words.similar import did_you_mean, unknown_table

HELP = """\
A statement ends with a semicolon and may take several lines.
  .tables         the tables of the warehouse
  .schema TABLE   the columns of a table, with their types and comments
  .mode FORM      how rows are printed: table, line (one column a line, for wide tables), csv or json
  .pager off      print long answers without the pager ($PAGER, or less); .pager on uses it again
  .help, help     this list
  .quit, exit     leave (also quit, Ctrl-D); Ctrl-C ends a query
Tab completes tables, columns, functions and words of SQL. DESCRIBE FUNCTION name; explains a function."""
KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "ALL", "HAVING", "LIMIT", "JOIN", "LEFT", "USING", "AND"),
    *("NOT", "NULL", "LIKE", "BETWEEN", "CASE", "WHEN", "THEN", "ELSE", "END", "WITH", "UNION", "DISTINCT", "DESC"),
    *("INTERVAL", "TIMESTAMP", "DESCRIBE", "DESCRIBE FUNCTION", "SHOW TABLES", "SHOW FUNCTIONS", "EXPLAIN"),
    *("count(", "sum(", "min(", "max("),
)
WORDS = {"help": ".help", "?": ".help", "quit": ".quit", "exit": ".quit"}  # as other shells have them
COMMANDS = (".tables", ".schema", ".mode", ".pager", ".help", ".quit")
DELIMITERS = " \t\n,()=<>+-*/;'\"[]{}"  # between words to complete: not the dot
HISTORY_LINES = 1000
# A statement is whole at a semicolon that is in no text, name or comment.
PARTS = re.compile(r"""'(?:[^']|'')*(?:'|\Z)|"(?:[^"]|"")*(?:"|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)|[^;'"/-]+|.""", re.DOTALL)
Answer = Callable[[str], tuple[list[str], Any]]  # of a query: names of columns, rows


def run_shell(
    warehouse: str, answer: Answer, form: str, history: Path | None, read: Callable[[str], str] = input
) -> None:
    """Read statements and print their rows, until the end of the input. Mistakes do not end it."""
    tables, output = Warehouse(warehouse), ShellOutput(form)
    if history is not None:
        _use_readline(history, words(tables.contracts))
    print(f"mqreplay sql on {printable(warehouse)}; help lists the commands", file=sys.stderr)
    pending = ""
    while True:
        try:
            line = read("   ...> " if pending else "mqreplay> ")
        except EOFError:
            print(file=sys.stderr)
            return
        except KeyboardInterrupt:
            _continue_after_interrupt()
            pending = ""
            print(file=sys.stderr)
            continue
        command = "" if pending else WORDS.get(line.strip(" ;\t").lower(), line.strip())
        if command == ".quit":
            return
        if command.startswith("."):
            _say_errors(lambda: _command(command, tables, output))  # noqa: B023 - called at once
            continue
        pending = f"{pending}\n{line}" if pending else line
        if not pending.strip():
            pending = ""
        elif is_whole(pending):
            text, pending = pending, ""
            _say_errors(lambda: output.show(*answer(text)))  # noqa: B023 - called at once


def is_whole(text: str) -> bool:
    """Return whether a text ends with a semicolon that ends a statement.

    >>> is_whole("SELECT ';"), is_whole("SELECT ';' -- x;"), is_whole("SELECT ';'; -- x")
    (False, False, True)
    """
    parts = [part for part in PARTS.findall(text) if part.strip() and not part.startswith(("--", "/*"))]
    return bool(parts) and parts[-1] == ";"


def words(contracts: Mapping[str, Contract]) -> list[str]:
    """Return what Tab completes."""
    columns = {column.name for contract in contracts.values() for column in contract.columns}
    return sorted({*contracts, *columns, *FUNCTIONS, *KEYWORDS, *COMMANDS})


def completions(text: str, known: Iterable[str]) -> list[str]:
    """Return the words that begin with a text; lower case begins words of upper case, too."""
    return [word for word in known if word.lower().startswith(text.lower())] if text else []


def history_file() -> Path | None:
    """Return the file of the history, made with mode 0600 if it is not there; None where it cannot be used."""
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    path = Path(home, "mqreplay", "sql_history")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        path.chmod(0o600)
    except OSError:
        return None
    return path


def _use_readline(history: Path, known: Sequence[str]) -> None:
    try:
        import readline
    except ImportError:  # a Python without it
        return

    def complete(text: str, state: int) -> str | None:
        found = completions(text, known)
        return found[state] if state < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(DELIMITERS)
    readline.parse_and_bind("tab: complete")
    readline.set_history_length(HISTORY_LINES)
    with suppress(OSError):
        readline.read_history_file(history)
    _save_each_line(readline, history)


def _save_each_line(readline: Any, history: Path) -> None:
    """Append each line when it is read: a process that is killed loses none."""

    def save() -> None:
        with suppress(OSError):
            readline.write_history_file(history)

    readline.set_startup_hook(save)


def _command(line: str, tables: Warehouse, output: ShellOutput) -> None:
    name, _, rest = line.partition(" ")
    if name == ".tables":
        made = [contract for contract in tables.contracts.values() if tables.exists(contract.name)]
        output.show(["table", "content"], [(each.name, each.description) for each in made])
    elif name == ".schema":
        contract = tables.contracts.get(rest.strip().lower())
        if contract is None:
            print(unknown_table(rest.strip() or "without a name", tables.contracts), file=sys.stderr)
            return
        output.show(["column", "type", "comment"], [(c.name, c.type, c.comment) for c in contract.columns])
    elif name == ".mode":
        output.choose_form(rest.strip())
    elif name == ".pager":
        output.choose_pager(rest.strip())
    else:
        if name != ".help":
            meant = did_you_mean(name, COMMANDS)
            hint = f"; did you mean {meant}?" if meant else ""
            print(f"there is no command {printable(name)}{hint}", file=sys.stderr)
        print(HELP)


def _say_errors(run: Callable[[], None]) -> None:
    try:
        run()
    except MqreplayError as error:
        print(printable(error), file=sys.stderr)
    except MemoryError:
        print(TOO_LARGE, file=sys.stderr)
    except KeyboardInterrupt:
        _continue_after_interrupt()
        print("interrupted", file=sys.stderr)


def _continue_after_interrupt() -> None:
    """Let Ctrl-C end what runs, and SIGTERM the shell."""
    if stopped_by() == signal.SIGTERM:
        raise KeyboardInterrupt
    forget_stops()
