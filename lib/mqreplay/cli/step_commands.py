"""The commands that run a night or one of its steps: their options, and what they start."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from mqreplay.cli.arguments import (
    add_catalog,
    add_conf,
    add_engine,
    add_json,
    add_lang,
    add_warehouse,
    catalog_of,
    choice_of_engine,
    settings_of,
)
from mqreplay.cli.command import BAD_INPUT, CRASHED, DONE, FAILED, Command
from mqreplay.cli.notify import Notifier
from mqreplay.language.language import language
from mqreplay.machine.crash import crash_line
from mqreplay.words.errors import InputError
from mqreplay.words.printable import json_text, printable
from mqreplay.words.severity import SEVERITIES

if TYPE_CHECKING:
    from mqreplay.answers.figures import Sample
    from mqreplay.night.failures import Failure
    from mqreplay.settings import Settings

STEPS = ("nightly", "ingest", "replay", "validate", "report")
NEED_WAREHOUSE = ("replay", "validate", "report")
NOTIFY = (
    "send a message when a finding opens, gets worse or closes: an address of apprise, alertmanager://HOST:9093, "
    "or @FILE with one a line; repeatable (default: those of [notify])"
)
RECORDING = "folder of a recording, or a pattern such as 'recordings/*/2026-11-24'; without any, those of [nightly]"


def _add(name: str, command: argparse.ArgumentParser) -> None:
    """Add the options of a step, or of all."""
    if name in ("nightly", "ingest"):
        command.add_argument("recordings", nargs="*", metavar="RECORDING", help=RECORDING)
    add_warehouse(command)
    _options(command)
    if name == "nightly":
        _add_watch(command)
        command.add_argument("--notify", action="append", default=[], metavar="URL", help=NOTIFY)
        text = "write the figures of the run for Prometheus (node_exporter's textfile collector); it ends in .prom"
        command.add_argument("--metrics", metavar="FILE", help=text)
    add_catalog(command)


def _add_demo(command: argparse.ArgumentParser) -> None:
    # Not by the environment: the sample must not get into a warehouse of real nights.
    text = "folder of the tables (%(default)s)"
    command.add_argument("--warehouse", metavar="DIR", default="warehouse/demo", help=text)
    _options(command)


def _add_watch(command: argparse.ArgumentParser) -> None:
    text = "run until stopped: judge the last minutes of a growing recording, and run the night after midnight"
    command.add_argument("--watch", action="store_true", help=text)
    command.add_argument("--every", metavar="TIME", help="with --watch: interval of the rounds, 10s to 10m (60s)")
    text = "with --watch: answer Prometheus at http://127.0.0.1:PORT/metrics"
    command.add_argument("--metrics-port", type=int, metavar="PORT", help=text)


def _options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--cluster", metavar="NAME", help="name of the cluster, if the recording does not contain it")
    add_conf(command)
    add_json(command, "print the outcome as JSON")
    add_engine(command)
    add_lang(command)
    command.add_argument("--fail-on", choices=SEVERITIES, help="exit 1 if a finding of the night reaches it")


def run(args: argparse.Namespace) -> int:
    """Run a step, or all; print the outcome. Return the exit status.

    It is 1 for a failed expectation, or a finding of the night that reaches --fail-on. It is 2 or 4 if some recordings
    or clusters failed.
    """
    from mqreplay.lake.local_folder import require_warehouse
    from mqreplay.machine.places import conf_dir
    from mqreplay.night.nightly import run as run_night
    from mqreplay.terminal.outcome import print_outcome
    from mqreplay.terminal.progress import Progress

    is_demo = args.command == "demo"
    settings = settings_of(args, str(conf_dir() / "sample.toml") if is_demo else None)
    if getattr(args, "watch", False):
        from mqreplay.cli.watch_command import run_watch

        args.recordings = _recordings(args, settings)
        run_watch(args, settings, Notifier(args, settings))
        return DONE
    if getattr(args, "every", None) is not None:
        raise InputError("--every belongs to --watch")
    if getattr(args, "metrics_port", None) is not None:
        raise InputError("--metrics-port belongs to --watch; use --metrics FILE")
    if args.command in NEED_WAREHOUSE:
        require_warehouse(args.warehouse)
    step = "nightly" if is_demo else args.command
    failed: list[Failure] = []
    catalog = catalog_of(args)
    choice = choice_of_engine(args, settings)
    notifier = Notifier(args, settings) if args.command == "nightly" else None
    with Progress(sys.stderr, choice.note) as progress:
        outcomes = run_night(
            step,
            args.warehouse,
            settings,
            progress,
            recordings=_recordings(args, settings),
            cluster=args.cluster,
            engine=choice.engine,
            catalog=catalog,
            failed=failed,
            measured=_measured(args),
        )
    if not outcomes and len(failed) == 1:
        raise failed[0].error
    reasons = [_reason(each, args) for each in failed]
    if args.json:
        listed = [each.as_dict(reason) for each, reason in zip(failed, reasons, strict=True)]
        print(json_text({"clusters": [o.as_dict() for o in outcomes], "failed": listed}, indent=1))
    else:
        print_outcome(outcomes, step, args.warehouse, language(settings.report.language))
    for each, reason in zip(failed, reasons, strict=True):
        print(printable(f"mqreplay: {each.what} {each.name} failed: {reason}"), file=sys.stderr)
    if notifier is not None:
        notifier.of_night(outcomes)
    if failed:
        return BAD_INPUT if all(each.is_input for each in failed) else CRASHED
    broken = any(o.failed_expectations for o in outcomes) and step in ("nightly", "validate")
    if broken:
        return FAILED
    return FAILED if any(outcome.reaches(args.fail_on) for outcome in outcomes) else DONE


def _measured(args: argparse.Namespace) -> Callable[[list[Sample]], None] | None:
    """Return what writes the file of --metrics; None without it. Raises InputError if there cannot be one."""
    if getattr(args, "metrics", None) is None:
        return None
    from mqreplay.notices.metrics import Figures, metrics_file, write_metrics

    path = metrics_file(args.metrics)
    return lambda samples: write_metrics(path, Figures(samples))


def _recordings(args: argparse.Namespace, settings: Settings) -> list[str]:
    """Return the recordings of the command, or those of the settings. Raises InputError if there are none."""
    from mqreplay.machine.places import sample_dir

    if args.command == "demo":
        return [str(sample_dir() / "orders-4.9.7")]
    if args.command not in ("nightly", "ingest"):
        return []
    found: list[str] = args.recordings or settings.nightly.recordings
    if not found:
        raise InputError(
            f"no recording is given: name one or more, as in mqreplay {args.command} RECORDING --warehouse DIR, "
            "or set recordings under [nightly] in a file for --conf"
        )
    return found


def _reason(failure: Failure, args: argparse.Namespace) -> str:
    """Return why it failed, in one line."""
    if failure.is_expected:
        return str(failure.error)
    return crash_line(failure.error, args.arguments, args.warehouse)


COMMANDS = (
    *(Command(name, partial(_add, name), run) for name in STEPS),
    Command("demo", _add_demo, run),
)
