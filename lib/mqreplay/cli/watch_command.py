"""`mqreplay nightly --watch`: its options, and its output: a line for each change of a finding, one for each round."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqreplay.errors import InputError
from mqreplay.language.language import language
from mqreplay.printable import json_text, printable

if TYPE_CHECKING:
    from mqreplay.cli.notify import Notifier
    from mqreplay.findings.opened import Change
    from mqreplay.night.watch import ClusterRound, RoundDone
    from mqreplay.settings import Settings


def add(command: argparse.ArgumentParser) -> None:
    """Add the options to the command."""
    command.add_argument(
        "--watch",
        action="store_true",
        help="run until stopped: judge the last minutes of a growing recording, and run the night after midnight",
    )
    command.add_argument("--every", metavar="TIME", help="with --watch: interval of the rounds, 10s to 10m (60s)")
    command.add_argument(
        "--metrics-port",
        type=int,
        metavar="PORT",
        help="with --watch: answer Prometheus at http://127.0.0.1:PORT/metrics",
    )


def run(args: argparse.Namespace, settings: Settings, notifier: Notifier) -> None:
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
    if args.json:
        show = print_json
    else:
        from mqreplay.cli.watch_lines import Printer  # rich: only this command prints with it

        show = Printer(language(settings.report.language)).print
    publish = _publisher(args)

    def tell_all(done: RoundDone) -> None:
        show(done)
        notifier.of_round(done)
        if publish is not None:
            publish(done)

    watch(
        args.warehouse,
        settings,
        tell_all,
        _note,
        recordings=args.recordings,
        cluster=args.cluster,
        every_s=every_s,
        measures_lag=publish is not None,
    )


def _publisher(args: argparse.Namespace) -> Callable[[RoundDone], None] | None:
    """Return what publishes the figures of a round: by --metrics-port, --metrics or both; None without them."""
    if args.metrics_port is None and args.metrics is None:
        return None
    from mqreplay.night.metrics import Figures, metrics_file, serve_metrics, write_metrics

    path, figures = None if args.metrics is None else metrics_file(args.metrics), Figures()
    if args.metrics_port is not None:
        serve_metrics(figures, args.metrics_port)

    def publish(done: RoundDone) -> None:
        figures.take_round(done)
        if path is not None:
            write_metrics(path, figures)

    return publish


def print_json(done: RoundDone) -> None:
    """Print each change and the round as one JSON object a line."""
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
    from mqreplay.findings.shape import PLACE  # polars

    finding = change.finding
    names = ("finding_id", "kind", "severity", *PLACE, "opened_ts", "last_seen_ts", "closed_ts", "closed_reason")
    values = {name: getattr(finding, name) for name in (*names, "summary", "advice")}
    plain = {name: v.isoformat() if isinstance(v, dt.datetime) else v for name, v in values.items()}
    if change.what == "opened":
        issues = one.known_issues.get(finding.finding_id, ())
        names = ("issue", "url", "title", "component", "versions", "mended_in", "advice")
        plain["known_issues"] = [{name: issue[name] for name in names} for issue in issues]
    return {"event": change.what, "ts": one.recorded_until.isoformat(), "cluster": one.cluster, **plain}


def _note(text: str) -> None:
    print(f"mqreplay: {printable(text)}", file=sys.stderr, flush=True)
