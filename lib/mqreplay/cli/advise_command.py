"""`mqreplay advise`: settings that would have removed findings of a group."""

from __future__ import annotations

import argparse
import shlex

from mqreplay.cli.arguments import add_cluster, add_json, add_lang, add_tables, settings_of, words_of
from mqreplay.cli.command import Command
from mqreplay.words.printable import json_text


def add(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("group", metavar="GROUP", help="the consumer group")
    add_tables(command)
    command.add_argument("--day", metavar="DAY", help="the day of the findings; the last one without it")
    add_cluster(command)
    add_lang(command)
    add_json(command)


def run(args: argparse.Namespace) -> None:
    """Print the settings."""
    from mqreplay.cli.page_line import print_page
    from mqreplay.suppose.advise import advise
    from mqreplay.terminal.advice import print_advice

    words = words_of(args)
    shown = None if args.json else words
    advised = advise(args.warehouse, settings_of(args), args.group, args.day, args.cluster, shown)
    if args.json:
        print(json_text(advised.as_plain(), indent=1))
        return
    where = f" --cluster {shlex.quote(args.cluster)}" if args.cluster else ""
    print_advice(advised, f"{where} --warehouse {shlex.quote(args.warehouse)}", words)
    print_page(args.warehouse, advised.cluster, group=advised.group, words=words)


COMMAND = Command("advise", add, run, needs_tables=True)
