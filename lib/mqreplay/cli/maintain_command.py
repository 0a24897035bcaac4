"""`mqreplay maintain`: remove old days, compact the tables, and remove unused files."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from mqreplay.cli.arguments import (
    add_catalog,
    add_conf,
    add_engine,
    add_json,
    add_warehouse,
    catalog_of,
    choice_of_engine,
    settings_of,
)
from mqreplay.cli.command import Command
from mqreplay.words.printable import json_text
from mqreplay.words.quantity import counted

if TYPE_CHECKING:
    from mqreplay.night.maintain import Maintained


def add(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_warehouse(command)
    command.add_argument(
        "--keep",
        metavar="DAYS",
        help="days to keep, such as 90d, or days of layers, such as silver=30d,gold=400d; counted back from the last "
        "recorded day of each cluster; 0d: all days (the default: [maintain] of the settings)",
    )
    command.add_argument("--cluster", metavar="NAME", help="remove old days of this cluster only")
    command.add_argument("--dry-run", action="store_true", help="print what would be done, and change no table")
    add_json(command, "print what was done as JSON")
    add_conf(command)
    add_engine(command)
    add_catalog(command)


def run(args: argparse.Namespace) -> None:
    """Maintain the warehouse, and print a line for each table that changed."""
    from mqreplay.lake.local_folder import require_warehouse
    from mqreplay.night.maintain import maintain
    from mqreplay.terminal.progress import Progress

    settings = settings_of(args)
    require_warehouse(args.warehouse)
    choice = choice_of_engine(args, settings)
    with Progress(sys.stderr, choice.note) as progress:
        tables = maintain(
            args.warehouse,
            settings,
            progress,
            keep=args.keep,
            cluster=args.cluster,
            engine=choice.engine,
            catalog=catalog_of(args),
            dry_run=args.dry_run,
        )
    if args.json:
        print(json_text({"dry_run": args.dry_run, "tables": [each.as_dict() for each in tables]}, indent=1))
        return
    changed = [each for each in tables if each.changed]
    for each in changed:
        print(line(each))
    if not changed:
        print("Nothing to do.")
    elif args.dry_run:
        print("Nothing was changed (--dry-run).")


def line(done: Maintained) -> str:
    """Return what was done to a table in one line."""
    parts = []
    if done.rows_removed:
        parts.append(f"{counted(done.rows_removed, 'row')} removed")
    before = f"{counted(done.files_before, 'file')} ({_size(done.bytes_before)})"
    if done.files_before != done.files_after or done.bytes_before != done.bytes_after:
        parts.append(f"{before} became {counted(done.files_after, 'file')} ({_size(done.bytes_after)})")
    if done.unused_files_removed:
        unused = counted(done.unused_files_removed, "unused file")
        parts.append(f"{unused} ({_size(done.unused_bytes_removed)}) removed")
    if done.log_entries_removed:
        parts.append(f"{counted(done.log_entries_removed, 'log entry')} removed")
    return f"{done.table}: {', '.join(parts)}"


def _size(size: int) -> str:
    """Return a size in bytes with a unit.

    >>> _size(900), _size(12_345), _size(1_500_000)
    ('900 B', '12 kB', '1.5 MB')
    """
    for least, unit in ((1e9, "GB"), (1e6, "MB")):
        if size >= least:
            return f"{size / least:,.1f} {unit}"
    return f"{size / 1e3:.0f} kB" if size >= 1000 else f"{size} B"


COMMAND = Command("maintain", add, run)
