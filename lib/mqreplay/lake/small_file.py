"""Small files that are replaced atomically: readers see the old or the new one, never a part."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def write_json(path: Path, value: Any) -> None:
    """Replace the file by JSON; make its folder if needed."""
    write_lines(path, [json.dumps(value)])


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Replace the file by lines, which may be a generator."""
    _write(path, (f"{line}\n" for line in lines))


def write_text(path: Path, text: str) -> None:
    """Replace the file by a text."""
    _write(path, [text])


def write_bytes(path: Path, data: bytes) -> None:
    """Replace the file by bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    beside.write_bytes(data)
    beside.replace(path)


def _write(path: Path, parts: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    with beside.open("w", encoding="utf-8", newline="") as stream:
        stream.writelines(parts)
    beside.replace(path)
