"""One call of a law: its answer, or its error as a value.

RocketMQ's exceptions and our own become (code, detail): one bad row must not end a stage. Any other exception is a
bug, and propagates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mqreplay.bind.values import Converter
from mqreplay.errors import MqreplayError, RocketMQError

Error = tuple[str, str | None]
Answer = tuple[Any, Error | None]
Answering = Callable[[Sequence[Any]], Answer]


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
