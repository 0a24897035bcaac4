"""Small files that are replaced atomically: readers see the old or the new one, never a part."""

from __future__ import annotations

import json
from typing import Any

from mqreplay.lake.files import files_of


def write_json(path: str, value: Any) -> None:
    """Replace the file by JSON; make its folder if needed."""
    write_text(path, f"{json.dumps(value)}\n")


def write_text(path: str, text: str) -> None:
    """Replace the file by a text."""
    files_of(path).write(path, text.encode())


def read_json(path: str) -> Any:
    """Return the value. Raises FileNotFoundError, and ValueError for a file that is not JSON."""
    return json.loads(files_of(path).read(path))
