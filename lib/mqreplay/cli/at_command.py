"""`mqreplay at`: the state of a cluster at an instant, or what changed between two."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from mqreplay.cli.arguments import add_conf, add_warehouse, with_examples

if TYPE_CHECKING:
    from mqreplay.moment.state import State

DESCRIPTION = (
    "Show what was true at an instant of the night: brokers, members, owners of queues, committed offsets, ends, lag, "
    "locks, settings and open findings; with --to, what changed up to a second instant, and why. What the recording "
    "does not show is called unknown."
)
EXAMPLES = with_examples(
    "mqreplay at 02:51:30 --warehouse warehouse/night",
    "mqreplay at 02:51:30 --group order-group --warehouse warehouse/night",
    "mqreplay at 2026-11-21T02:51:30 --to 02:53 --broker broker-a --warehouse warehouse/night",
)


def add(commands: Any) -> None:
    """Add the command."""
    text = "show the state at an instant, or what changed between two"
    command = commands.add_parser("at", help=text, description=DESCRIPTION, **EXAMPLES)
    command.add_argument("time", metavar="TIME", help="an instant in UTC: 02:51:30 or 2026-11-21T02:51:30")
    add_warehouse(command)
    add_conf(command)
    command.add_argument("--to", metavar="TIME", help="show what changed from TIME to this instant")
    command.add_argument("--group", metavar="NAME", help="only this consumer group, with its members and queues")
    command.add_argument("--broker", metavar="NAME", help="only this broker and its queues")
    command.add_argument("--cluster", metavar="NAME", help="the cluster, where the warehouse has several")
    command.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> None:
    """Print the state, or the changes."""
    from mqreplay.lake.existing import require_warehouse

    require_warehouse(args.warehouse)
    from mqreplay.cli.moment_text import print_changes, print_state
    from mqreplay.cli.page_line import print_page
    from mqreplay.cli.terminal import note_interruption
    from mqreplay.errors import InputError
    from mqreplay.lake.plain_rows import plain_rows
    from mqreplay.lake.warehouse import Warehouse
    from mqreplay.moment.changes import changes_between
    from mqreplay.moment.instant import recorded
    from mqreplay.moment.state import state_at
    from mqreplay.printable import json_text, plain_value

    note_interruption(args.warehouse)
    night = recorded(Warehouse(args.warehouse), args.cluster)
    at = night.instant(args.time, "TIME")
    if args.to is None:
        state = state_at(night, at, args.group, args.broker)
        _require(state, args)
        if args.json:
            print(json_text(state.as_plain(), indent=1, default=plain_value))
        else:
            print_state(state, args.group)
            print_page(args.warehouse, night.cluster, group=args.group, broker=args.broker, at=at)
        return
    until = night.instant(args.to, "--to")
    if until < at:
        raise InputError(f"--to {args.to!r} is before {args.time!r}; give the earlier instant first")
    changes = changes_between(night, at, until, args.group, args.broker)
    if args.json:
        span = {"cluster": night.cluster, "from": plain_value(at), "to": plain_value(until)}
        print(json_text({**span, "changes": plain_rows(changes)}, indent=1, default=plain_value))
    else:
        print_changes(night.cluster, at, until, changes)
        print_page(args.warehouse, night.cluster, group=args.group, broker=args.broker, at=at)


def _require(state: State, args: argparse.Namespace) -> None:
    """Raise InputError if the group or broker is not known at the instant."""
    from mqreplay.errors import InputError

    if args.group is not None and state.groups.is_empty():
        raise InputError(f"nothing is known of the group {args.group} at {state.at:%Y-%m-%d %H:%M:%S} UTC")
    if args.broker is not None and state.brokers.is_empty() and state.queues.is_empty():
        raise InputError(f"nothing is known of the broker {args.broker} at {state.at:%Y-%m-%d %H:%M:%S} UTC")
