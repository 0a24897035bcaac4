"""`mqreplay mute`: no messages about some findings, for a while."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mqreplay.cli.arguments import add_cluster, add_warehouse
from mqreplay.cli.command import Command
from mqreplay.words.errors import InputError

if TYPE_CHECKING:
    from mqreplay.answers.mutes import Mute
    from mqreplay.lake.warehouse import Warehouse

PATTERNS = {"kind": "kind", "group": "consumer_group", "topic": "topic", "broker": "broker_name"}
LONGEST = dt.timedelta(days=366)


def add(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    text = "only this finding: its finding_id, or enough of its beginning"
    command.add_argument("finding", nargs="?", metavar="FINDING", help=text)
    for name in PATTERNS:
        command.add_argument(f"--{name}", metavar="NAME", help=f"only of this {name}; a pattern such as 'batch-*'")
    add_warehouse(command)
    add_cluster(command, "only of this cluster (default: all of the warehouse)")
    command.add_argument("--for", dest="length", metavar="TIME", help="how long, as 30m, 8h or 3d (24h)")
    command.add_argument("--until", metavar="TIME", help="until an instant in UTC, as 08:00 or 2026-11-27T08:00")
    command.add_argument("--reason", metavar="TEXT", help="why; everybody who asks sees it")
    command.add_argument("--list", action="store_true", help="print what is muted now")
    command.add_argument("--end", metavar="ID", help="end this mute now")


def run(args: argparse.Namespace) -> None:
    """Note a mute, end one, or list them."""
    from mqreplay.lake.local_folder import require_warehouse

    require_warehouse(args.warehouse)
    from mqreplay.lake.warehouse import Warehouse

    warehouse = Warehouse(args.warehouse)
    clusters = _clusters(warehouse, args.cluster)
    if args.list:
        _print_all(warehouse, clusters)
    elif args.end is not None:
        _end(warehouse, clusters, args.end)
    else:
        _begin(warehouse, clusters, args)


def _begin(warehouse: Warehouse, clusters: list[str], args: argparse.Namespace) -> None:
    from mqreplay.answers.findings import named_finding
    from mqreplay.answers.mutes import new_mute, read_mutes, write_mutes
    from mqreplay.words.printable import printable

    if not args.reason or not args.reason.strip():
        raise InputError("say why with --reason: whoever is on call next wants to know")
    now = dt.datetime.now(dt.UTC)
    until = _until(args, now)
    wanted = {column: getattr(args, name) for name, column in PATTERNS.items()}
    if args.finding is not None:
        if any(wanted.values()):
            raise InputError("name a finding, or a --kind, --group, --topic or --broker; not both")
        finding, _ = named_finding(warehouse, args.finding, args.cluster)
        clusters, wanted = [finding["cluster"]], {"finding_id": finding["finding_id"]}
    elif not any(wanted.values()):
        raise InputError("nothing is muted; name a finding, or a --kind, --group, --topic or --broker")
    else:
        _check_names(warehouse, wanted)
    mute = new_mute(wanted, now, until, args.reason.strip())
    for cluster in clusters:
        known = [one for one in read_mutes(warehouse, cluster) if now - one.until_ts < LONGEST]
        write_mutes(warehouse, cluster, [*known, mute])
        print(printable(f"{cluster}: {_words(mute)}"))


def _end(warehouse: Warehouse, clusters: list[str], mute_id: str) -> None:
    from dataclasses import replace

    from mqreplay.answers.mutes import read_mutes, write_mutes
    from mqreplay.words.printable import printable

    now = dt.datetime.now(dt.UTC)
    ended = 0
    for cluster in clusters:
        known = read_mutes(warehouse, cluster)
        after = [replace(one, until_ts=now) if one.mute_id == mute_id and one.holds(now) else one for one in known]
        if after != known:
            write_mutes(warehouse, cluster, after)
            print(printable(f"{cluster}: {mute_id} has ended"))
            ended += 1
    if not ended:
        raise InputError(f"nothing is muted by {mute_id}; `mqreplay mute --list` shows what is")


def _print_all(warehouse: Warehouse, clusters: list[str]) -> None:
    from mqreplay.answers.mutes import read_mutes
    from mqreplay.words.printable import printable

    now = dt.datetime.now(dt.UTC)
    lines = [
        f"{cluster}: {_words(one)}" for cluster in clusters for one in read_mutes(warehouse, cluster) if one.holds(now)
    ]
    print(printable("Nothing is muted.") if not lines else "\n".join(map(printable, lines)))


def _words(mute: Mute) -> str:
    """Return a mute in one line."""
    names = {"finding": (mute.finding_id or "")[:8] or None}
    names |= {name: getattr(mute, column) for name, column in PATTERNS.items()}
    what = " ".join(f"{name} {value}" for name, value in names.items() if value is not None)
    return f"{mute.mute_id}  {what}  until {mute.until_ts:%Y-%m-%d %H:%M} UTC  by {mute.by_user}: {mute.reason}"


def _until(args: argparse.Namespace, now: dt.datetime) -> dt.datetime:
    from mqreplay.answers.findings import instant
    from mqreplay.recorder.network.options import seconds_of

    if args.until is not None and args.length is not None:
        raise InputError("give --for or --until, not both")
    next_day = now + dt.timedelta(days=1)  # a time without a day is the next one
    lasting = dt.timedelta(seconds=seconds_of(args.length or "24h", "--for"))
    until = instant(args.until, "--until", next_day) or now + lasting
    if until <= now:
        raise InputError(f"--until {args.until!r} is over")
    if until - now > LONGEST:
        raise InputError("a mute lasts a year at most: it would hide what nobody remembers")
    return until


def _clusters(warehouse: Warehouse, cluster: str | None) -> list[str]:
    from mqreplay.answers.findings import clusters_of

    found = sorted(clusters_of(warehouse))
    if cluster is not None and cluster not in found:
        raise InputError(f"the warehouse has no cluster {cluster}; it has {', '.join(found)}")
    return found if cluster is None else [cluster]


def _check_names(warehouse: Warehouse, wanted: Mapping[str, str | None]) -> None:
    """Raise InputError for a kind that does not exist; note another unknown name: it may be recorded later."""
    from mqreplay.answers.findings import matching_names
    from mqreplay.words.printable import printable

    for column, pattern in wanted.items():
        try:
            matching_names(warehouse, warehouse.read("gold.finding"), column, [pattern] if pattern else [])
        except InputError as error:
            if column == "kind":
                raise
            print(printable(f"mqreplay: note: {error}"), file=sys.stderr)


COMMAND = Command("mute", add, run)
