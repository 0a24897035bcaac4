"""`mqreplay nightly --watch`: a line for each change of a finding and one for each round, or JSON."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from collections.abc import Callable
from typing import Any

from rich.text import Text

from mqreplay.cli.notify import Notifier
from mqreplay.findings.opened import CLOSED_EVENT, ENDED_EVENT, FIRST_EVENTS, Change
from mqreplay.findings.shape import PLACE, place_text
from mqreplay.findings.texts import summary_of
from mqreplay.language.language import Language, language
from mqreplay.notices.metrics import Figures, metrics_file, serve_metrics, write_metrics
from mqreplay.notices.watch import ClusterRound, RoundDone, watch
from mqreplay.recorder.network.options import seconds_of
from mqreplay.report.next_step import issue_name
from mqreplay.settings import Settings
from mqreplay.terminal.console import COLOURS, padded, text_console
from mqreplay.terminal.estate import headline
from mqreplay.words.errors import InputError
from mqreplay.words.printable import json_text, printable
from mqreplay.words.quantity import counted
from mqreplay.words.time_span import time_span


def run_watch(args: argparse.Namespace, settings: Settings, notifier: Notifier) -> None:
    """Watch until the process is stopped. Raises InputError for options that do not fit."""
    if args.engine == "spark":
        raise InputError("--watch keeps processes of this machine ready: use --engine local, or leave it out")
    if args.fail_on is not None:
        raise InputError("--fail-on needs a run that ends; leave it out with --watch")
    if args.catalog is not None:
        raise InputError("--catalog needs Spark: leave it out with --watch, and use mqreplay tables --sql")
    every_s = seconds_of(args.every or "60s", "--every")
    show = print_json if args.json else Printer(language(settings.report.language)).print
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
    finding = change.finding
    names = ("finding_id", "kind", "severity", *PLACE, "opened_ts", "last_seen_ts", "closed_ts", "closed_reason")
    values = {name: getattr(finding, name) for name in (*names, "summary", "advice")}
    plain = {name: v.isoformat() if isinstance(v, dt.datetime) else v for name, v in values.items()}
    if change.what in FIRST_EVENTS:
        issues = one.known_issues.get(finding.finding_id, ())
        names = ("issue", "url", "title", "component", "versions", "mended_in", "advice")
        plain["known_issues"] = [{name: issue[name] for name in names} for issue in issues]
    return {"event": change.what, "ts": one.recorded_until.isoformat(), "cluster": one.cluster, **plain}


def _note(text: str) -> None:
    print(f"mqreplay: {printable(text)}", file=sys.stderr, flush=True)


class Printer:
    """Prints rounds as text."""

    def __init__(self, words: Language) -> None:
        self._words = words
        self._console = text_console(soft_wrap=True)

    def print(self, done: RoundDone) -> None:
        """Print a line for each change, and one for the round."""
        for one in done.clusters:
            for change in one.changes:
                self._print_change(one, change)
        words = self._words
        states = [_state(one, words) for one in done.clusters]
        state = "; ".join(states) or words.text("nothing was recorded in the last minutes")
        head = words.text(f"round {done.number}: {counted(done.lines, 'line')} read in {done.seconds:.1f} s")
        text = f"{head}; {state}"
        self._console.print(Text(f"{_clock(done.ts)}  {printable(text)}", "dim"))
        for outcome in done.nights:
            text = headline(outcome, words)
            night = words.filled("night of {cluster}: {verdict}", cluster=outcome.cluster, verdict=text)
            self._console.print(Text(printable(f"{_clock(done.ts)}  {night}")))

    def _print_change(self, one: ClusterRound, change: Change) -> None:
        finding, words = change.finding, self._words
        is_closed = change.what == CLOSED_EVENT
        text = words.text(finding.closed_reason or "") if is_closed else summary_of(finding.row, words)
        if change.what == ENDED_EVENT:
            text += f" ({words.text(time_span(finding.opened_ts, finding.last_seen_ts))})"
        issues = one.known_issues.get(finding.finding_id, ()) if change.what in FIRST_EVENTS else ()
        known = "".join(" " + words.text(f"Known issue: {issue_name(issue)}.") for issue in issues)
        self._console.print(
            Text.assemble(
                (f"{_clock(one.recorded_until)}  ", "dim"),
                padded(words.text(change.what), 17),
                (padded(words.text(finding.severity), 9), COLOURS[finding.severity]),
                (f"{printable(finding.finding_id[:8])}  ", "dim"),  # as `mqreplay explain` takes it
                (f"{finding.kind}  ", "bold"),
                f"{printable(place_text(finding.place))}  {printable(text)}{known}",
            )
        )


def _state(one: ClusterRound, words: Language) -> str:
    count = words.text(f"{counted(one.open_findings, 'finding')} open")
    until = f"silent since {_clock(one.recorded_until)}" if one.is_silent else f"{max(0.0, one.lag_s):.0f} s behind"
    return f"{one.cluster}: {count}, {words.text(f'recording {until}')}"


def _clock(ts: dt.datetime) -> str:
    return f"{ts:%Y-%m-%d %H:%M:%S}"
