"""The start of a process of the local engine. It imports neither polars nor what needs polars."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import wait


def begin() -> None:
    """Prepare a process of the pool: it ignores Ctrl-C, and ends with its parent."""
    # A task has one core: with more threads of polars, tasks would compete. polars is not imported yet.
    os.environ["POLARS_MAX_THREADS"] = "1"
    os.environ.pop("_RJEM_MALLOC_CONF", None)  # of the driver: here speed counts more than memory
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
