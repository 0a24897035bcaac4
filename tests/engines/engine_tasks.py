"""Functions for the processes of an engine, which import them by name."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from mqreplay.words.errors import MqreplayError


def late_square(item: int, context: int) -> tuple[int, int]:
    """The square plus the context, and the process; the first items take the longest."""
    time.sleep(max(0, 5 - item) * 0.05)
    return item * item + context, os.getpid()


def fail_on_three(item: int, error: Exception) -> int:
    """Raise the error for one of the items."""
    if item == 3:
        raise error
    return item


def kill_itself(item: int, context: None) -> int:
    """End the process of one of the items as the kernel does when memory is short."""
    if item == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def wait_for_ever(item: int, folder: str) -> None:
    """Leave a file named by the process, and never return."""
    Path(folder, str(os.getpid())).touch()
    while True:
        time.sleep(3600)


def kinds_of_errors() -> list[type[MqreplayError]]:
    """Every error of mqreplay's own."""
    found: list[type[MqreplayError]] = [MqreplayError]
    for kind in found:
        found += kind.__subclasses__()
    return found
