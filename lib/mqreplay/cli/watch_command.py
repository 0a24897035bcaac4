"""`mqreplay nightly --watch`: its options, and its output: a line for each change of a finding, one for each round."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from mqreplay.errors import InputError
from mqreplay.printable import json_text, printable

if TYPE_CHECKING:
    from mqreplay.findings.opened import Change
    from mqreplay.night.watch import ClusterRound, RoundDone
    from mqreplay.settings import Settings

COLOURS = {"critical": "bold red", "warning": "yellow", "info": "cyan"}
PLACE = ("consumer_group", "topic", "broker_name", "broker_id", "queue_id", "client_id")


def add(command: argparse.ArgumentParser) -> None:
    """Add the options to the command."""
    command.add_argument(
        "--watch",
        action="store_true",
        help="run until stopped: judge the last minutes of a growing recording, and run the night after midnight",
    )
    command.add_argument("--every", metavar="TIME", help="with --watch: interval of the rounds, 10s to 10m (60s)")


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Watch until the process is stopped. Raises InputError for options that do not fit."""
    from mqreplay.night.watch import watch
    from mqreplay.record.network.options import seconds_of

    if args.engine == "spark":
        raise InputError("--watch keeps processes of this machine ready: use --engine local, or leave it out")
    if args.fail_on is not None:
        raise InputError("--fail-on needs a run that ends; leave it out with --watch")
    if args.catalog is not None:
        raise InputError("--catalog needs Spark: leave it out with --watch, and use mqreplay register")
    every_s = seconds_of(args.every or "60s", "--every")
    tell = _print_json if args.json else Printer().print
    watch(args.warehouse, settings, tell, _note, recordings=args.recordings, cluster=args.cluster, every_s=every_s)


class Printer:
    """Prints rounds as text."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)

    def print(self, done: RoundDone) -> None:
        """Print a line for each change, and one for the round."""
        for one in done.clusters:
            for change in one.changes:
                self._print_change(one, change)
        state = "; ".join(map(_state, done.clusters)) or "nothing was recorded in the last minutes"
        count = "1 line" if done.lines == 1 else f"{done.lines:,} lines"
        text = f"round {done.number}: {count} read in {done.seconds:.1f} s; {state}"
        self._console.print(Text(f"{_clock(done.ts)}  {printable(text)}", "dim"))
        for outcome in done.nights:
            self._console.print(Text(printable(f"{_clock(done.ts)}  night of {outcome.cluster}: {outcome.verdict}")))

    def _print_change(self, one: ClusterRound, change: Change) -> None:
        finding = change.finding
        place = "/".join(str(value) for value in finding.place if value is not None)
        text = finding.closed_reason if change.what == "closed" else finding.summary
        self._console.print(
            Text.assemble(
                (f"{_clock(one.recorded_until)}  ", "dim"),
                f"{change.what:17}",
                (f"{finding.severity:9}", COLOURS[finding.severity]),
                (f"{finding.kind}  ", "bold"),
                f"{printable(place)}  {printable(text)}",
            )
        )


def _state(one: ClusterRound) -> str:
    count = f"{one.open_findings} finding{'' if one.open_findings == 1 else 's'} open"
    until = f"silent since {_clock(one.recorded_until)}" if one.is_silent else f"{max(0.0, one.lag_s):.0f} s behind"
    return f"{one.cluster}: {count}, recording {until}"


def _print_json(done: RoundDone) -> None:
    for one in done.clusters:
        for change in one.changes:
            print(json_text(_change(one, change)), flush=True)
    clusters = [
        {
            "cluster": one.cluster,
            "open_findings": one.open_findings,
            "recorded_until": one.recorded_until.isoformat(),
            "lag_s": round(one.lag_s, 3),
            "is_silent": one.is_silent,
        }
        for one in done.clusters
    ]
    numbers = {"lines": done.lines, "bytes": done.bytes_read, "seconds": round(done.seconds, 3)}
    head = {"event": "round", "round": done.number, "ts": done.ts.isoformat()}
    print(json_text({**head, **numbers, "clusters": clusters}), flush=True)
    for outcome in done.nights:
        print(json_text({"event": "night", "ts": done.ts.isoformat(), **outcome.as_dict()}), flush=True)


def _change(one: ClusterRound, change: Change) -> dict[str, Any]:
    finding = change.finding
    names = ("finding_id", "kind", "severity", *PLACE, "opened_ts", "last_seen_ts", "closed_ts", "closed_reason")
    values = {name: getattr(finding, name) for name in (*names, "summary", "advice")}
    plain = {name: v.isoformat() if isinstance(v, dt.datetime) else v for name, v in values.items()}
    return {"event": change.what, "ts": one.recorded_until.isoformat(), "cluster": one.cluster, **plain}


def _clock(ts: dt.datetime) -> str:
    return f"{ts:%Y-%m-%d %H:%M:%S}"


def _note(text: str) -> None:
    print(f"mqreplay: {printable(text)}", file=sys.stderr, flush=True)
