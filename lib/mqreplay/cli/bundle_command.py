"""The options of `mqreplay bundle`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from mqreplay.cli.arguments import with_examples

DESCRIPTION = (
    "Write a recording to one file to share. It has the files that nightly reads, and no body of a message. With "
    "--redact, names, addresses and keys are replaced by others that sort alike, so that the bundle replays to the "
    "same findings."
)
EXAMPLES = (
    "mqreplay bundle recordings/night --redact --out night.tar.xz",
    "mqreplay bundle recordings/night --redact --out night.tar.xz --mapping names.json",
)


def add(commands: Any) -> None:
    """Add the command, with its options."""
    text = "write a recording to one file to share, with names replaced if asked"
    command = commands.add_parser("bundle", help=text, description=DESCRIPTION, **with_examples(*EXAMPLES))
    command.add_argument("recording", metavar="RECORDING", help="folder of a recording")
    command.add_argument("--out", required=True, metavar="FILE", help="a new file, .tar.xz or .tar.gz")
    command.add_argument("--redact", action="store_true", help="replace names, addresses, tags and keys")
    command.add_argument("--mapping", metavar="FILE", help="new file for the names and their replacements")
    command.add_argument("--json", action="store_true", help="print what came of it as JSON")


def run(args: argparse.Namespace) -> None:
    """Write the bundle."""
    from mqreplay.record.bundle.bundle_command import bundle

    options = {"is_redacted": args.redact, "mapping": args.mapping, "as_json": args.json}
    bundle(args.recording, args.out, sys.stdout, **options)
