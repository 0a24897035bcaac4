"""`mqreplay at`, `compare` and `ready`: a cluster at an instant, between two, on two days, and before a restart."""

from __future__ import annotations

import argparse

from mqreplay.cli.arguments import add_cluster, add_json, add_lang, add_tables, settings_of, words_of
from mqreplay.cli.command import DONE, FAILED, Command
from mqreplay.language.language import language
from mqreplay.words.printable import json_text, plain_value


def add_at(command: argparse.ArgumentParser) -> None:
    """Add the options of at."""
    command.add_argument("time", metavar="TIME", help="an instant in UTC: 02:51:30 or 2026-11-21T02:51:30")
    add_tables(command)
    command.add_argument("--to", metavar="TIME", help="show what changed from TIME to this instant")
    command.add_argument("--group", metavar="NAME", help="only this consumer group, with its members and queues")
    command.add_argument("--broker", metavar="NAME", help="only this broker and its queues")
    add_cluster(command)
    add_lang(command)
    add_json(command)


def run_at(args: argparse.Namespace) -> None:
    """Print the state, or the changes."""
    from mqreplay.answers.changes import changes_between
    from mqreplay.answers.state import state_at
    from mqreplay.cli.page_line import print_page
    from mqreplay.lake.row_filter import plain_rows
    from mqreplay.lake.warehouse import Warehouse
    from mqreplay.moment.instant import recorded_around
    from mqreplay.terminal.moment import print_changes, print_state

    night, at = recorded_around(Warehouse(args.warehouse), args.cluster, args.time, "TIME")
    words = words_of(args)
    shown = None if args.json else words
    if args.to is None:
        state = state_at(night, at, args.group, args.broker, shown)
        if args.json:
            print(json_text(state.as_plain(), indent=1, default=plain_value))
            return
        print_state(state, args.group, words)
    else:
        at, until = night.span(args.time, args.to, "TIME", "--to")
        changes = changes_between(night, at, until, args.group, args.broker, shown)
        if args.json:
            span = {"cluster": night.cluster, "from": plain_value(at), "to": plain_value(until)}
            print(json_text({**span, "changes": plain_rows(changes)}, indent=1, default=plain_value))
            return
        print_changes(night.cluster, at, until, changes, words)
    print_page(args.warehouse, night.cluster, group=args.group, broker=args.broker, at=at, words=words)


def add_compare(command: argparse.ArgumentParser) -> None:
    """Add the options of compare."""
    command.add_argument("before", metavar="DAY", help="the earlier day, in UTC: 2026-11-20")
    command.add_argument("after", metavar="DAY", help="the later day")
    add_tables(command)
    add_cluster(command)
    add_lang(command)
    add_json(command)


def run_compare(args: argparse.Namespace) -> None:
    """Print the comparison."""
    from mqreplay.answers.compare import compare_days
    from mqreplay.cli.page_line import print_page
    from mqreplay.lake.warehouse import Warehouse
    from mqreplay.moment.instant import recorded
    from mqreplay.terminal.moment import print_comparison

    night = recorded(Warehouse(args.warehouse), args.cluster)
    comparison = compare_days(night, args.before, args.after)
    if args.json:
        print(json_text(comparison.as_plain(), indent=1, default=str))
    else:
        words = words_of(args)
        print_comparison(comparison, words)
        print_page(args.warehouse, comparison.cluster, words=words)


def add_ready(command: argparse.ArgumentParser) -> None:
    """Add the options of ready."""
    command.add_argument("broker", metavar="BROKER", help="the name of the broker, as broker-a")
    add_tables(command)
    command.add_argument("--id", type=int, default=0, metavar="N", help="its broker id; 0, the master, by default")
    command.add_argument("--at", metavar="TIME", help="an instant in UTC, as 02:45, in place of the last recorded one")
    add_cluster(command)
    add_lang(command)
    add_json(command)


def run_ready(args: argparse.Namespace) -> int:
    """Print the answer; return the exit status."""
    from mqreplay.answers.ready import required_readiness
    from mqreplay.cli.page_line import print_page
    from mqreplay.lake.warehouse import Warehouse
    from mqreplay.moment.instant import recorded_around
    from mqreplay.terminal.moment import print_readiness

    night, at = recorded_around(Warehouse(args.warehouse), args.cluster, args.at, "--at")
    settings = settings_of(args)
    ready = required_readiness(night, args.broker, args.id, at, settings)
    if args.json:
        print(json_text(ready.as_plain(), indent=1, default=plain_value))
    else:
        words = language(settings.report.language)
        print_readiness(ready, words)
        print_page(args.warehouse, night.cluster, broker=args.broker, at=at, words=words)
    return DONE if ready.answer == "yes" else FAILED


COMMANDS = (
    Command("at", add_at, run_at, needs_tables=True),
    Command("compare", add_compare, run_compare, needs_tables=True),
    Command("ready", add_ready, run_ready, needs_tables=True),
)
