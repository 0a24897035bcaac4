"""Declared forms of log messages: one record has the text of a message and the fact that it gives.

The text is that of RocketMQ's class, with a field in braces for each value:

    {queue}          a value of the fact; its type is the one of its name in `TYPES`, else ``name``
    {offset:long}    a value of the fact, with its type
    {:long}          a value that the fact does not have
    {?queue }        words that some versions leave out
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any, Final, NamedTuple

from mqreplay.decode.logs.java_text import (
    CHANNEL,
    MESSAGE_QUEUE,
    NAME,
    channel_of,
    consumer_of,
    int_of,
    long_of,
    messages_of,
    queue_of,
    queues_of,
    route_of,
    subscription_of,
)
from mqreplay.words.errors import DecodeError

Fact = tuple[Any, ...]  # a NamedTuple of client_facts, broker_facts or namesrv_log
_FIELD: Final = re.compile(r"\{(?P<optional>\?)?(?P<name>[^{}:]*)(?::(?P<type>\w+))?\}")


class FieldType(NamedTuple):
    """The pattern of a value in a message, and its conversion from the text; ``name`` is that of the field."""

    pattern: str
    value: Callable[[str, str], object] = lambda text, name: text


TYPES: Final[Mapping[str, FieldType]] = {
    "name": FieldType(NAME),
    "key": FieldType(r"[^\s,@\]]{1,255}"),
    "address": FieldType(r"[^\s,]{0,255}"),  # an address of IPv6 has brackets; a closed channel has none
    "boolean": FieldType("true|false"),
    "word": FieldType(r"\w{1,40}"),
    "text": FieldType(".*"),
    "rest": FieldType(r"\b.*"),
    "object": FieldType(r"\{.*\}"),
    "ratio": FieldType(r"\d(?:\.\d+)?(?:E-\d+)?"),
    "digits": FieldType(r"-?\d{1,19}"),
    "int": FieldType(r"\d{1,10}", int_of),
    "long": FieldType(r"-?\d{1,19}", long_of),
    "positive": FieldType(r"\d{1,19}", long_of),
    "queue": FieldType(MESSAGE_QUEUE, lambda text, name: queue_of(text)),
    "queues": FieldType(r"\[\]|\[.*?\]\]", lambda text, name: queues_of(text)),
    "channel": FieldType(CHANNEL, lambda text, name: channel_of(text)),
    "consumer": FieldType(r"ConsumerData \[.*\]", lambda text, name: consumer_of(text)),
    "messages": FieldType(r"\[MessageExt \[.*\]", lambda text, name: messages_of(text)),
    "destination": FieldType(r"[^\s,]{1,255}", lambda text, name: text.partition(":")[0]),  # topic:tag of Spring
    "subscription": FieldType(r"SubscriptionData \[.*\]", lambda text, name: subscription_of(text)),
    "route": FieldType(r"TopicRouteData \[.*\]", lambda text, name: route_of(text)),
    # 5.x writes the cluster's name with the address.
    "broker": FieldType(
        rf"BrokerIdentityInfo \[clusterName={NAME}, brokerAddr={NAME}\]|{NAME}",
        lambda text, name: text.rpartition("brokerAddr=")[2].removesuffix("]"),
    ),
}


@dataclass(frozen=True)
class Form:
    """A message of RocketMQ: its ``text``, the ``fact`` that it gives, and the class of RocketMQ that writes it.

    ``fact`` takes the values of the fields by name, with the ``constants``; None: the message gives no fact.
    ``versions`` are the major versions that write it. ``prefixes`` are words that some versions write before the text.
    ``start`` is the beginning that finds the message in a line: the text before the first field if empty.

    A message with the start, all ``signs`` and the ``end`` is this one, so it is damaged if its text differs. Without
    signs (None), it may be another message. A ``whole`` message has nothing but its level and thread before it.
    """

    text: str
    fact: Callable[..., Fact] | None
    source: str
    versions: str = "4, 5"
    constants: Mapping[str, object] = field(default_factory=dict)
    prefixes: tuple[str, ...] = ("",)
    start: str = ""
    signs: tuple[str, ...] | None = ()
    end: str = ""
    whole: bool = False

    @property
    def starts(self) -> Iterator[str]:
        """Yield how the message begins."""
        start = self.start or self.text.partition("{")[0]
        return (prefix + start for prefix in self.prefixes)

    @cached_property
    def _compiled(self) -> tuple[re.Pattern[str], list[tuple[str, Callable[[str, str], object]]]]:
        fields = []
        pattern = "|".join(map(re.escape, self.prefixes))
        pattern, at = f"(?:{pattern})" if pattern else "", 0
        for match in _FIELD.finditer(self.text):
            pattern, at = pattern + re.escape(self.text[at : match.start()]), match.end()
            name = match["name"]
            if match["optional"]:
                pattern += f"(?:{re.escape(name)})?"
                continue
            kind = TYPES[match["type"]] if match["type"] else TYPES.get(name, TYPES["name"])
            pattern += f"({kind.pattern})" if name else f"(?:{kind.pattern})"
            if name:
                fields.append((name, kind.value))
        return re.compile(pattern + re.escape(self.text[at:]), re.ASCII | re.DOTALL), fields

    def values_of(self, message: str) -> dict[str, object] | None:
        """Return the values of the fact in a message; None for another message.

        Raises:
            DecodeError: bad_number, bad_queue and others: a value is damaged.
        """
        pattern, fields = self._compiled
        match = pattern.fullmatch(message)
        if match is None:
            return None
        values = {name: value(text, name) for (name, value), text in zip(fields, match.groups(), strict=True)}
        return {**values, **self.constants} if self.constants else values

    def is_expected(self, message: str) -> bool:
        """Return whether a message with the start can only be this one."""
        return self.signs is not None and message.endswith(self.end) and all(sign in message for sign in self.signs)


class Messages:
    """The forms of all logs, by the start of their messages."""

    def __init__(self, logs: Mapping[str, Iterable[Form]]) -> None:
        """Take ``logs``: the forms of each log by its name. A start belongs to one log."""
        self._log_of: dict[str, str] = {}
        self._forms: dict[str, list[Form]] = {}
        for log, forms in logs.items():
            for form in forms:
                for start in form.starts:
                    if self._log_of.setdefault(start, log) != log:
                        raise ValueError(f"messages of two logs start with {start!r}")
                    self._forms.setdefault(start, []).append(form)
        whole = [start for start, forms in self._forms.items() if forms[0].whole]
        self._starts = tuple(sorted(self._forms.keys() - set(whole), key=len, reverse=True))
        self._start = _any_of(self._starts)
        self._whole = tuple(whole)
        names = "|".join(map(re.escape, whole))
        self._whole_message = re.compile(rf"(?:^|[-:|\])] )((?:{names})=[^\s,]{{1,255}})\s*$")

    def find(self, text: str) -> tuple[str, int] | None:
        """Return the start of the first message in a text, and its place (characters)."""
        match = self._start.search(text)
        while match is not None and match[0][0].isalnum() and text[match.start() - 1 : match.start()].isalnum():
            match = self._start.search(text, match.start() + 1)
        is_setting = text[: max(text.rfind("="), 0)].endswith(self._whole)
        setting = self._whole_message.search(text) if is_setting else None
        if setting is not None and (match is None or setting.start(1) < match.start()):
            return setting[1].partition("=")[0], setting.start(1)
        return None if match is None else (match[0], match.start())

    def start_at(self, text: str, at: int) -> str:
        """Return the start of the message that begins at a place (characters) of a text."""
        start = next((start for start in self._starts if text.startswith(start, at)), None)
        return start or text[at:].partition("=")[0]

    def log_of(self, start: str) -> str:
        """Return the log whose messages have a start."""
        return self._log_of[start]

    def read(self, start: str, message: str) -> Fact | None:
        """Return the fact of a message with a start; None for a message without one.

        Raises:
            DecodeError: the message is cut or damaged.
        """
        forms = self._forms[start]
        for form in forms:
            if (values := form.values_of(message)) is not None:
                return None if form.fact is None else form.fact(**values)
        if any(form.is_expected(message) for form in forms):
            raise DecodeError("bad_message", f"the message is truncated or has an unknown form: {message[:100]!r}")
        return None


def _any_of(starts: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of all starts, the longest first, grouped by their first letter: that is fastest."""
    by_letter = groupby(sorted(starts, key=lambda start: (start[0], -len(start))), key=lambda start: start[0])
    tails = ((letter, "|".join(re.escape(start[1:]) for start in group)) for letter, group in by_letter)
    return re.compile("|".join(f"{re.escape(letter)}(?:{tail})" for letter, tail in tails))
