"""`mqreplay mute` and `mqreplay acknowledge`: no messages about some findings, for a while."""

from __future__ import annotations

import argparse
import datetime as dt
from typing import TYPE_CHECKING, Any

from mqreplay.cli.arguments import add_warehouse, with_examples
from mqreplay.errors import InputError

if TYPE_CHECKING:
    from mqreplay.lake.warehouse import Warehouse
    from mqreplay.night.notify.mutes import Mute

MUTE = (
    "Send no messages about findings of a kind, group, topic or broker until a time, and let them not count for "
    "--fail-on. They are still found and shown. --list shows what is muted, --end ends it."
)
ACKNOWLEDGE = "The same for one finding: somebody works on it. Messages go on afterwards, if it is still open."
MUTE_EXAMPLES = with_examples(
    "mqreplay mute --kind lag_grows --group 'batch-*' --for 8h --reason 'monthly load' --warehouse warehouse/night",
    "mqreplay mute --list --warehouse warehouse/night",
    "mqreplay mute --end 5f21c0de --warehouse warehouse/night",
)
ACKNOWLEDGE_EXAMPLES = with_examples(
    "mqreplay acknowledge 701391d9 --for 24h --reason 'OPS-1234, disk is ordered' --warehouse warehouse/night",
)
PATTERNS = {"kind": "kind", "group": "consumer_group", "topic": "topic", "broker": "broker_name"}
LONGEST = dt.timedelta(days=366)


def add(commands: Any) -> None:
    """Add both commands."""
    text = "send no messages about some findings for a while, and say why"
    mute = commands.add_parser("mute", help=text, description=MUTE, **MUTE_EXAMPLES)
    for name in PATTERNS:
        mute.add_argument(f"--{name}", metavar="NAME", help=f"only of this {name}; a pattern such as 'batch-*'")
    _add_both(mute)
    mute.add_argument("--list", action="store_true", help="print what is muted now")
    mute.add_argument("--end", metavar="ID", help="end this mute or acknowledgement now")
    text = "send no messages about one finding for a while, and say why"
    acknowledge = commands.add_parser("acknowledge", help=text, description=ACKNOWLEDGE, **ACKNOWLEDGE_EXAMPLES)
    acknowledge.add_argument("finding", metavar="FINDING", help="its finding_id, or enough of its beginning")
    _add_both(acknowledge)


def _add_both(command: argparse.ArgumentParser) -> None:
    add_warehouse(command)
    command.add_argument("--cluster", metavar="NAME", help="only of this cluster (default: all of the warehouse)")
    command.add_argument("--for", dest="length", metavar="TIME", help="how long, as 30m, 8h or 3d (24h)")
    command.add_argument("--until", metavar="TIME", help="until an instant in UTC, as 2026-11-27T08:00")
    command.add_argument("--reason", metavar="TEXT", help="why; everybody who asks sees it")


def run(args: argparse.Namespace) -> None:
    """Note a mute, end one, or list them."""
    from mqreplay.lake.existing import require_warehouse

    require_warehouse(args.warehouse)
    from mqreplay.lake.warehouse import Warehouse

    warehouse = Warehouse(args.warehouse)
    clusters = _clusters(warehouse, args.cluster)
    if args.command == "mute" and args.list:
        _print_all(warehouse, clusters)
    elif args.command == "mute" and args.end is not None:
        _end(warehouse, clusters, args.end)
    else:
        _begin(warehouse, clusters, args)


def _begin(warehouse: Warehouse, clusters: list[str], args: argparse.Namespace) -> None:
    from mqreplay.cli.named_finding import named_finding
    from mqreplay.night.notify.mutes import new_mute, read_mutes, write_mutes
    from mqreplay.printable import printable

    if not args.reason or not args.reason.strip():
        raise InputError("say why with --reason: whoever is on call next wants to know")
    now = dt.datetime.now(dt.UTC)
    until = _until(args, now)
    if args.command == "acknowledge":
        finding, _ = named_finding(warehouse, args.finding, args.cluster)
        clusters = [finding["cluster"]]
        wanted: dict[str, str | None] = {"finding_id": finding["finding_id"]}
    else:
        wanted = {column: getattr(args, name) for name, column in PATTERNS.items()}
        if not any(wanted.values()):
            raise InputError("nothing is muted; name a --kind, --group, --topic or --broker")
        _require_kind(wanted["kind"])
    mute = new_mute(wanted, now, until, args.reason.strip())
    for cluster in clusters:
        known = [one for one in read_mutes(warehouse, cluster) if now - one.until_ts < LONGEST]
        write_mutes(warehouse, cluster, [*known, mute])
        print(printable(f"{cluster}: {_words(mute)}"))


def _end(warehouse: Warehouse, clusters: list[str], mute_id: str) -> None:
    from dataclasses import replace

    from mqreplay.night.notify.mutes import read_mutes, write_mutes
    from mqreplay.printable import printable

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
    from mqreplay.night.notify.mutes import read_mutes
    from mqreplay.printable import printable

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
    from mqreplay.cli.findings_command import instant
    from mqreplay.record.network.options import seconds_of

    if args.until is not None and args.length is not None:
        raise InputError("give --for or --until, not both")
    until = instant(args.until, "--until") or now + dt.timedelta(seconds=seconds_of(args.length or "24h", "--for"))
    if until <= now:
        raise InputError(f"--until {args.until!r} is over")
    if until - now > LONGEST:
        raise InputError("a mute lasts a year at most: it would hide what nobody remembers")
    return until


def _clusters(warehouse: Warehouse, cluster: str | None) -> list[str]:
    from mqreplay.cli.finding_names import clusters_of

    found = sorted(clusters_of(warehouse))
    if cluster is not None and cluster not in found:
        raise InputError(f"the warehouse has no cluster {cluster}; it has {', '.join(found)}")
    return found if cluster is None else [cluster]


def _require_kind(pattern: str | None) -> None:
    from difflib import get_close_matches
    from fnmatch import fnmatchcase

    from mqreplay.findings.every import KINDS

    if pattern is not None and not any(fnmatchcase(name, pattern) for name in KINDS):
        near = get_close_matches(pattern, KINDS, 1)
        raise InputError(f"there is no kind {pattern}{f'; did you mean {near[0]}?' if near else ''}")
