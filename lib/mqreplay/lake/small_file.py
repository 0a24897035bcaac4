"""Small files that are replaced atomically: readers see the old or the new one, never a part.

JSON has its own checksum: a damaged file is not taken for another value.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from mqreplay.lake.files import files_of

CHECKSUM = "sha256"


def write_json(path: str, value: dict[str, Any]) -> None:
    """Replace the file by JSON with a checksum; make its folder if needed."""
    text = json.dumps(value)
    write_text(path, f"{json.dumps(value | {CHECKSUM: _sha256(text)})}\n")


def write_text(path: str, text: str) -> None:
    """Replace the file by a text."""
    files_of(path).write(path, text.encode())


def read_json(path: str, *, is_old: bool = True) -> dict[str, Any]:
    """Return the value. Raises OSError, and ValueError for a file that is not JSON or has a wrong checksum.

    ``is_old``: take a file without a checksum, which a version before 0.3 wrote.
    """
    value = json.loads(files_of(path).read(path))
    if not isinstance(value, dict):
        raise ValueError(f"{path} is not an object")
    checksum = value.pop(CHECKSUM, None)
    if checksum != _sha256(json.dumps(value)) and (checksum is not None or not is_old):
        raise ValueError(f"{path} has a wrong checksum")
    return value


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
