"""The JVM's own remarks at its start kept from the terminal; whatever else it says on stderr is passed on."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

NOISE = (
    b"WARNING: Using incubator modules",  # Spark asks the JVM for one; nothing a user could mend
    b"Using Spark's default log4j profile",
    b"Setting default log level",
    b"To adjust logging level use",
)


@contextmanager
def jvm_start() -> Iterator[None]:
    """Within the block a child process gets a stderr that leaves NOISE out; ours is as it was afterwards."""
    ours = os.dup(2)
    reader, writer = os.pipe()
    os.dup2(writer, 2)
    os.close(writer)
    threading.Thread(target=_pass_on, args=(reader, ours), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(ours, 2)


def _pass_on(reader: int, ours: int) -> None:
    with os.fdopen(reader, "rb") as lines:
        for line in lines:
            if not line.startswith(NOISE):
                os.write(ours, line)
