"""`mqreplay doctor`: its options, and what they start."""

from __future__ import annotations

import argparse
import sys

from mqreplay.cli.arguments import add_conf, add_json, settings_of
from mqreplay.cli.command import BAD_INPUT, DONE, FAILED, Command


def add(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("files", nargs="*", metavar="FILE", help="files of a recording; none: this machine")
    add_json(command, "print the result as JSON")
    add_conf(command)


def run(args: argparse.Namespace) -> int:
    """Examine the files, or the machine; return the exit status."""
    settings = settings_of(args)
    if args.files:
        from mqreplay.cli.doctor.files import examine_files

        return DONE if examine_files(args.files, sys.stdout, args.json) else FAILED
    from mqreplay.cli.doctor.machine import examine_machine

    return DONE if examine_machine(settings, sys.stdout, args.json) else BAD_INPUT


COMMAND = Command("doctor", add, run)
