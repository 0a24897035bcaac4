"""`mqreplay whatif`: the decisions of the night with another setting."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mqreplay.cli.arguments import add_conf, add_engine, add_warehouse, with_examples
from mqreplay.cli.exit_status import DONE, FAILED
from mqreplay.errors import InputError

if TYPE_CHECKING:
    from mqreplay.decisions.suppositions import Supposition
    from mqreplay.night.what_if import WhatIf
    from mqreplay.settings import Settings

DESCRIPTION = (
    "Decide the night again with another setting: which queues would have moved, which readers a broker would have "
    "sent to its slave, what the loss of a master or a reset of offsets would have cost. The same rules decide, on "
    "other inputs; bounds are given where inputs are bounds. Nothing is changed anywhere. `check` compares a stored "
    "prediction with a later night; exit status 0: no value came outside of its bounds; 1: one did."
)
EXAMPLES = with_examples(
    "mqreplay whatif --set ratio=60 --broker broker-a --warehouse warehouse/night",
    "mqreplay whatif --set strategy=AVG_BY_CIRCLE --group order-group --warehouse warehouse/night",
    "mqreplay whatif --consumers +2 --group order-group --warehouse warehouse/night",
    "mqreplay whatif --queues 16 --topic order-topic --warehouse warehouse/night",
    "mqreplay whatif --lose-master broker-a --at 02:45 --warehouse warehouse/night",
    "mqreplay whatif --reset-to 02:45 --group pay-group --warehouse warehouse/night",
    "mqreplay whatif check 3f0a --recording recordings/tonight --warehouse warehouse/night",
    "mqreplay whatif check 3f0a --day 2026-11-22 --warehouse warehouse/night",
)
LOCAL = "local"  # few nights need more than this machine
RATIO, SLAVE_READ, STRATEGY = "ratio", "slaveReadEnable", "strategy"
FULL_RATIO = "accessMessageInMemoryMaxRatio"


def add(commands: Any) -> None:
    """Add the command."""
    text = "decide the night again with another setting"
    command = commands.add_parser("whatif", help=text, description=DESCRIPTION, **EXAMPLES)
    add_warehouse(command)
    add_conf(command)
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
    command.add_argument("--reset-to", metavar="TIME", help="the offsets of the group are reset to this time")
    command.add_argument("--drain", action="store_true", help="how long the backlog of the group lasts from --at")
    command.add_argument("--at", metavar="TIME", help="an instant in UTC; without it, the usual lists, or the end")
    command.add_argument(
        "--day", metavar="DAY", help="the day that is decided again, or compared; the last one without it"
    )
    command.add_argument("--cluster", metavar="NAME", help="the cluster, where the warehouse has several")
    command.add_argument("--save", action="store_true", help="store the answer in gold.prediction; prints its id")
    text = "compare a stored prediction with --recording, --against, or a day of this warehouse: whatif check 3f0a"
    command.add_argument("check", nargs="*", metavar="check PREDICTION", help=text)
    later = command.add_mutually_exclusive_group()
    text = "check: the later recording, a folder as nightly takes; it is replayed into a temporary warehouse"
    later.add_argument("--recording", metavar="LATER", help=text)
    later.add_argument("--against", metavar="DIR", help="check: the warehouse of the later recording")
    command.add_argument("--json", action="store_true", help="print one JSON object")
    add_engine(command, LOCAL)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Print what would have been, or what came of it; return the exit status."""
    from mqreplay.lake.existing import require_warehouse

    require_warehouse(args.warehouse)
    if args.check:
        return _check(args, settings)
    for option, value in (("--recording", args.recording), ("--against", args.against)):
        if value is not None:
            raise InputError(f"{option} goes with whatif check PREDICTION")
    asked = asked_of(args)
    if not asked.suppositions and not args.lose_master and not args.reset_to and not args.drain:
        options = "--set, --consumers, --queues, --lose-master, --reset-to or --drain"
        raise InputError(f"nothing is supposed; name a setting: {options}")
    from dataclasses import replace

    from mqreplay.cli.page_line import print_page
    from mqreplay.cli.terminal import note_interruption
    from mqreplay.cli.whatif_text import print_whatif
    from mqreplay.night.what_if import what_if

    note_interruption(args.warehouse)
    asked = replace(asked, engine=args.engine or LOCAL)
    answer = what_if(args.warehouse, settings, asked, lambda line: print(line, file=sys.stderr))
    saved = None
    if args.save:
        from mqreplay.lake.warehouse import Warehouse
        from mqreplay.night.predictions import save

        saved = save(Warehouse(args.warehouse), asked, answer)
    print_whatif(answer, saved, as_json=args.json)
    if not args.json:
        broker = args.lose_master or args.broker
        print_page(args.warehouse, answer.cluster, group=args.group, broker=broker, topic=args.topic)
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
    from mqreplay.cli.prediction_text import print_checked
    from mqreplay.lake.existing import require_warehouse
    from mqreplay.night.prediction_check import FAILED as PREDICTION_FAILED
    from mqreplay.night.prediction_check import check, check_recording

    if args.recording is not None:
        from mqreplay.cli.progress import Progress

        with Progress(sys.stderr) as progress:
            found = check_recording(args.warehouse, args.check[1], args.recording, settings, args.day, progress)
    else:
        later = args.against or args.warehouse
        require_warehouse(later)
        found = check(args.warehouse, args.check[1], later, args.day)
    print_checked(found, as_json=args.json)
    if not args.json:
        from mqreplay.cli.page_line import print_page

        print_page(args.against or args.warehouse, found.cluster, group=found.group)
    return FAILED if found.answer == PREDICTION_FAILED else DONE


def asked_by(set: Sequence[str], consumers: int | None, **options: Any) -> WhatIf:
    """Return what keyword arguments ask, named as the options are; all of them are needed. Raises InputError."""
    more = None if consumers is None else f"{consumers:+d}"
    return asked_of(argparse.Namespace(set=list(set), consumers=more, **options))


def asked_of(args: argparse.Namespace) -> WhatIf:
    """Return what the options ask. Raises InputError for options that do not fit together."""
    from mqreplay.night.what_if import WhatIf

    of_night = {
        name: getattr(args, name) for name in ("lose_master", "reset_to", "group", "at", "day", "cluster", "drain")
    }
    return WhatIf(tuple(suppositions_of(args)), **of_night)


def suppositions_of(args: argparse.Namespace) -> list[Supposition]:
    """Return what the options suppose. Raises InputError for options that do not fit together."""
    from mqreplay.decisions.suppositions import GroupConsumers, TopicQueues

    found: list[Supposition] = [_setting(text, args) for text in args.set]
    if args.consumers is not None:
        if not args.group:
            raise InputError("--consumers needs --group")
        found.append(GroupConsumers(args.group, _number(args.consumers)))
    if args.queues is not None:
        if not args.topic:
            raise InputError("--queues needs --topic")
        if args.queues < 1:
            raise InputError(f"--queues is {args.queues}; a topic has 1 queue or more")
        found.append(TopicQueues(args.topic, args.queues))
    for option, value in (("--reset-to", args.reset_to), ("--drain", args.drain)):
        if value and not args.group:
            raise InputError(f"{option} needs --group")
    _require_use(args)
    return found


def _require_use(args: argparse.Namespace) -> None:
    """Raise InputError for options that nothing uses."""
    names = [text.partition("=")[0] for text in args.set]
    of_brokers = any(name in (RATIO, FULL_RATIO, SLAVE_READ) for name in names)
    if args.broker and not of_brokers:
        raise InputError(f"--broker goes with --set {RATIO}=... or {SLAVE_READ}=...")
    if args.topic and args.queues is None:
        raise InputError("--topic goes with --queues")
    of_group = args.consumers is not None or args.reset_to or args.drain or STRATEGY in names
    if args.group and not of_group:
        raise InputError("--group goes with --set strategy=..., --consumers, --reset-to or --drain")


def _setting(text: str, args: argparse.Namespace) -> Supposition:
    from mqreplay.decisions.suppositions import BrokerSetting, GroupStrategy

    name, equals, value = text.partition("=")
    if not equals or not value:
        raise InputError(f"--set {text!r} has no value; write it as ratio=60")
    if name == STRATEGY:
        if not args.group:
            raise InputError("--set strategy=... needs --group")
        return GroupStrategy(args.group, value)
    if name in (RATIO, FULL_RATIO):
        if not value.isdigit() or not 1 <= int(value) <= 100:
            raise InputError(f"--set {text!r}: a ratio is a number of percent from 1 to 100")
        return BrokerSetting(FULL_RATIO, value, args.broker)
    if name == SLAVE_READ:
        if value.lower() not in ("true", "false"):
            raise InputError(f"--set {text!r}: write true or false")
        return BrokerSetting(SLAVE_READ, value, args.broker)
    raise InputError(f"--set {text!r}: no decision depends on it; known are {RATIO}, {SLAVE_READ} and {STRATEGY}")


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f"--consumers {text!r} is no number; write it as +2 or -1") from None
