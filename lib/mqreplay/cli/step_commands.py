"""The commands that run a night or one of its steps: their options, and what they start."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqreplay.cli import notify, watch_command
from mqreplay.cli.arguments import (
    DEFAULT_ENGINE,
    add_conf,
    add_engine,
    add_lang,
    add_prefix,
    add_warehouse,
    choice_of_engine,
    with_examples,
)
from mqreplay.cli.exit_status import BAD_INPUT, CRASHED, DONE, FAILED
from mqreplay.crash import crash_line
from mqreplay.errors import InputError
from mqreplay.language.language import language
from mqreplay.printable import json_text, printable
from mqreplay.severity import SEVERITIES

if TYPE_CHECKING:
    from mqreplay.night.catalog import Catalog
    from mqreplay.night.failures import Failure
    from mqreplay.night.figures import Sample
    from mqreplay.settings import Settings

STEPS = {
    "nightly": "run all steps: ingest, replay, validate, report",
    "ingest": "read recordings into the silver tables; unchanged files are not read again",
    "replay": "judge all decisions and find problems: silver tables to gold tables",
    "validate": "run the contracts' expectations on the tables",
    "report": "make one HTML page for each cluster",
}
EXAMPLES = {
    "nightly": (
        "mqreplay nightly recordings/night --warehouse warehouse/night",
        "mqreplay nightly recordings/night --warehouse warehouse/night --fail-on critical --json",
        "mqreplay nightly recordings/night --warehouse warehouse/night --conf own.toml --catalog spark_catalog",
        "mqreplay nightly recordings/live --warehouse warehouse/live --watch",
        "mqreplay nightly 'recordings/*/2026-11-24' --warehouse warehouse/estate",
        "mqreplay nightly recordings/night --warehouse warehouse/night --notify @/etc/mqreplay/notify.urls",
    ),
    "ingest": ("mqreplay ingest recordings/night --warehouse warehouse/night",),
    "replay": ("mqreplay replay --warehouse warehouse/night",),
    "validate": ("mqreplay validate --warehouse warehouse/night",),
    "report": (
        "mqreplay report --warehouse warehouse/night",
        "mqreplay report --anonymise --warehouse warehouse/night",
    ),
}
NEED_WAREHOUSE = ("replay", "validate", "report")
RECORDING = "folder of a recording, or a pattern such as 'recordings/*/2026-11-24'; without any, those of [nightly]"


def add(commands: Any) -> None:
    """Add the commands, with their options."""
    for name, text in STEPS.items():
        command = commands.add_parser(name, help=text, description=text, **with_examples(*EXAMPLES[name]))
        if name in ("nightly", "ingest"):
            command.add_argument("recordings", nargs="*", metavar="RECORDING", help=RECORDING)
        add_warehouse(command)
        _options(command)
        if name == "nightly":
            watch_command.add(command)
            notify.add(command)
            text = "write the figures of the run for Prometheus (node_exporter's textfile collector); it ends in .prom"
            command.add_argument("--metrics", metavar="FILE", help=text)
        if name == "report":
            text = "make pages without names too, in report/anonymised of the warehouse: to share them"
            command.add_argument("--anonymise", action="store_true", help=text)
        command.add_argument(
            "--catalog",
            metavar="NAME",
            help="read and write the tables by names in this catalog of the Spark session, such as spark_catalog",
        )
        add_prefix(command)
    text = "run the nightly steps on the sample"
    demo = commands.add_parser(
        "demo", help=text, description=text, **with_examples("mqreplay demo", "mqreplay demo --engine local")
    )
    # Not by the environment: the sample must not get into a warehouse of real nights.
    demo.add_argument("--warehouse", metavar="DIR", default="warehouse/demo", help="folder of the tables (%(default)s)")
    _options(demo, "spark")


def _options(command: argparse.ArgumentParser, engine: str = DEFAULT_ENGINE) -> None:
    command.add_argument("--cluster", metavar="NAME", help="name of the cluster, if the recording does not contain it")
    add_conf(command)
    command.add_argument("--json", action="store_true", help="print the outcome as JSON")
    add_engine(command, engine)
    add_lang(command)
    command.add_argument("--fail-on", choices=SEVERITIES, help="exit 1 if a finding of the night reaches it")


def demo_conf(command: str) -> str | None:
    """Return the settings of the sample for the demo."""
    from mqreplay.places import conf_dir

    return str(conf_dir() / "sample.toml") if command == "demo" else None


def _catalog(args: argparse.Namespace) -> Catalog | None:
    """Return the catalog of the tables; None without --catalog."""
    from mqreplay.night.catalog import Catalog

    name, prefix = getattr(args, "catalog", None), getattr(args, "prefix", "")
    if name is None and prefix:
        raise InputError("--prefix is for names in a catalog: give --catalog, too")
    return None if name is None else Catalog(name, prefix)


def run_step(args: argparse.Namespace, settings: Settings) -> int:
    """Run a step, or all; print the outcome. Return the exit status.

    It is 1 for a failed expectation, or a finding of the night that reaches --fail-on. It is 2 or 4 if some recordings
    or clusters failed.
    """
    from mqreplay.cli.terminal import Progress, print_outcome, require_warehouse
    from mqreplay.night.nightly import run

    if getattr(args, "watch", False):
        args.recordings = _recordings(args, settings)
        watch_command.run(args, settings, notify.Notifier(args, settings))
        return DONE
    if getattr(args, "every", None) is not None:
        raise InputError("--every belongs to --watch")
    if getattr(args, "metrics_port", None) is not None:
        raise InputError("--metrics-port belongs to --watch; use --metrics FILE")
    if args.command in NEED_WAREHOUSE:
        require_warehouse(args.warehouse)
    step = "nightly" if args.command == "demo" else args.command
    failed: list[Failure] = []
    catalog = _catalog(args)
    choice = choice_of_engine(args, settings)
    notifier = notify.Notifier(args, settings) if args.command == "nightly" else None
    with Progress(sys.stderr, choice.note) as progress:
        outcomes = run(
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
            anonymise=getattr(args, "anonymise", False),
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
    from mqreplay.night.metrics import Figures, metrics_file, write_metrics

    path = metrics_file(args.metrics)
    return lambda samples: write_metrics(path, Figures(samples))


def _recordings(args: argparse.Namespace, settings: Settings) -> list[str]:
    """Return the recordings of the command, or those of the settings. Raises InputError if there are none."""
    from mqreplay.places import sample_dir

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
