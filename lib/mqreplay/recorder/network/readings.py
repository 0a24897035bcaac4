"""Readings of answers: the fields of a line, a signature to detect changes, and facts for the recorder."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, NamedTuple

from mqreplay.recorder.network.answers import Connected
from mqreplay.recorder.remoting.connection import CallFailed
from mqreplay.recorder.remoting.frames import Answer
from mqreplay.words.errors import DecodeError

NOT_ONLINE: Final = 206  # CONSUMER_NOT_ONLINE
NO_HA: Final = "Can not get HARuntimeInfo"  # a broker of 5.x with DLedger
NOT_SUPPORTED: Final = 3  # REQUEST_CODE_NOT_SUPPORTED: brokers before 5.0


class Reading(NamedTuple):
    """An answer, or the reason why there is none.

    ``fields`` are those of the line except times; ``fact`` is what the recorder learns, None for nothing; ``error`` is
    the reason if the answer lacks the requested data. ``is_silence``: the server did not answer. ``is_kept``: the line
    is written also if nothing changed. ``heads``: values that usually change; one that did not is written.
    """

    fields: dict[str, Any]
    signature: Hashable = None
    fact: Any = None
    error: str | None = None
    is_silence: bool = False
    is_kept: bool = False
    heads: frozenset[Hashable] = frozenset()


def silence(failure: CallFailed) -> Reading:
    """Return the reading of a request without an answer."""
    return Reading({"error": failure.detail}, ("no answer", failure.kind), None, failure.detail, True)


def unasked(error: DecodeError) -> Reading:
    """Return the reading of a request that cannot be made."""
    detail = f"the request is invalid: {error}"
    return Reading({"error": detail}, ("unasked", error.code), None, detail, True)


def with_error(answer: Answer) -> Reading:
    """Return the reading of an error code that is an error."""
    denied = answer.denied
    remark = f": {answer.remark}" if answer.remark else ""
    error = f"access denied: {denied}" if denied is not None else f"response code {answer.code}{remark}"
    return Reading({"error": error, "response_code": answer.code}, ("code", answer.code), None, error)


def code_as_value(answer: Answer) -> Reading:
    """Return the reading of an error code that is an answer, such as that of a topic without a route."""
    return Reading({"response_code": answer.code, "remark": answer.remark}, ("code", answer.code))


def no_members(answer: Answer) -> Reading:
    """Return the reading of an error code of a broker that knows no member of a group."""
    return code_as_value(answer)._replace(fact=frozenset())


def not_online(answer: Answer) -> Reading:
    """Return the reading of an error code of a proxy: it may know no member of the group."""
    if answer.code != NOT_ONLINE:
        return with_error(answer)
    return code_as_value(answer)._replace(fact=Connected({}, frozenset(), None))


def unsupported(answer: Answer) -> Reading:
    """Return the reading of an error code of a broker that may not know the request."""
    if answer.code == NOT_SUPPORTED or (answer.remark or "").startswith(NO_HA):
        return code_as_value(answer)._replace(fact=False)
    return with_error(answer)


def error_of_client(answer: Answer) -> Reading:
    """Return the reading of an error code of a client, or of a broker that cannot reach it."""
    error, value = answer.remark or f"response code {answer.code}", code_as_value(answer)
    return value._replace(fields=value.fields | {"error": error}, error=error)
