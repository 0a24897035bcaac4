"""The tree of errors. Each message gives the problem, the place, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from mqreplay.words.printable import without_secrets


class MqreplayError(Exception):
    """Root of every error mqreplay raises on purpose. Its text has no secrets of URIs."""

    def __str__(self) -> str:
        return without_secrets(super().__str__())


class RocketMQError(MqreplayError):
    """An exception that RocketMQ's own Java code would throw, with its message.

    ``java_class`` is the full name of the Java exception, ``message`` its message (None where Java gives none).
    """

    java_class = "java.lang.RuntimeException"

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message if message is not None else "")
        self.message = message

    def __str__(self) -> str:
        return self.java_class if self.message is None else f"{self.java_class}: {self.message}"


class IllegalArgument(RocketMQError):
    """java.lang.IllegalArgumentException."""

    java_class = "java.lang.IllegalArgumentException"


class NullPointer(RocketMQError):
    """java.lang.NullPointerException."""

    java_class = "java.lang.NullPointerException"


class InputError(MqreplayError):
    """The recording, the settings or the command line are not usable (exit status 2)."""


class InputErrors(InputError):
    """Several inputs that are not usable (exit status 2). ``messages`` are one line each."""

    def __init__(self, messages: list[str]) -> None:
        super().__init__("; ".join(messages))
        self.messages = list(map(without_secrets, messages))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.messages,)


class SettingsError(InputError):
    """A settings file or option is wrong (exit status 2)."""


class DecodeError(MqreplayError):
    """Text that RocketMQ or a recorder does not write. ``code`` is a short stable code, ``offset`` the byte."""

    def __init__(self, code: str, detail: str, offset: int | None = None) -> None:
        super().__init__(f"{code}: {detail}" + (f" (byte {offset})" if offset is not None else ""))
        self.code = code
        self.detail = detail
        self.offset = offset

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.code, self.detail, self.offset)


class UnreadableInput(DecodeError):
    """An input file that cannot be opened or read. ``trouble`` is the system's message."""

    def __init__(self, trouble: str) -> None:
        super().__init__("unreadable", f"it cannot be read: {trouble}")
        self.trouble = trouble

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.trouble,)


class OwnDiskError(MqreplayError):
    """A file that mqreplay itself keeps in ``folder`` cannot be written or read. Its cause is an OSError.

    It says nothing about the input, so no handler of damaged input catches it.
    """

    def __init__(self, folder: str, detail: str) -> None:
        super().__init__(f"{folder}: {detail}")
        self.folder = folder
        self.detail = detail

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.folder, self.detail)


class ContractError(MqreplayError):
    """A data contract in schemas/ is not usable, or a table does not fit it."""


class RecordingFull(MqreplayError):
    """The recording cannot grow: the disk is full or fails, or the recording has reached its bound.

    What was written before is complete. ``at_bound``: the user's bound is reached, so waiting does not help.
    """

    def __init__(self, path: str, detail: str, at_bound: bool = False) -> None:
        super().__init__(f"recording {path}: {detail}")
        self.path = path
        self.detail = detail
        self.at_bound = at_bound

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path, self.detail, self.at_bound)


class StoreError(InputError):
    """An object store or HDFS refuses a request: wrong keys, no such bucket (exit status 2)."""


class StoreUnavailable(StoreError):
    """An object store or HDFS does not answer in time (exit status 4)."""


class WarehouseLocked(MqreplayError):
    """Another run holds the warehouse (exit status 3)."""


class ConservationError(MqreplayError):
    """Rows in are not rows out + quarantined + duplicates: a bug in mqreplay."""


class UnknownStrategy(MqreplayError):
    """An allocation strategy that RocketMQ does not ship: its result cannot be replayed."""


class SettingsLacking(MqreplayError):
    """A strategy needs parameters that no recording has and that the settings do not give."""


class NoSuchElement(RocketMQError):
    """java.util.NoSuchElementException."""

    java_class = "java.util.NoSuchElementException"


class NumberFormat(RocketMQError):
    """java.lang.NumberFormatException."""

    java_class = "java.lang.NumberFormatException"


class Arithmetic(RocketMQError):
    """java.lang.ArithmeticException: an int divided by zero."""

    java_class = "java.lang.ArithmeticException"


class ArrayIndexOutOfBounds(RocketMQError):
    """java.lang.ArrayIndexOutOfBoundsException."""

    java_class = "java.lang.ArrayIndexOutOfBoundsException"


class MQClientError(RocketMQError):
    """org.apache.rocketmq.client.exception.MQClientException, with its response code."""

    java_class = "org.apache.rocketmq.client.exception.MQClientException"

    def __init__(self, message: str | None = None, response_code: int = -1) -> None:
        """Take Java's message and RocketMQ's ResponseCode or ClientErrorCode; -1 for none."""
        super().__init__(message)
        self.response_code = response_code


class MQBrokerError(RocketMQError):
    """org.apache.rocketmq.client.exception.MQBrokerException: the broker answered, with an error code."""

    java_class = "org.apache.rocketmq.client.exception.MQBrokerException"


class OffsetNotFound(MQBrokerError):
    """org.apache.rocketmq.client.exception.OffsetNotFoundException: the broker has no offset (5.x)."""

    java_class = "org.apache.rocketmq.client.exception.OffsetNotFoundException"


class JavaException(RocketMQError):
    """java.lang.Exception."""

    java_class = "java.lang.Exception"


class ClassCast(RocketMQError):
    """java.lang.ClassCastException."""

    java_class = "java.lang.ClassCastException"


class MQFilterError(RocketMQError):
    """org.apache.rocketmq.filter.expression.MQFilterException: a filter expression that does not compile."""

    java_class = "org.apache.rocketmq.filter.expression.MQFilterException"


class StringIndexOutOfBounds(RocketMQError):
    """java.lang.StringIndexOutOfBoundsException."""

    java_class = "java.lang.StringIndexOutOfBoundsException"


class FilterParseError(RocketMQError):
    """org.apache.rocketmq.filter.parser.ParseException."""

    java_class = "org.apache.rocketmq.filter.parser.ParseException"


class FilterTokenError(RocketMQError):
    """org.apache.rocketmq.filter.parser.TokenMgrError: a character that starts no token of the filter language."""

    java_class = "org.apache.rocketmq.filter.parser.TokenMgrError"


class StackOverflow(RocketMQError):
    """java.lang.StackOverflowError."""

    java_class = "java.lang.StackOverflowError"


@contextmanager
def arguments_named() -> Iterator[None]:
    """Let an InputError name the argument of a function, lose_master, in place of the option, --lose-master.

    Commands, which are in backticks, keep their options.
    """
    try:
        yield
    except InputErrors as error:
        raise InputErrors([_with_arguments(message) for message in error.messages]) from None
    except InputError as error:
        raise InputError(_with_arguments(str(error))) from None


def _with_arguments(message: str) -> str:
    """Return a message with arguments in place of options.

    >>> _with_arguments("--lose-master needs --at; `mqreplay findings --cluster c` lists them")
    'lose_master needs at; `mqreplay findings --cluster c` lists them'
    """
    return re.sub(r"(`[^`]*`)|--([a-z][a-z-]*)", lambda part: part[1] or part[2].replace("-", "_"), message)
