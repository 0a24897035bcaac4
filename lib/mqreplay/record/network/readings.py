"""Readings of answers: the fields of a line, a signature to detect changes, and facts for the recorder."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final, NamedTuple

from mqreplay.errors import DecodeError
from mqreplay.record.network.answers import (
    Connected,
    read_brokers,
    read_caches,
    read_connected,
    read_ha_status,
    read_max_offsets,
    read_members,
    read_names,
    read_properties,
    read_queue_counts,
    read_route,
    read_runtime,
    read_topic_list,
    running_signature,
    table_signature,
    text_of_body,
)
from mqreplay.record.network.bounded import MOST_DIGITS, is_long
from mqreplay.record.network.schedule import Target
from mqreplay.record.remoting.connection import CallFailed
from mqreplay.record.remoting.frames import SUCCESS, Answer

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


def identity(target: Target) -> dict[str, Any]:
    """Return the fields that name the request and its target."""
    fields: dict[str, Any] = {}
    if target.broker is not None:
        fields |= {"broker_name": target.broker[0], "broker_id": target.broker[1]}
    match target.kind:
        case "proxy_members":
            fields |= {"proxy_addr": target.addr, "consumer_group": target.subject}
        case "runtime" | "members" | "ha_status":
            fields["broker_addr"] = target.addr
        case "running_info":
            fields |= {"broker_addr": target.addr, "client_id": target.client_id, "source": "running_info"}
        case "cluster_info" | "route":
            fields["namesrv_addr"] = target.addr
    match target.kind:
        case "route" | "topic_offsets":
            fields["topic"] = target.subject
        case "members" | "connections" | "running_info" | "consume_stats":
            fields["consumer_group"] = target.subject
    return fields


def silence(failure: CallFailed) -> Reading:
    """Return the reading of a request without an answer."""
    return Reading({"error": failure.detail}, ("no answer", failure.kind), None, failure.detail, True)


def unasked(error: DecodeError) -> Reading:
    """Return the reading of a request that cannot be made."""
    detail = f"the request is invalid: {error}"
    return Reading({"error": detail}, ("unasked", error.code), None, detail, True)


def reading(target: Target, answer: Answer) -> Reading:
    """Return the reading of an answer. A body of another form is an error and is not kept."""
    if answer.code != SUCCESS:
        return _refused(target, answer)
    try:
        return _read(target, answer.body)
    except DecodeError as error:
        detail = f"the answer cannot be read: {error}"
        return Reading({"error": detail}, ("unreadable", error.code), None, detail)


def queue_reading(answers: Mapping[int, Answer], least: Mapping[int, Answer]) -> Reading:
    """Return the reading of answers to 30, and to 31 if it was asked, by queue id."""
    rows, offsets = [], {}
    for queue_id, answer in sorted(answers.items()):
        if answer.code != SUCCESS:
            return _with_error(answer)
        offset, lowest = _offset(answer), _offset(least[queue_id]) if queue_id in least else None
        if offset is None:
            return Reading({"error": "the answer has no offset"}, "no offset", None, "the answer has no offset")
        rows.append({"queue_id": queue_id, "min_offset": lowest, "max_offset": offset})
        offsets[queue_id] = offset
    # The smallest offsets are seldom asked: each answer with them counts.
    return Reading({"offsets": rows}, tuple(offsets.items()), offsets, is_kept=bool(least))


def _read(target: Target, body: bytes) -> Reading:
    match target.kind:
        case "cluster_info":
            brokers = read_brokers(body)
            return Reading({"body": text_of_body(body)}, frozenset(brokers.addrs.items()), brokers)
        case "topic_list":
            return Reading({}, None, read_topic_list(body))
        case "route":
            return Reading({"response_code": SUCCESS, "body": text_of_body(body)}, read_route(body))
        case "runtime":
            table = read_runtime(body)
            return Reading({"table": table}, None, table)
        case "topics":
            return Reading({}, table_signature(body), read_queue_counts(body))
        case "groups":
            return Reading({}, table_signature(body), read_names(body, "subscriptionGroupTable"))
        case "delays":
            return Reading({}, table_signature(body), read_names(body, "offsetTable"))
        case "modes":
            read_names(body, "messageRequestModeMap")
            return Reading({}, table_signature(body), True)
        case "ha_status":
            read_ha_status(body)
            return Reading({"body": text_of_body(body)}, None, True)
        case "config" | "name_server_config":
            return Reading({}, None, read_properties(body))
        case "members":
            ids = read_members(body)
            return Reading({"response_code": SUCCESS, "body": text_of_body(body)}, ids, frozenset(ids))
        case "connections" | "proxy_members":
            connected = read_connected(body)
            return Reading({"response_code": SUCCESS, "body": text_of_body(body)}, connected.signature, connected)
        case "running_info":
            fields, caches = {"response_code": SUCCESS, "body": text_of_body(body)}, read_caches(body)
            return Reading(fields, running_signature(body), True, is_kept=caches.is_large, heads=caches.heads)
        case "topic_offsets":
            return Reading({"body": text_of_body(body)}, body, read_max_offsets(body))
        case "consume_stats":
            return Reading({"body": text_of_body(body)})
    raise ValueError(f"{target.kind!r} is not a kind of poll")


def _refused(target: Target, answer: Answer) -> Reading:
    """Return the reading of an answer with an error code. A group without members is not an error."""
    if answer.denied is not None:
        return _with_error(answer)
    fields = {"response_code": answer.code, "remark": answer.remark}
    match target.kind:
        case "members":
            return Reading(fields, ("code", answer.code), frozenset())
        case "modes" | "ha_status" if answer.code == NOT_SUPPORTED or (answer.remark or "").startswith(NO_HA):
            return Reading(fields, ("code", answer.code), False)
        case "proxy_members" if answer.code == NOT_ONLINE:
            return Reading(fields, ("code", answer.code), Connected({}, frozenset(), None))
        case "connections" | "route":
            return Reading(fields, ("code", answer.code))
        case "running_info":
            error = answer.remark or f"response code {answer.code}"
            return Reading(fields | {"error": error}, ("code", answer.code), None, error)
    return _with_error(answer)


def _with_error(answer: Answer) -> Reading:
    denied = answer.denied
    remark = f": {answer.remark}" if answer.remark else ""
    error = f"access denied: {denied}" if denied is not None else f"response code {answer.code}{remark}"
    fields = {"error": error, "response_code": answer.code}
    return Reading(fields, ("code", answer.code), None, error)


def _offset(answer: Answer) -> int | None:
    text = answer.fields.get("offset", "")
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS):
        return None
    return int(text) if is_long(int(text)) else None
