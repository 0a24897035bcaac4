"""The entry of every job under spark-submit: the command line's options, with --recording in place of a bare folder."""

from __future__ import annotations

import argparse
import sys

from mqreplay.cli import main as command_line


def main(step: str, argv: list[str] | None = None) -> int:
    """Runs ``step`` with the options of spark-submit's application; gives the exit status."""
    parser = argparse.ArgumentParser(prog=f"jobs/{step}.py", add_help=False, allow_abbrev=False)
    parser.add_argument("--recording", action="append", default=[])
    given, rest = parser.parse_known_args(sys.argv[1:] if argv is None else argv)
    return command_line([step, *given.recording, *rest])
