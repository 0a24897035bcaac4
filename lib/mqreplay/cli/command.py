"""A command as a record: its help, its options and what runs it."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

DONE, FAILED, BAD_INPUT, LOCKED, CRASHED = 0, 1, 2, 3, 4  # exit statuses; `mqreplay --help` says what each means


@cache
def command_texts() -> dict[str, Any]:
    """Return what the help of each command says, in the order of `mqreplay --help`."""
    return tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Command:
    """A command; commands.toml has its help and examples. Help, completion and the documentation derive from both.

    ``add`` adds the options, ``run`` returns the exit status (None: DONE).
    ``needs_tables``: the warehouse must exist, and an interrupted run on it is noted.
    """

    name: str
    add: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int | None]
    needs_tables: bool = False

    def add_to(self, commands: Any, group: Any) -> None:
        """Add the command to the parser of all; its help is in a group of the arguments."""
        texts = command_texts()[self.name]
        parser = commands.add_parser(
            self.name,
            help=texts["help"],
            description=texts.get("description", texts["help"]),
            epilog="\n".join(["examples:", *(f"  {line}" for line in texts["examples"])]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.add(parser)
        group._group_actions.append(commands._choices_actions[-1])  # argparse has no groups of commands

    def execute(self, args: argparse.Namespace) -> int:
        """Run the command; return the exit status."""
        _use_stores(args)
        if self.needs_tables:
            from mqreplay.lake.local_folder import require_warehouse

            require_warehouse(args.warehouse)  # before a library of tables is loaded
            from mqreplay.terminal.console import note_interruption

            note_interruption(args.warehouse)
        status = self.run(args)
        return DONE if status is None else status


def _use_stores(args: argparse.Namespace) -> None:
    """Apply the settings of --conf on how to reach stores, if a folder is a URI. Raises SettingsError."""
    from mqreplay.lake.files import is_remote

    folders = [getattr(args, "warehouse", None), *getattr(args, "recordings", ()), *getattr(args, "files", ())]
    if any(folder and is_remote(folder) for folder in folders):
        from mqreplay.lake.storage import use_settings
        from mqreplay.settings import load_settings

        use_settings(load_settings(getattr(args, "conf", None)))
