"""One call of a law, and conversions between one SQL value in Python and its arguments and answer, by their types.

A law takes MessageQueue tuples, dicts and plain integers. Spark hands a pickled UDF Rows, dicts and lists,
and takes tuples, dicts and lists back. Null is None both ways. A number that does not fit 64 bits wraps, as
in Java.

RocketMQ's exceptions and our own become (code, detail): one bad row must not end a stage. Any other exception is a bug,
and propagates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mqreplay.bind.sql_types import INTEGERS, inner_types, is_queue, kind_of
from mqreplay.core.java import to_long
from mqreplay.core.message_queue import MessageQueue
from mqreplay.words.errors import InputError, MqreplayError, RocketMQError

Converter = Callable[[Any], Any]
Error = tuple[str, str | None]
Answer = tuple[Any, Error | None]
Answering = Callable[[Sequence[Any]], Answer]


class _MissingTopic(str):
    """The topic of a queue without one: a law that reads it must not get a made-up one.

    CONSISTENT_HASH hashes the topic as part of the queue's text; the averaging strategies never read it.
    """

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        raise InputError("the queues have no topic, and it is asked for: give <topic, broker_name, queue_id>")

    def __str__(self) -> str:
        return format(self)


MISSING_TOPIC = _MissingTopic()


def message_queue(fields: Mapping[str, Any] | None) -> MessageQueue | None:
    """Return a queue from its fields by name; topic may be absent or null."""
    if fields is None:
        return None
    topic = fields.get("topic")
    return MessageQueue(MISSING_TOPIC if topic is None else topic, fields["broker_name"], fields["queue_id"])


def without_made_up_topic(mq: MessageQueue | None) -> tuple[str | None, str, int] | None:
    """Return the queue as Spark gets it: a missing topic is null again."""
    return (None, mq.broker_name, mq.queue_id) if mq is not None and mq.topic is MISSING_TOPIC else mq


def to_law(kind: str) -> Converter:
    """Return the conversion of a value of that type, as a pickled UDF gets it, to a law's argument."""
    if kind_of(kind) == "ARRAY":
        each = to_law(inner_types(kind)[0])
        return lambda values: None if values is None else [each(value) for value in values]
    if kind_of(kind) == "MAP":
        key, item = map(to_law, inner_types(kind))
        return lambda values: None if values is None else {key(k): item(v) for k, v in values.items()}
    if is_queue(kind):
        return lambda row: None if row is None else message_queue(row.asDict())
    if kind_of(kind) in INTEGERS:
        return wrap
    return lambda value: value


def to_sql(kind: str) -> Converter:
    """Return the conversion of a law's answer to a value of that type; the answer is never None."""
    if kind_of(kind) == "ARRAY" and is_queue(inner_types(kind)[0]):
        return lambda mqs: [without_made_up_topic(mq) for mq in mqs]
    if kind_of(kind) == "MAP" and is_queue(inner_types(kind)[0]):
        return lambda values: {without_made_up_topic(mq): value for mq, value in values.items()}
    return wrap if kind_of(kind) in INTEGERS else lambda value: value


def wrap(value: Any) -> int | None:
    """Return an integer in 64 bits, also from a DECIMAL that SQL made of a long literal."""
    return None if value is None else to_long(int(value))


class NullArgument(MqreplayError):
    """SQL gave NULL where the law, like the Java method it follows, takes a primitive."""


def error_value(error: MqreplayError) -> Error:
    """Return (code, detail): the Java class and message; else our code, or the error's class, and its text."""
    if isinstance(error, RocketMQError):
        return error.java_class, error.message
    return getattr(error, "code", type(error).__name__), getattr(error, "detail", str(error))


def answering(law: Callable[..., Any], names: Sequence[str], required: Sequence[str], out: Converter) -> Answering:
    """Return a function that calls the law, and returns (value, None) or (None, error).

    The arguments come in the order of ``names``; those at the end may be left out, and take the law's defaults.
    Arguments in ``required`` may not be None.
    """

    def answer(arguments: Sequence[Any]) -> Answer:
        named = dict(zip(names, arguments, strict=False))
        try:
            for name in required:
                if name in named and named[name] is None:
                    raise NullArgument(f"{name} is null")
            value = law(**named)
        except MqreplayError as error:
            return None, error_value(error)
        return (None if value is None else out(value)), None

    return answer
