"""The entry of every job under spark-submit: the command line's options, with --recording in place of a bare folder."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TextIO

from mqreplay.cli.command_line import main as command_line


def main(step: str, argv: list[str] | None = None) -> int:
    """Runs ``step`` with the options of spark-submit's application; gives the exit status."""
    parser = argparse.ArgumentParser(prog=f"jobs/{step}.py", add_help=False, allow_abbrev=False)
    parser.add_argument("--recording", action="append", default=[])
    given, rest = parser.parse_known_args(sys.argv[1:] if argv is None else argv)
    sys.stderr = _own_stderr()
    return command_line([step, *given.recording, *rest], own_process=True)


def _own_stderr() -> TextIO:
    """spark-submit (PythonRunner) joins a program's stderr to its stdout; progress would stand among the results.

    The JVM's own stderr is then the parent's, which Linux shows under /proc.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ and os.path.sameopenfile(1, 2):
        try:
            return open(f"/proc/{os.getppid()}/fd/2", "w", encoding="utf-8", buffering=1)
        except OSError:
            return sys.stderr
    return sys.stderr
