"""A console whose output may be piped to a program that ends first, such as `head`."""

from __future__ import annotations

import errno
import os

from rich.console import Console


class PipeConsole(Console):
    """A console that raises BrokenPipeError if nobody reads it, as ``print`` does; the caller decides what it means."""

    def on_broken_pipe(self) -> None:
        """Raise the error: rich would discard stdout and end the process with status 1."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
