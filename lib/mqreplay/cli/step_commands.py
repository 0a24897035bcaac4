"""The commands that run a night or one of its steps: their options, and what they start."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from mqreplay.cli import watch_command
from mqreplay.cli.arguments import add_conf, add_engine, add_prefix, add_warehouse, with_examples
from mqreplay.errors import InputError
from mqreplay.printable import json_text, printable

if TYPE_CHECKING:
    from mqreplay.night.catalog import Catalog
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
        "mqreplay nightly recordings/night --warehouse warehouse/night --engine local --fail-on critical --json",
        "mqreplay nightly recordings/night --warehouse warehouse/night --conf own.toml --catalog spark_catalog",
        "mqreplay nightly recordings/live --warehouse warehouse/live --watch",
    ),
    "ingest": ("mqreplay ingest recordings/night --warehouse warehouse/night --engine local",),
    "replay": ("mqreplay replay --warehouse warehouse/night --engine local",),
    "validate": ("mqreplay validate --warehouse warehouse/night --engine local",),
    "report": ("mqreplay report --warehouse warehouse/night",),
}
NEED_WAREHOUSE = ("replay", "validate", "report")


def add(commands: Any) -> None:
    """Add the commands, with their options."""
    for name, text in STEPS.items():
        command = commands.add_parser(name, help=text, description=text, **with_examples(*EXAMPLES[name]))
        if name in ("nightly", "ingest"):
            command.add_argument("recordings", nargs="+", metavar="RECORDING", help="folder of a recording")
        add_warehouse(command)
        _options(command)
        if name == "nightly":
            watch_command.add(command)
        command.add_argument(
            "--catalog",
            metavar="NAME",
            help="register the tables in this catalog of the Spark session at the end, such as spark_catalog",
        )
        add_prefix(command)
    text = "run the nightly steps on the sample"
    demo = commands.add_parser(
        "demo", help=text, description=text, **with_examples("mqreplay demo", "mqreplay demo --engine local")
    )
    # Not by the environment: the sample must not get into a warehouse of real nights.
    demo.add_argument("--warehouse", metavar="DIR", default="warehouse/demo", help="folder of the tables (%(default)s)")
    _options(demo)


def _options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--cluster", metavar="NAME", help="name of the cluster, if the recording does not contain it")
    add_conf(command)
    command.add_argument("--json", action="store_true", help="print the outcome as JSON")
    add_engine(command)
    command.add_argument("--fail-on", choices=("info", "warning", "critical"), help="exit 1 if a finding reaches it")


def demo_conf(command: str) -> str | None:
    """Return the settings of the sample for the demo."""
    from mqreplay.places import conf_dir

    return str(conf_dir() / "sample.toml") if command == "demo" else None


def _catalog(args: argparse.Namespace) -> Catalog | None:
    """Return the catalog to register the tables in; None without --catalog."""
    from mqreplay.night.catalog import Catalog

    name, prefix = getattr(args, "catalog", None), getattr(args, "prefix", "")
    if name is None and prefix:
        raise InputError("--prefix is for names in a catalog: give --catalog, too")
    return None if name is None else Catalog(name, prefix)


def run_step(args: argparse.Namespace, settings: Settings) -> bool:
    """Run a step, or all; print the outcome. False if there is something to look at.

    That is a failed expectation, a finding that reaches --fail-on, or a table that --catalog could not register.
    """
    from mqreplay.cli.terminal import Progress, print_outcome, require_warehouse
    from mqreplay.night.nightly import run
    from mqreplay.places import sample_dir

    if getattr(args, "watch", False):
        watch_command.run(args, settings)
        return True
    if getattr(args, "every", None) is not None:
        raise InputError("--every belongs to --watch")
    if args.command in NEED_WAREHOUSE:
        require_warehouse(args.warehouse)
    step = "nightly" if args.command == "demo" else args.command
    recordings = [str(sample_dir() / "orders-4.9.7")] if args.command == "demo" else getattr(args, "recordings", [])
    catalog = _catalog(args)
    with Progress(sys.stderr) as progress:
        outcomes = run(
            step,
            args.warehouse,
            settings,
            progress,
            recordings=recordings,
            cluster=args.cluster,
            engine=args.engine or "spark",
            catalog=catalog,
        )
    problems = catalog.problems if catalog is not None else []
    for problem in problems:
        print(f"mqreplay: catalog {args.catalog}: {printable(problem)}", file=sys.stderr)
    if args.json:
        print(json_text({"clusters": [o.as_dict() for o in outcomes]}, indent=1))
    else:
        print_outcome(outcomes, step, args.warehouse)
    failed = any(o.failed_expectations for o in outcomes) and step in ("nightly", "validate")
    return not failed and not problems and not any(o.reaches(args.fail_on) for o in outcomes)
