"""Ctrl-C and SIGTERM: the first one ends the run in order, the second one at once; one line, no traceback.

PySpark's own handler of Ctrl-C asks Java to cancel the jobs in the thread that waits for Java's answer. That fails,
loses the interrupt and prints a traceback. Here another thread asks.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

CANCEL_EVERY_S = 0.5
STOPS = (signal.SIGINT, signal.SIGTERM)
_received: list[int] = []
_handled: list[signal.Signals] = []
_asked: list[Callable[[], None]] = []
_left_behind: list[threading.Thread] = []


def handle_stops() -> None:
    """Make the signals raise KeyboardInterrupt. Call it in the main thread of a process of our own."""
    # Shells start background jobs with Ctrl-C ignored; keep that.
    _handled[:] = [number for number in STOPS if signal.getsignal(number) is not signal.SIG_IGN]
    handle_stops_again()


def handle_stops_again() -> None:
    """Take Ctrl-C back from PySpark, which takes it with each new session, if ``handle_stops`` was called before."""
    if threading.current_thread() is threading.main_thread():
        for number in _handled:
            signal.signal(number, _interrupt)


@contextmanager
def stops_ask(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop``, which must not raise, at the first signal in the block, instead of raising KeyboardInterrupt."""
    _asked.append(stop)
    try:
        yield
    finally:
        _asked.pop()


def leave_at_once() -> None:
    """Let a signal end the process at once from now on: the process is already ending."""
    for number in _handled:
        signal.signal(number, _leave)


def leave_behind(thread: threading.Thread) -> None:
    """Note that a thread may never return from a library, so that ``end_process`` does not wake it."""
    _left_behind.append(thread)


def end_process(status: int) -> None:
    """End this process now if a thread is left behind: Python's own end wakes it, and a library in Rust then aborts."""
    if any(thread.is_alive() for thread in _left_behind):
        atexit._run_exitfuncs()  # temporary files, and the processes of a pool
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(status)


def stopped_by() -> int | None:
    """Return the signal that came first; None if none came."""
    return _received[0] if _received else None


def forget_stops() -> None:
    """Count signals anew: in a shell, Ctrl-C ends one query and not the process."""
    _received.clear()


def _interrupt(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    if len(_received) > 1:
        os.write(2, b"mqreplay: stopped at once; the next run continues where this one ended\n")
        os._exit(128 + number)
    if _asked:
        _asked[-1]()
        return
    threading.Thread(target=_cancel_jobs, daemon=True).start()
    raise KeyboardInterrupt


def _cancel_jobs() -> None:
    """Cancel Spark's jobs, and those that begin later: threads that wait for them must end before the process can."""
    pyspark = sys.modules.get("pyspark")
    context = None if pyspark is None else pyspark.SparkContext._active_spark_context
    if context is not None:
        with suppress(Exception):  # Java may have ended
            while stopped_by() is not None:
                context.cancelAllJobs()
                time.sleep(CANCEL_EVERY_S)


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(128 + number)
