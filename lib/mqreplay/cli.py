"""The command line. Results go to stdout, progress to stderr.

Exit status: 0 done; 1 done, and an expectation failed, a finding reaches --fail-on, or a file that doctor examined is
broken; 2 bad usage, settings or input; 3 the warehouse is locked by another run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from mqreplay import __version__
from mqreplay.errors import MqreplayError, WarehouseLocked

DONE, FAILED, BAD_INPUT, LOCKED = 0, 1, 2, 3
INTERRUPTED = 130  # as shells have it: 128 and SIGINT
STEPS = {
    "nightly": "all of a night: ingest, replay, validate, report",
    "ingest": "recordings into the silver tables; what was read before is not read again",
    "replay": "silver into gold: every decision judged, and the findings",
    "validate": "run the contracts' expectations, and build their Data Docs",
    "report": "one HTML page for each cluster",
    "maintain": "compact the tables, and remove files that no version needs",
}


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    top = argparse.ArgumentParser(
        prog="mqreplay", description="Replays what an Apache RocketMQ cluster decided, from what it left behind."
    )
    top.add_argument("--version", action="version", version=f"mqreplay {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in STEPS.items():
        command = commands.add_parser(name, help=text, description=text)
        if name in ("nightly", "ingest"):
            command.add_argument("recordings", nargs="+", metavar="RECORDING", help="folder of a recording")
        _common(command)
    demo = commands.add_parser("demo", help="the nightly run on the sample recording")
    demo.add_argument("--warehouse", metavar="DIR", default="warehouse/demo", help="folder of the tables (%(default)s)")
    _options(demo)
    sql = commands.add_parser("sql", help="a query over the tables; RocketMQ's decisions are functions in it")
    sql.add_argument("query", metavar="SELECT", help="the query")
    sql.add_argument("--warehouse", required=True, metavar="DIR", help="folder of the tables")
    sql.add_argument("--format", choices=("table", "csv", "json"), default="table", help="how rows are printed")
    sql.add_argument("--conf", metavar="FILE", help="settings over the shipped ones")
    explain = commands.add_parser("explain", help="a finding's story: the rule, the evidence in time order, its cause")
    explain.add_argument("finding", metavar="FINDING", help="its finding_id, or enough of its beginning")
    explain.add_argument("--warehouse", required=True, metavar="DIR", help="folder of the tables")
    explain.add_argument("--cluster", metavar="NAME", help="the cluster, where several have it")
    explain.add_argument("--conf", metavar="FILE", help="settings over the shipped ones")
    explain.add_argument("--json", action="store_true", help="print the story as JSON")
    unpack = commands.add_parser("unpack", help="the records in packet captures, as JSONL files of a recording")
    unpack.add_argument("captures", nargs="+", metavar="CAPTURE", help="a .pcap or .pcapng, gzipped or not")
    unpack.add_argument("--out", required=True, metavar="DIR", help="folder of the recording that they go into")
    unpack.add_argument("--json", action="store_true", help="print what came of them as JSON")
    doctor = commands.add_parser("doctor", help="what is wrong with this machine, or with files, and how to mend it")
    doctor.add_argument("files", nargs="*", metavar="FILE", help="files of a recording; none: this machine")
    doctor.add_argument("--json", action="store_true", help="print what is found as JSON")
    doctor.add_argument("--conf", metavar="FILE", help="settings over the shipped ones")
    return top


def _common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--warehouse", required=True, metavar="DIR", help="folder of the tables")
    _options(command)


def _options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--cluster", metavar="NAME", help="the cluster, where the recording does not name it")
    command.add_argument("--conf", metavar="FILE", help="settings over the shipped ones")
    command.add_argument("--json", action="store_true", help="print the outcome as JSON")
    command.add_argument("--fail-on", choices=("info", "warning", "critical"), help="exit 1 if a finding reaches it")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; gives its exit status."""
    args = parser().parse_args(argv)
    try:
        return _command(args)
    except WarehouseLocked as error:
        return _say(error, LOCKED)
    except MqreplayError as error:
        return _say(error, BAD_INPUT)
    except KeyboardInterrupt:
        return _say(InterruptedError("interrupted; the next run takes up what this one left"), INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read us has gone; Python would complain of it at exit
        return DONE


def _say(error: Exception, status: int) -> int:
    print(f"mqreplay: {error}", file=sys.stderr)
    return status


def _command(args: argparse.Namespace) -> int:
    # What needs Spark is imported late, so that --help and a wrong option answer at once.
    if args.command == "unpack":
        from mqreplay.unpack import unpack

        unpack(args.captures, args.out, sys.stdout, args.json)
        return DONE
    from mqreplay.settings import load_settings

    settings = load_settings(args.conf or _demo_conf(args.command))
    if args.command == "doctor":
        return _doctor(args, settings)
    if args.command == "sql":
        from mqreplay.terminal import print_query

        print_query(args.warehouse, args.query, settings, args.format)
        return DONE
    if args.command == "explain":
        from mqreplay.terminal_story import print_story

        print_story(args.warehouse, args.finding, args.cluster, settings, as_json=args.json)
        return DONE
    return run_step(args, settings)


def _demo_conf(command: str) -> str | None:
    from mqreplay.places import conf_dir

    return str(conf_dir() / "sample.toml") if command == "demo" else None


def _doctor(args: argparse.Namespace, settings: object) -> int:
    if args.files:
        from mqreplay.doctor.files import examine_files

        return DONE if examine_files(args.files, sys.stdout, args.json) else FAILED
    from mqreplay.doctor.machine import examine_machine

    return DONE if examine_machine(settings, sys.stdout, args.json) else BAD_INPUT


def run_step(args: argparse.Namespace, settings: object) -> int:
    """Runs a step, or all; prints the outcome."""
    from mqreplay.night import run
    from mqreplay.places import sample_dir
    from mqreplay.terminal import Progress, print_outcome

    step = "nightly" if args.command == "demo" else args.command
    recordings = [str(sample_dir() / "orders-4.9.7")] if args.command == "demo" else getattr(args, "recordings", [])
    with Progress(sys.stderr) as progress:
        outcomes = run(step, args.warehouse, settings, progress, recordings=recordings, cluster=args.cluster)
    if args.json:
        print(json.dumps({"clusters": [o.as_dict() for o in outcomes]}, ensure_ascii=False, indent=1))
    else:
        print_outcome(outcomes, step, args.warehouse)
    failed = any(o.failed_expectations for o in outcomes) and step in ("nightly", "validate")
    return FAILED if failed or any(o.reaches(args.fail_on) for o in outcomes) else DONE


if __name__ == "__main__":
    sys.exit(main())
