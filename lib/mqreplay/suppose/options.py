"""What the options of `mqreplay whatif` suppose; notebooks and agents name them alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mqreplay.decisions.suppositions import BrokerSetting, GroupConsumers, GroupStrategy, Supposition, TopicQueues
from mqreplay.suppose.what_if import WhatIf
from mqreplay.words.errors import InputError

RATIO_OPTION, SLAVE_READ, STRATEGY = "ratio", "slaveReadEnable", "strategy"
FULL_RATIO: Final = "accessMessageInMemoryMaxRatio"
OTHERS: Final = ("lose_master", "reset_to", "group", "at", "day", "cluster", "drain")  # taken as they are


def supposed(**options: Any) -> WhatIf:
    """Return what the options suppose; all of them are needed. Raises InputError for options that do not fit together.

    ``consumers`` and ``queues`` are numbers, or their texts.
    """
    suppositions = tuple(suppositions_of(options))
    if not suppositions and not any(options[name] for name in ("lose_master", "reset_to", "drain")):
        known = "--set, --consumers, --queues, --lose-master, --reset-to or --drain"
        raise InputError(f"nothing is supposed; name a setting: {known}")
    return WhatIf(suppositions, **{name: options[name] for name in OTHERS})


def suppositions_of(options: Mapping[str, Any]) -> list[Supposition]:
    """Return what the options suppose. Raises InputError for options that do not fit together."""
    suppositions: list[Supposition] = [_setting(text, options) for text in options["set"]]
    if options["consumers"] is not None:
        if not options["group"]:
            raise InputError("--consumers needs --group")
        suppositions.append(GroupConsumers(options["group"], _number("--consumers", options["consumers"])))
    if options["queues"] is not None:
        if not options["topic"]:
            raise InputError("--queues needs --topic")
        queues = _number("--queues", options["queues"])
        if queues < 1:
            raise InputError(f"--queues is {queues}; a topic has 1 queue or more")
        suppositions.append(TopicQueues(options["topic"], queues))
    for option, value in (("--reset-to", options["reset_to"]), ("--drain", options["drain"])):
        if value and not options["group"]:
            raise InputError(f"{option} needs --group")
    _require_use(options)
    return suppositions


def _require_use(options: Mapping[str, Any]) -> None:
    """Raise InputError for options that nothing uses."""
    names = [text.partition("=")[0] for text in options["set"]]
    of_brokers = any(name in (RATIO_OPTION, FULL_RATIO, SLAVE_READ) for name in names)
    if options["broker"] and not of_brokers:
        raise InputError(f"--broker goes with --set {RATIO_OPTION}=... or {SLAVE_READ}=...")
    if options["topic"] and options["queues"] is None:
        raise InputError("--topic goes with --queues")
    of_group = options["consumers"] is not None or options["reset_to"] or options["drain"] or STRATEGY in names
    if options["group"] and not of_group:
        raise InputError("--group goes with --set strategy=..., --consumers, --reset-to or --drain")


def _setting(text: str, options: Mapping[str, Any]) -> Supposition:
    name, equals, value = text.partition("=")
    if not equals or not value:
        raise InputError(f"--set {text!r} has no value; write it as ratio=60")
    if name == STRATEGY:
        if not options["group"]:
            raise InputError("--set strategy=... needs --group")
        return GroupStrategy(options["group"], value)
    if name in (RATIO_OPTION, FULL_RATIO):
        if not value.isdigit() or not 1 <= int(value) <= 100:
            raise InputError(f"--set {text!r}: a ratio is a number of percent from 1 to 100")
        return BrokerSetting(FULL_RATIO, value, options["broker"])
    if name == SLAVE_READ:
        if value.lower() not in ("true", "false"):
            raise InputError(f"--set {text!r}: write true or false")
        return BrokerSetting(SLAVE_READ, value, options["broker"])
    raise InputError(
        f"--set {text!r}: no decision depends on it; known are {RATIO_OPTION}, {SLAVE_READ} and {STRATEGY}"
    )


def _number(option: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int(value if isinstance(value, str) else "")
    except ValueError:
        example = "+2 or -1" if option == "--consumers" else "8"
        raise InputError(f"{option} {value!r} is no whole number; write it as {example}") from None
