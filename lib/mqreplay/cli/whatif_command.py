"""`mqreplay whatif`: the decisions of the night with another setting."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from mqreplay.cli.arguments import add_cluster, add_engine, add_json, add_lang, add_tables, settings_of, words_of
from mqreplay.cli.command import DONE, FAILED, Command
from mqreplay.words.errors import InputError

if TYPE_CHECKING:
    from mqreplay.settings import Settings

LOCAL = "local"  # few nights need more than this machine


def add(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_tables(command)
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="ratio (accessMessageInMemoryMaxRatio) or slaveReadEnable of brokers; strategy of a group; repeatable",
    )
    command.add_argument("--broker", metavar="NAME", help="the broker of a setting; without it, all of them")
    command.add_argument("--group", metavar="NAME", help="the consumer group of a strategy, of consumers or of a reset")
    command.add_argument("--consumers", metavar="+N", help="consumers more than the group had, or fewer: +2, -1")
    command.add_argument("--queues", type=int, metavar="N", help="queues of the topic on each of its brokers")
    command.add_argument("--topic", metavar="NAME", help="the topic of --queues")
    command.add_argument("--lose-master", metavar="BROKER", help="the master of this broker name fails at --at")
    command.add_argument("--reset-to", metavar="TIME", help="the offsets of the group are reset to this time: 02:45")
    command.add_argument("--drain", action="store_true", help="how long the backlog of the group lasts from --at")
    command.add_argument(
        "--at", metavar="TIME", help="an instant, as 02:45 UTC; without it, the usual lists, or the end"
    )
    command.add_argument(
        "--day", metavar="DAY", help="the day that is decided again, or compared; the last one without it"
    )
    add_cluster(command)
    command.add_argument("--save", action="store_true", help="store the answer in gold.prediction; prints its id")
    text = "compare a stored prediction with --recording, --against, or a day of this warehouse: whatif check 3f0a"
    command.add_argument("check", nargs="*", metavar="check PREDICTION", help=text)
    later = command.add_mutually_exclusive_group()
    text = "check: the later recording, a folder as nightly takes; it is replayed into a temporary warehouse"
    later.add_argument("--recording", metavar="LATER", help=text)
    later.add_argument("--against", metavar="DIR", help="check: the warehouse of the later recording")
    add_lang(command)
    add_json(command)
    add_engine(command, LOCAL)


def run(args: argparse.Namespace) -> int:
    """Print what would have been, or what came of it; return the exit status."""
    settings = settings_of(args)
    if args.check:
        return _check(args, settings)
    for option, value in (("--recording", args.recording), ("--against", args.against)):
        if value is not None:
            raise InputError(f"{option} goes with whatif check PREDICTION")
    from mqreplay.suppose.options import supposed

    asked = supposed(**vars(args))
    from dataclasses import replace

    from mqreplay.cli.page_line import print_page
    from mqreplay.suppose.what_if import what_if
    from mqreplay.terminal.suppositions import print_whatif

    asked = replace(asked, engine=args.engine or LOCAL)
    answer = what_if(args.warehouse, settings, asked, lambda line: print(line, file=sys.stderr))
    saved = None
    if args.save:
        from mqreplay.lake.warehouse import Warehouse
        from mqreplay.suppose.predictions import save

        saved = save(Warehouse(args.warehouse), asked, answer)
    words = words_of(args)
    print_whatif(answer, saved, as_json=args.json, words=words)
    if not args.json:
        broker = args.lose_master or args.broker
        print_page(args.warehouse, answer.cluster, group=args.group, broker=broker, topic=args.topic, words=words)
    return DONE


def _check(args: argparse.Namespace, settings: Settings) -> int:
    """Print what came of a stored prediction; return the exit status."""
    if len(args.check) != 2 or args.check[0] != "check":
        raise InputError(
            f"{' '.join(args.check)!r} is no option of whatif; a stored prediction: whatif check PREDICTION"
        )
    if args.set or args.consumers or args.queues or args.lose_master or args.reset_to or args.drain or args.save:
        raise InputError(
            "whatif check supposes nothing: besides PREDICTION, it takes --recording or --against, and --day"
        )
    from mqreplay.lake.local_folder import require_warehouse
    from mqreplay.suppose.prediction_check import FAILED as PREDICTION_FAILED
    from mqreplay.suppose.prediction_check import check, check_recording
    from mqreplay.terminal.suppositions import print_checked

    if args.recording is not None:
        from mqreplay.night.nightly import run
        from mqreplay.terminal.progress import Progress

        with Progress(sys.stderr) as progress:
            found = check_recording(args.warehouse, args.check[1], args.recording, settings, args.day, run, progress)
    else:
        later = args.against or args.warehouse
        require_warehouse(later)
        found = check(args.warehouse, args.check[1], later, args.day)
    words = words_of(args)
    print_checked(found, as_json=args.json, words=words)
    if not args.json:
        from mqreplay.cli.page_line import print_page

        print_page(args.against or args.warehouse, found.cluster, group=found.group, words=words)
    return FAILED if found.answer == PREDICTION_FAILED else DONE


COMMAND = Command("whatif", add, run, needs_tables=True)
