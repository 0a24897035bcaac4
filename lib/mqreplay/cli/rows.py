"""Rows of a query as a table, lines, CSV or JSON. Control characters are escaped. NO_COLOR is kept (by rich)."""

from __future__ import annotations

import csv
import math
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.box import HEAVY_HEAD
from rich.cells import cell_len

from mqreplay.terminal.console import PIPED, print_table
from mqreplay.terminal.pipe_console import PipeConsole
from mqreplay.words.printable import csv_text, json_text, printable

LINE_FORM = "--format line"  # where a value is too long
MOST_NESTED = 200  # characters of a list that a terminal shows


def print_rows(
    names: Sequence[str],
    rows: Iterable[Sequence[object]],
    form: str,
    out: TextIO | None = None,
    line_form: str = LINE_FORM,
) -> None:
    """Print rows to ``out``, or stdout: as a table, one column a line, CSV or one JSON object a line.

    Values belong to names by their position: several columns may have one name. Rows of which a table does not fit
    into the terminal are printed one column a line. Long lists are cut there; ``line_form`` shows all of them.
    """
    out = sys.stdout if out is None else out
    if form == "json":
        keys = _distinct(names)
        for row in rows:
            print(json_text(dict(zip(keys, map(_plain, row), strict=True))), file=out)
    elif form == "csv":
        writer = csv.writer(out)
        writer.writerow(map(csv_text, names))
        writer.writerows(map(_csv_cell, row) for row in rows)
    elif form == "line":
        _print_lines(names, rows, out)
    else:
        _print_table(names, rows, out, line_form)


def _print_lines(names: Sequence[str], rows: Iterable[Sequence[object]], out: TextIO) -> None:
    heads = [printable(name) for name in names]
    width = max(map(cell_len, heads), default=0)
    for number, row in enumerate(rows):
        if number:
            print(file=out)
        for head, value in zip(heads, row, strict=True):
            print(f"{' ' * (width - cell_len(head))}{head} = {printable(_cell(value))}".rstrip(), file=out)


def _print_table(names: Sequence[str], rows: Iterable[Sequence[object]], out: TextIO, line_form: str) -> None:
    # Piped somewhere there is no terminal to fit into: wide rows stay on their lines.
    is_terminal = sys.stdout.isatty()
    width, height = shutil.get_terminal_size() if is_terminal else (PIPED, 25)
    console = PipeConsole(file=out, width=width, height=height, highlight=False, force_terminal=is_terminal or None)
    cells = [[printable(_shown(value, line_form) if is_terminal else _cell(value)) for value in row] for row in rows]
    if names:
        print_table(console, [printable(name) for name in names], cells, box=HEAVY_HEAD)
    else:
        console.print()


def _shown(value: object, line_form: str) -> str:
    """Return a value for a terminal. Of a long list, such as the evidence of a finding, only the begin is shown."""
    text = _cell(value)
    if not isinstance(value, (list, tuple, dict)) or len(text) <= MOST_NESTED:
        return text
    return f"{text[:MOST_NESTED]} ... ({len(text) - MOST_NESTED:,} more characters; {line_form} shows all)"


def _csv_cell(value: object) -> str:
    """Return the value as CSV has it. A number or an instant may begin with a minus."""
    text = _cell(value)
    is_text = isinstance(value, (str, bytes, bytearray, list, tuple, dict))
    return csv_text(text) if is_text else printable(text)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "backslashreplace")
    return json_text(_plain(value)) if isinstance(value, (list, tuple, dict)) else str(_plain(value))


def _plain(value: object) -> object:
    """Return the value as JSON has it. No two values of one type give the same."""
    if isinstance(value, tuple) and hasattr(value, "__fields__"):  # a Row of pyspark, which need not be loaded
        return dict(zip(_distinct(value.__fields__), map(_plain, value), strict=True))
    if isinstance(value, dict):
        return {_key(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, (bytes, bytearray)):
        return value.hex().upper()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value is None or isinstance(value, (str, int, float)):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _key(key: object) -> str:
    plain = _plain(key)
    return plain if isinstance(plain, str) else json_text(plain)


def _distinct(names: Iterable[str]) -> list[str]:
    """Return the names, with a number after each that occurred before.

    >>> _distinct(["path", "day", "path", "path_2"])
    ['path', 'day', 'path_3', 'path_2']
    """
    names = list(names)
    taken, found = set(names), dict[str, None]()
    for name in names:
        key, number = name, 2
        while key in found or (key != name and key in taken):
            key, number = f"{name}_{number}", number + 1
        found[key] = None
    return list(found)
