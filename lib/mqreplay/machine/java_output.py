"""Keep the output of Java and its Python workers for a log, away from mqreplay's stdout and stderr."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

MOST_LINES, LONGEST_LINE = 2_000, 4_000
NOISE = (
    b"WARNING: Using incubator modules",  # Spark causes this warning; a user cannot change it
    b"Using Spark's default log4j profile",
    b"Setting default log level",
    b"Setting Spark log level",
    b"To adjust logging level use",
)
_output: deque[str] = deque(maxlen=MOST_LINES)


def output_of_java() -> list[str]:
    """Return the last lines, the oldest first."""
    return list(_output)


@contextmanager
def jvm_start() -> Iterator[None]:
    """Give child processes a stdout and stderr whose lines are kept, within the block."""
    sys.stdout.flush()
    ours = [os.dup(1), os.dup(2)]
    reader, writer = os.pipe()
    for number in (1, 2):
        os.dup2(writer, number)
    os.close(writer)
    threading.Thread(target=_keep, args=(reader,), daemon=True).start()
    try:
        yield
    finally:
        for number, before in enumerate(ours, 1):
            os.dup2(before, number)
            os.close(before)


def _keep(reader: int) -> None:
    with os.fdopen(reader, "rb") as lines:
        # A very long line is cut, so that Java's output cannot fill the memory.
        while line := lines.readline(LONGEST_LINE):
            if not line.startswith(NOISE):
                _output.append(line.decode("utf-8", "replace").rstrip("\r\n"))
