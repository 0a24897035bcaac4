"""The console on stdout: colours, texts and tables as wide as the terminal, the note on an interrupted run.

NO_COLOR is kept (by rich). What is piped is never wrapped, unless COLUMNS says how wide its paragraphs are.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final, Literal

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mqreplay.lake.journal import interrupted_run
from mqreplay.terminal.pipe_console import PipeConsole
from mqreplay.words.printable import printable

PROGRAM: Final = "mqreplay"
COLOURS: Final = {"critical": "bold red", "warning": "yellow", "info": "cyan"}
PIPED: Final = 1_000_000  # columns of a line that has no terminal
SHORT: Final = 32  # cells of the values that stay on one line
NARROWEST: Final = 20  # cells of a column whose texts take several lines
# Without spaces, a line may end before or after a Chinese character, but marks stay beside what they belong to.
WORD: Final = re.compile(r"（*(?:[\u2e80-\uffef]|[^\s\u2e80-\uffef]+)[，。；：、！？）]*")


def text_console(*, soft_wrap: bool = False) -> Console:
    """Return a console on stdout. It prints text in a notebook, too, where rich would print HTML."""
    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else PIPED
    return PipeConsole(highlight=False, force_jupyter=False, soft_wrap=soft_wrap, width=width)


def command_text(command: str) -> str:
    """Return a command of mqreplay as this shell takes it: with the path of the program if it is not on PATH."""
    name, _, rest = command.partition(" ")
    return " ".join(filter(None, [_program() if name == PROGRAM else name, rest]))


def _program() -> str:
    """Return what runs this program again: its name, or a path such as .venv/bin/mqreplay."""
    path = Path(sys.argv[0])
    if path.name != PROGRAM or not path.is_file():
        return PROGRAM
    on_path = shutil.which(PROGRAM)
    if on_path is not None and Path(on_path).resolve() == path.resolve():
        return PROGRAM
    return shlex.quote(os.path.relpath(path) if path.absolute().is_relative_to(Path.cwd()) else str(path))


def print_line(console: Console, text: str, style: str = "") -> None:
    """Print a text without its control characters as ``print_row`` does; spaces before it are before each line."""
    body = text.lstrip(" ")
    print_row(console, Text(printable(body), style), len(text) - len(body))


def print_row(console: Console, text: Text, indent: int = 0, head: Text | None = None) -> None:
    """Print a text that is one line outside of a terminal, also if COLUMNS is set; in a terminal, as ``print_text``."""
    if console.is_terminal:
        print_text(console, text, indent, head)
    else:
        console.print(Text(" " * indent) + (head or Text()) + text, soft_wrap=True)


def print_text(console: Console, text: Text, indent: int = 0, head: Text | None = None) -> None:
    """Print a text after ``indent`` spaces and ``head``; in a terminal that is too narrow for it, on lines of its own.

    No word is split: a name or an id that is on one line can be copied.
    """
    head = Text() if head is None else head
    at = indent + cell_len(head.plain)
    if head and console.width - at < max(min(SHORT, text.cell_len), _longest_word(text.plain)):
        print_text(console, head, indent)
        print_text(console, text, indent + 4)
        return
    lines = _lines(text, max(console.width - at, _longest_word(text.plain)))
    for begin, line in zip([Text(" " * indent).append_text(head), *[Text(" " * at)] * len(lines)], lines, strict=False):
        console.print(begin + line, soft_wrap=True)


def print_table(
    console: Console,
    names: Sequence[str],
    rows: Iterable[Sequence[Text | str]],
    right: Collection[int] = (),
    box: Box | None = None,
    indent: int = 0,
) -> None:
    """Print a table, or each row as a record of one column a line where the terminal is too narrow for a table.

    ``right``: the places of columns that are to the right. Short values stay on one line, and no word is split.
    """
    cells = [[Text(each) if isinstance(each, str) else each for each in row] for row in rows]
    plain = [[name, *(row[place].plain for row in cells)] for place, name in enumerate(names)]
    padding = (0, 1) if box else (0, 2, 0, 0)
    # Between two columns there are two spaces, or a border between spaces.
    left = console.width - indent - (3 * len(names) - 1 if box else 2 * (len(names) - 1))
    widths = _widths(plain, left)
    if widths is None:
        _print_records(console, names, cells, indent)
        return
    table = Table(box=box, pad_edge=False, padding=padding, header_style="table.header" if box else "")
    for place, (name, width) in enumerate(zip(names, widths, strict=True)):
        side: Literal["left", "right"] = "right" if place in right else "left"
        table.add_column(Text(name, "" if box else "dim"), justify=side, overflow="fold", width=width)
    for row in cells:
        table.add_row(*(Text("\n").join(_lines(cell, width)) for cell, width in zip(row, widths, strict=True)))
    for segments in console.render_lines(table, pad=False):
        line = Text.assemble(" " * indent, *((segment.text, segment.style or "") for segment in segments))
        line.rstrip()
        console.print(line, soft_wrap=True)


def _widths(columns: Sequence[Sequence[str]], left: int) -> list[int] | None:
    """Return how wide each column is, of ``left`` cells in all; None where they do not fit."""
    longest = [max(map(cell_len, texts)) for texts in columns]
    widths = [
        most if most <= SHORT else max(NARROWEST, *map(_longest_word, texts))
        for most, texts in zip(longest, columns, strict=True)
    ]
    left -= sum(widths)
    wanted = sorted((most - width, place) for place, (most, width) in enumerate(zip(longest, widths, strict=True)))
    for number, (more, place) in enumerate(wanted):
        share = min(more, max(0, left) // (len(wanted) - number))
        widths[place] += share
        left -= share
    return widths if left >= 0 else None


def _print_records(console: Console, names: Sequence[str], rows: Iterable[Sequence[Text]], indent: int) -> None:
    """Print each row as lines of a name and a value. Empty values are left out: a row may have many of them."""
    width = max(map(cell_len, names))
    for number, row in enumerate(rows):
        if number:
            console.print()
        for name, value in zip(names, row, strict=True):
            if value:
                print_text(console, value, indent, Text(f"{padded(name, width)}  ", "dim"))


def _lines(text: Text, width: int) -> list[Text]:
    """Return a text in lines of at most ``width`` cells; a longer word has a line of its own.

    >>> [line.plain for line in _lines(Text("它的路由（10.20.15.1@7316）重新包含它。"), 16)]
    ['它的路由', '（10.20.15.1@7316）', '重新包含它。']
    """
    ends, used, end = [], 0, 0
    for word in WORD.finditer(text.plain):
        size = cell_len(word[0])
        used += cell_len(text.plain[end : word.start()]) + size
        end = word.end()
        if used > width and used > size:
            ends.append(word.start())
            used = size
    lines = list(text.divide(ends))
    for line in lines:
        line.rstrip()
    return lines


def _longest_word(text: str) -> int:
    """Return the cells of the longest part of a text that has no place to end a line."""
    return max((cell_len(word) for word in WORD.findall(text)), default=0)


def padded(text: str, width: int) -> str:
    """Return a text with spaces up to ``width`` cells of a terminal; a Chinese character takes two.

    >>> padded("ok", 4), padded("严重", 4)
    ('ok  ', '严重')
    """
    return text + " " * max(0, width - cell_len(text))


def note_interruption(warehouse: str) -> None:
    """Print on stderr if the last run on the warehouse was interrupted: tables may hold a part of it."""
    doing = interrupted_run(warehouse)
    if doing is not None:
        text = f"note: the last run was interrupted ({doing}); until the next run, some tables may hold a part of it"
        print(printable(text), file=sys.stderr)
