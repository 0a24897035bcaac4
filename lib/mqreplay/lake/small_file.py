"""A file beside the tables, written in one step: who reads it sees the old one or the new one, never half of one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def write_json(path: Path, value: Any) -> None:
    """Replaces the file; its folder is made if it is not there."""
    write_lines(path, [json.dumps(value)])


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """The same, of lines that are made as they are written."""
    _write(path, (f"{line}\n" for line in lines))


def write_text(path: Path, text: str) -> None:
    """The same, of a text."""
    _write(path, [text])


def _write(path: Path, parts: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    with beside.open("w", encoding="utf-8", newline="") as stream:
        stream.writelines(parts)
    beside.replace(path)
