"""Progress on stderr. NO_COLOR is kept (by rich)."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import TextIO

from rich.text import Text

from mqreplay.terminal.pipe_console import PipeConsole
from mqreplay.words.printable import printable, without_secrets


class Progress:
    """Progress lines on stderr; on a terminal, a status line that also counts the seconds.

    ``note`` comes before the first line, so that a run that ends with an error at once prints the error alone.
    """

    def __init__(self, stream: TextIO, note: str = "") -> None:
        self._console = PipeConsole(file=_own_descriptor(stream), highlight=False, soft_wrap=True)
        self._status = self._console.status("starting") if stream.isatty() else None
        self._began, self._note = time.monotonic(), note
        self._lock = threading.Lock()

    def __enter__(self) -> Progress:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, what: str) -> None:
        """Print one line."""
        seconds, text = time.monotonic() - self._began, printable(without_secrets(what))
        # A run continues if nobody reads its progress.
        with self._lock, suppress(BrokenPipeError):
            note, self._note = self._note, ""
            for line in (note, text) if note else (text,):
                self._console.print(Text.assemble((f"{seconds:6.1f} s", "dim"), f"  {line}"))
            if self._status is not None:
                self._status.update(Text(text))


def _own_descriptor(stream: TextIO) -> TextIO:
    """Return the same stream by another descriptor: Java has that of stderr while it starts."""
    try:
        return os.fdopen(os.dup(stream.fileno()), "w", encoding="utf-8", errors="backslashreplace", buffering=1)
    except (OSError, ValueError):  # no file: a test's
        return stream
