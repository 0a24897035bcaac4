"""Answers that show themselves in a notebook, as the commands print them in a terminal."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import polars as pl
from markupsafe import escape

T = TypeVar("T")
TERMINAL = {"COLUMNS": "120", "NO_COLOR": "1", "FORCE_COLOR": ""}  # COLUMNS: characters of a line. A kernel forces bold
SHOWN_COLUMNS = (
    "finding_id",
    "severity",
    "kind",
    "cluster",
    "from_ts",
    "to_ts",
    "consumer_group",
    "topic",
    "broker_name",
)
COLOURS = {"critical": "#b3261e", "warning": "#8a6100", "info": "#1b5e85"}


@dataclass(frozen=True)
class Shown(Generic[T]):
    """An answer: ``value`` to compute with, ``text`` to read."""

    value: T
    text: str

    def __str__(self) -> str:
        """Return the text."""
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"


class Findings:
    """Findings: ``frame`` has the rows of gold.finding, the most severe first; iteration gives them as dicts."""

    def __init__(self, frame: pl.DataFrame) -> None:
        """Take rows of gold.finding."""
        self.frame = frame

    def __len__(self) -> int:
        """Return how many there are."""
        return self.frame.height

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield each as a dict by column."""
        return self.frame.iter_rows(named=True)

    def __str__(self) -> str:
        """Return one line for each."""
        lines = [f"{row['finding_id'][:8]}  {row['severity']:8}  {row['kind']}: {row['summary']}" for row in self]
        return "\n".join(lines) or "No findings."

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if not len(self):
            return "<p>No findings.</p>"
        head = "".join(f"<th>{name}</th>" for name in ("id", "severity", "kind", "since", "until", "summary"))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(map(_row, self))}</tbody></table>"


def _row(row: dict[str, Any]) -> str:
    severity = escape(row["severity"])
    times = [f"{ts:%Y-%m-%d %H:%M:%S}" if ts is not None else "" for ts in (row["from_ts"], row["to_ts"])]
    cells = (
        f"<code>{escape(row['finding_id'][:8])}</code>",
        f'<b style="color:{COLOURS.get(row["severity"], "inherit")}">{severity}</b>',
        escape(row["kind"]),
        *times,
        escape(row["summary"]),
    )
    return f"<tr>{''.join(f'<td style=text-align:left>{cell}</td>' for cell in cells)}</tr>"


def printed(show: Callable[[], None]) -> str:
    """Return what a function prints on stdout, without colours."""
    text = io.StringIO()
    before = {name: os.environ.get(name) for name in TERMINAL}
    os.environ.update(TERMINAL)
    try:
        with redirect_stdout(text):
            show()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())
