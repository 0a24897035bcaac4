"""Failures of the machine, such as a full disk: the words of their errors, what happened, and what to do.

Standard library only, and loaded before the run: it must work on a full disk and with too many open files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

DEEPEST = 30  # causes of causes


class Failure(NamedTuple):
    """What happened and what to do about it, for errors whose text has ``words``."""

    words: str
    happened: str
    do: str


MACHINE = (
    Failure(
        r"No space left on device|Disk quota exceeded",
        "the disk is full",
        "free some space in {places} and run it again",
    ),
    Failure(
        r"Too many open files",
        "too many files are open",
        "raise the limit with `ulimit -n 65536` and run it again",
    ),
    Failure(
        r"Read-only file system",
        "the file system cannot be written",
        "make {places} writable and run it again",
    ),
    Failure(
        r"Input/output error",
        "the disk reports an error",
        "find the cause with `dmesg`, and run it again",
    ),
    Failure(
        r"unable to create (new )?native thread|can't start new thread",
        "no more threads can be started",
        "raise the limit with `ulimit -u` and run it again",
    ),
    Failure(
        r"OutOfMemoryError|Java heap space|GC overhead limit|Cannot allocate memory|MemoryError|"
        r"insufficient memory for the Java Runtime",
        "memory is short",
        "set driver_memory under [spark] in a file for --conf (with spark-submit: its --driver-memory) to what the "
        "machine has, and run it again",
    ),
    Failure(
        r"Python worker exited unexpectedly|Python worker failed to connect back|"
        r"BrokenProcessPool|process pool was terminated abruptly",
        "a Python worker was killed",
        "see whether memory was short (`dmesg` names a process that was killed), and run it again",
    ),
)


def is_machine_failure(error: BaseException) -> bool:
    """Return whether the error, or a cause of it in Python, is a failure of the machine.

    >>> is_machine_failure(OSError(28, "No space left on device")), is_machine_failure(KeyError("kind"))
    (True, False)
    """
    return any(re.search(failure.words, described(cause)) for cause in error_chain(error) for failure in MACHINE)


def error_chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes, down to the innermost one."""
    seen: set[int] = set()
    now: BaseException | None = error
    while now is not None and id(now) not in seen and len(seen) < DEEPEST:
        seen.add(id(now))
        yield now
        now = now.__cause__ or (None if now.__suppress_context__ else now.__context__)


def described(error: BaseException) -> str:
    """Return the error's class and text.

    >>> described(ValueError("no date"))
    'ValueError: no date'
    """
    try:
        text = str(error)
    except Exception:  # a Java error asks Java for its text
        text = "no text: Java has ended"
    return f"{type(error).__name__}: {text}"
