"""`mqreplay completion SHELL`: a script that asks mqreplay for the words that may follow (argcomplete).

Names of findings, groups and others are those of the warehouse on the line, or of MQREPLAY_WAREHOUSE.
"""

from __future__ import annotations

import argparse
import os
import shlex
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from mqreplay.cli.arguments import WAREHOUSE
from mqreplay.cli.command import Command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

SHELLS = ("bash", "zsh", "fish")
SECONDS: Final = 0.35  # a user waits for the answer: what was read until then is offered
SHORT_ID: Final = 8  # characters of an id that are printed
# Argument -> column, and tables that have it and are small even for a large night.
COLUMNS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "finding": ("finding_id", ("gold.finding", "gold.open_finding")),
    "kind": ("kind", ("gold.finding", "gold.open_finding")),
    "group": ("consumer_group", ("gold.finding", "gold.member", "gold.open_finding")),
    "topic": ("topic", ("gold.finding", "silver.topic_config", "gold.open_finding")),
    "broker": ("broker_name", ("silver.broker", "silver.broker_runtime", "gold.finding", "gold.open_finding")),
    "cluster": ("cluster", ("gold.finding", "bronze.step", "gold.open_finding")),
}
SAME_NAMES: Final = {"lose_master": "broker"}  # option -> argument that has the same names


def add(command: argparse.ArgumentParser) -> None:
    """Add the argument of the command."""
    command.add_argument("shell", choices=SHELLS, help="the shell")


def script(shell: str) -> str:
    """Return the script of a shell."""
    from argcomplete.shell_integration import shellcode

    return shellcode(["mqreplay"], shell=shell)


def run(args: argparse.Namespace) -> None:
    """Print the script."""
    print(script(args.shell), end="")


def is_asked() -> bool:
    """Return whether the script of a shell started this process, to learn the words that may follow."""
    return "_ARGCOMPLETE" in os.environ


def answer(parser: argparse.ArgumentParser) -> None:
    """Answer the script of a shell, and end the process."""
    import argcomplete

    complete_names(parser)
    argcomplete.autocomplete(parser)


def complete_names(parser: argparse.ArgumentParser) -> None:
    """Give a completer to each argument that is a name in the warehouse, in commands that have one."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                if any(each.dest == "warehouse" for each in command._actions):
                    _add_completers(command)


def _add_completers(command: argparse.ArgumentParser) -> None:
    for action in command._actions:
        name = SAME_NAMES.get(action.dest, action.dest)
        if name in COLUMNS or name == "table":
            action.completer = _completer(name)  # type: ignore[attr-defined]


def _completer(name: str) -> Callable[..., Mapping[str, str]]:
    def complete(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> Mapping[str, str]:
        root = _warehouse(parsed_args)
        # Object stores are too slow for a key.
        return {} if root is None or "://" in root else names_of(Path(root).expanduser(), name, prefix)

    return complete


def _warehouse(args: argparse.Namespace) -> str | None:
    """Return the warehouse of the line, which may be after the cursor, or of the environment."""
    with suppress(ValueError):  # a quote is still open
        words = shlex.split(os.environ.get("COMP_LINE", ""))
        for number, word in enumerate(words):
            option, equals, value = word.partition("=")
            if option == "--warehouse" and (equals or number + 1 < len(words)):
                return value if equals else words[number + 1]
    return getattr(args, "warehouse", None) or os.environ.get(WAREHOUSE) or None


def names_of(root: Path, name: str, prefix: str, seconds: float = SECONDS) -> dict[str, str]:
    """Return the names that a warehouse has for an argument, each with a description; those read within ``seconds``.

    Nothing is raised: of a warehouse that cannot be read, no names are known.
    """
    found: dict[str, str] = {}

    def read() -> None:
        with suppress(Exception):
            for word, description in _tables(root) if name == "table" else _rows(root, name, prefix):
                found.setdefault(word, description)

    reading = Thread(target=read, daemon=True)
    reading.start()
    reading.join(seconds)
    return found.copy()


def _tables(root: Path) -> Iterator[tuple[str, str]]:
    for log in sorted(root.glob("*/*/_delta_log")):
        yield f"{log.parent.parent.name}.{log.parent.name}", ""


def _rows(root: Path, name: str, prefix: str) -> Iterator[tuple[str, str]]:
    # The whole of mqreplay.lake takes longer to load than a user waits.
    from deltalake import DeltaTable, QueryBuilder

    column, tables = COLUMNS[name]
    is_finding = name == "finding"
    shown = "concat(severity, ' ', kind)" if is_finding else "''"
    for table in tables:
        with suppress(Exception):  # a table that was never made, or that another run replaces
            rows = QueryBuilder().register("t", DeltaTable(root.joinpath(*table.split("."))))
            text = f"SELECT DISTINCT {column} AS name, {shown} AS description FROM t WHERE {column} IS NOT NULL"
            for row in rows.execute(f"{text} ORDER BY name").read_all().to_struct_array().to_pylist():
                word = str(row["name"])
                is_short = is_finding and len(prefix) <= SHORT_ID
                yield word[:SHORT_ID] if is_short else word, str(row["description"])


COMMAND = Command("completion", add, run)
