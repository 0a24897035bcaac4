"""Complete copies of a file that another process may rewrite at any moment.

4.9 writes a temporary file, removes the old one and renames. 5.x renames the old one to .bak and writes in place. A
read in between finds an empty, truncated or missing file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from mqreplay.words.errors import DecodeError

PAUSE_S: Final = 0.001  # between two reads that must agree
FIRST_WAIT_S: Final = 0.005
LONGEST_WAIT_S: Final = 0.05
SETTLED_NS: Final = 2_000_000_000  # a file may change twice within one tick of the file system's clock

Signature = tuple[int, int, int]  # inode, size, and the time of the last change in ns


class WholeCopy(NamedTuple):
    """A file's content. ``signature`` is the same until the file changes; None if it changed a moment ago."""

    data: bytes
    signature: Signature | None


def signature_of(path: Path) -> Signature | None:
    """Return the signature of a file, which changes with it; None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return _signature(found)


def read_whole(path: Path, check: Callable[[bytes], object], patience_s: float) -> WholeCopy | str:
    """Return content that two consecutive reads agree on and ``check`` accepts, or the reason why there is none.

    ``check`` raises DecodeError for incomplete content.
    """
    until = time.monotonic() + patience_s
    wait = FIRST_WAIT_S
    refused: tuple[bytes, str] | None = None
    while True:
        first = _read(path)
        time.sleep(PAUSE_S)
        second = _read(path)
        if isinstance(second, str):
            why = second
        elif first != second:
            why = "it changes all the time"
        elif refused is not None and refused[0] == second[0]:
            why = refused[1]
        else:
            data, signature = second
            try:
                check(data)
            except DecodeError as error:
                why = f"it is not complete ({error.code})"
                refused = data, why
            else:
                is_settled = abs(time.time_ns() - signature[2]) > SETTLED_NS
                return WholeCopy(data, signature if is_settled else None)
        if time.monotonic() > until:
            return why
        time.sleep(wait)
        wait = min(2 * wait, LONGEST_WAIT_S)


def _read(path: Path) -> tuple[bytes, Signature] | str:
    try:
        with path.open("rb") as file:
            before = _signature(os.fstat(file.fileno()))
            data = file.read()
            after = _signature(os.fstat(file.fileno()))
    except FileNotFoundError:
        return "there is no file"
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    return (data, after) if before == after and len(data) == after[1] else "it changes all the time"


def _signature(found: os.stat_result) -> Signature:
    return found.st_ino, found.st_size, found.st_mtime_ns
