"""The records of a call in the form of a recorder's JSONL files: fields for `mqreplay.decode.kinds`.

Missing data is left out: an answer that the capture lacks is not an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from mqreplay.decode.body import body_of
from mqreplay.decode.capture import codes
from mqreplay.decode.capture.calls import Call
from mqreplay.decode.capture.commands import Command
from mqreplay.decode.capture.headers import numbers_of
from mqreplay.decode.capture.names import Names
from mqreplay.decode.capture.sends import send_fields, stored_fields
from mqreplay.decode.fields import object_of, wrong_type

Fields = dict[str, object]
# Fields of a pull's and a commit's header, by RocketMQ's and our names. Numbers are text on the wire.
_PULL: Final = {
    "queueId": "queue_id",
    "queueOffset": "queue_offset",
    "commitOffset": "commit_offset",
    "sysFlag": "sys_flag",
    "maxMsgNums": "max_msg_nums",
    "suspendTimeoutMillis": "suspend_timeout_ms",
    "subVersion": "sub_version",
}
_PULLED: Final = {
    "nextBeginOffset": "next_begin_offset",
    "minOffset": "min_offset",
    "maxOffset": "max_offset",
    "suggestWhichBrokerId": "suggest_which_broker_id",
}
_POP: Final = {
    "queueId": "asked_queue_id",
    "maxMsgNums": "max_msg_nums",
    "invisibleTime": "invisible_time_ms",
    "pollTime": "poll_time_ms",
    "initMode": "init_mode",
}
_POPPED: Final = {
    "popTime": "pop_ts",
    "invisibleTime": "answer_invisible_time_ms",
    "reviveQid": "revive_queue_id",
    "restNum": "rest_num",
}
_INFO: Final = {"startOffsetInfo": "start_offset_info", "msgOffsetInfo": "msg_offset_info"}
_ACKS: Final = {
    codes.ACK_MESSAGE: "ACK",
    codes.BATCH_ACK_MESSAGE: "BATCH_ACK",
    codes.CHANGE_MESSAGE_INVISIBLETIME: "CHANGE_INVISIBLE_TIME",
}


class Unnamed(Exception):
    """The capture does not show to whom the call belongs; the first argument is the missing fact."""


class Cut(Exception):
    """The capture has only a part of a required body."""


def has_record(call: Call) -> bool:
    """Return whether a decision may use a call."""
    return call.request.code in _RECORDS or call.request.code in codes.FROM_BROKERS


def record_of(call: Call, names: Names) -> tuple[str, Fields] | None:
    """Return the stem of the JSONL file and the record's fields; None for a call that no decision uses.

    The call is one of `mqreplay.decode.capture.messages.without_messages`.

    Raises:
        Unnamed, Cut: the data for a record is incomplete.
        DecodeError: a body does not match its request's code.
    """
    if call.request.code in codes.FROM_BROKERS:
        return "server_requests", _server_request(call, names)
    make = _RECORDS.get(call.request.code)
    return None if make is None else make(call, names)


def _ms(us: int) -> int:
    return us // 1000


def _times(call: Call, begin: str = "ts") -> Fields:
    times: Fields = {begin: _ms(call.request.begin_us)}
    if call.response is not None:
        times["response_ts"] = _ms(call.response.end_us)
    return times


def _answer(call: Call) -> Fields:
    answer = call.response
    if answer is None:
        return {}
    return {"response_code": answer.code, "remark": answer.remark}


def _named_answer(call: Call) -> Fields:
    answer = call.response
    return {} if answer is None else _answer(call) | {"response_name": codes.RESPONSES.get(answer.code)}


def _client(call: Call, names: Names) -> str:
    client_id = names.client(call.connection)
    if client_id is None:
        raise Unnamed("the client of its connection: no heartbeat on it")
    return client_id


def _broker(call: Call, names: Names, address: str | None = None) -> Fields:
    """Return the broker at ``address``, else the one that was asked."""
    at = call.asked if address is None else address
    broker = names.broker(at, call.request.begin_us)
    if broker is None:
        raise Unnamed(f"the broker at {at}: no route or registration has it")
    return {"broker_name": broker.broker_name, "broker_addr": at, "broker_id": broker.broker_id}


def _text(command: Command) -> str | None:
    if not command.is_whole:
        raise Cut
    return command.body.decode("utf-8", "replace") if command.body else None


def _body(call: Call) -> str | None:
    return None if call.response is None else _text(call.response)


def _mode(call: Call) -> str:
    return "oneway" if call.request.is_oneway else "sync"


def _pull(call: Call, names: Names) -> tuple[str, Fields]:
    ext, answer = call.request.ext, call.response
    asked = _broker(call, names)
    fields = _times(call, "request_ts") | {"client_id": _client(call, names)} | asked | {"opaque": call.request.opaque}
    fields |= {
        "consumer_group": ext.get("consumerGroup"),
        "topic": ext.get("topic"),
        # A slave has its master's name, so it is also the queue's if the request lacks it.
        "broker_name": ext.get("bname", asked["broker_name"]),
        "expression": ext.get("subscription"),
        "expression_type": ext.get("expressionType"),
    }
    fields |= numbers_of(ext, _PULL) | _named_answer(call)
    if answer is not None:
        fields |= numbers_of(answer.ext, _PULLED) | {"body_bytes": answer.body_bytes}
        fields |= call.messages
    return "pull_log", fields


def _send(call: Call, names: Names) -> tuple[str, Fields]:
    request, answer = call.request, call.response
    # A proxy sends for many producers on one connection, which no heartbeat names.
    fields = _times(call) | {"client_id": names.client(call.connection), "client_addr": call.asker}
    fields |= {"mode": _mode(call), "size": request.body_bytes} | _broker(call, names) | _named_answer(call)
    fields |= send_fields(request.ext, is_batch=request.code == codes.SEND_BATCH_MESSAGE)
    if fields["is_batch"]:
        fields |= {"batch": call.messages}
    return "sends", fields if answer is None else fields | stored_fields(answer.ext)


def _offset(call: Call, names: Names) -> tuple[str, Fields]:
    ext, asked = call.request.ext, _broker(call, names)
    update = call.request.code == codes.UPDATE_CONSUMER_OFFSET
    fields = _times(call) | {"kind": "UPDATE" if update else "QUERY", "mode": _mode(call)}
    fields |= {"client_id": _client(call, names)} | asked
    fields |= {
        "consumer_group": ext.get("consumerGroup"),
        "topic": ext.get("topic"),
        "broker_name": ext.get("bname", asked["broker_name"]),
    }
    fields |= numbers_of(ext, {"queueId": "queue_id", "commitOffset": "commit_offset"}) | _named_answer(call)
    if call.response is not None and not update:
        fields |= numbers_of(call.response.ext, {"offset": "answer_offset"})
    return "offset_commits", fields


def _offset_lookup(call: Call, names: Names) -> tuple[str, Fields] | None:
    client_id = names.client(call.connection)
    if client_id is None:  # an admin tool, which asks often
        return None
    ext, asked = call.request.ext, _broker(call, names)
    kind = "MAX" if call.request.code == codes.GET_MAX_OFFSET else "SEARCH"
    fields = _times(call) | {"kind": kind, "client_id": client_id} | asked | _answer(call)
    fields |= {"topic": ext.get("topic"), "broker_name": ext.get("bname", asked["broker_name"])}
    fields |= numbers_of(ext, {"queueId": "queue_id", "timestamp": "searched_ts"})
    if call.response is not None:
        fields |= numbers_of(call.response.ext, {"offset": "answer_offset"})
    return "offset_lookups", fields


def _heartbeat(call: Call, names: Names) -> tuple[str, Fields]:
    fields = _times(call) | {"client_id": _client(call, names), "mode": _mode(call)} | _broker(call, names)
    fields |= _answer(call) | {"language": call.request.language}
    if call.request.code == codes.HEART_BEAT:
        return "heartbeats", fields | {"kind": "HEART_BEAT", "body": _text(call.request)}
    return "heartbeats", fields | {"kind": "UNREGISTER_CLIENT", "header": dict(call.request.ext)}


def _send_back(call: Call, names: Names) -> tuple[str, Fields]:
    fields = _times(call) | {"client_id": _client(call, names), "mode": _mode(call)} | _broker(call, names)
    fields |= _answer(call) | {"request_code": call.request.code, "header": dict(call.request.ext)}
    return "other_requests", fields


def _consumer_list(call: Call, names: Names) -> tuple[str, Fields]:
    fields = _times(call) | {"client_id": names.client(call.connection)} | _broker(call, names) | _answer(call)
    group = {"consumer_group": call.request.ext.get("consumerGroup")}
    return "consumer_lists", fields | group | {"body": _body(call)}


def _route(call: Call, names: Names) -> tuple[str, Fields]:
    client_id = names.client(call.connection) or names.client_of_host(call.asker)
    fields = _times(call) | {"client_id": client_id, "namesrv_addr": call.asked} | _answer(call)
    return "routes", fields | {"topic": call.request.ext.get("topic"), "body": _body(call)}


def _lock(call: Call, names: Names) -> tuple[str, Fields]:
    kind = "LOCK_BATCH_MQ" if call.request.code == codes.LOCK_BATCH_MQ else "UNLOCK_BATCH_MQ"
    fields = _times(call) | {"kind": kind, "mode": _mode(call)} | _broker(call, names) | _answer(call)
    return "lock_requests", fields | {"request": _text(call.request), "response": _body(call)}


def _server_request(call: Call, names: Names) -> Fields:
    request = call.request
    fields: Fields = {"ts": _ms(request.begin_us), "client_id": _client(call, names)} | _broker(call, names, call.asker)
    fields |= {"request_code": request.code, "name": codes.FROM_BROKERS[request.code], "ext": dict(request.ext)}
    return fields | {"body": _text(request)}


def _runtime(call: Call, names: Names) -> tuple[str, Fields] | None:
    answered = call.response
    if answered is None or answered.code:
        return None
    answer = body_of({"body": _text(answered)}, "body") or {}  # KVTable
    table = answer.get("table")
    figures = {} if table is None else object_of(table, "table")
    if not all(isinstance(text, str) for figure in figures.items() for text in figure):
        raise wrong_type("table", "an object of strings", table)
    fields = {"ts": _ms(answered.end_us)} | _broker(call, names)
    return "broker_runtime", fields | {"full": True, "table": table}


def _ha_status(call: Call, names: Names) -> tuple[str, Fields] | None:
    if call.response is None or call.response.code:
        return None
    return "ha_status", _times(call) | _broker(call, names) | {"body": _body(call)}


def _cluster_info(call: Call, _: Names) -> tuple[str, Fields] | None:
    if call.response is None or call.response.code:
        return None
    return "cluster_info", {"ts": _ms(call.response.end_us), "namesrv_addr": call.asked, "body": _body(call)}


def _topic_stats(call: Call, names: Names) -> tuple[str, Fields] | None:
    if call.response is None or call.response.code:
        return None
    fields = {"ts": _ms(call.response.end_us), "topic": call.request.ext.get("topic")} | _broker(call, names)
    return "topic_stats", fields | {"body": _body(call)}


def _pop(call: Call, names: Names) -> tuple[str, Fields]:
    # A proxy asks for many clients on one connection: their ids are not on the wire.
    ext, answer, asked = call.request.ext, call.response, _broker(call, names)
    fields = _times(call, "request_ts") | {"client_id": names.client(call.connection)} | asked
    fields |= {"broker_name": ext.get("bname", asked["broker_name"])} | _of_group(ext)
    fields |= {"expression": ext.get("exp"), "expression_type": ext.get("expType"), "attempt_id": ext.get("attemptId")}
    fields |= {"is_order": ext.get("order") == "true"} | numbers_of(ext, _POP) | _named_answer(call)
    if answer is not None:
        fields |= numbers_of(answer.ext, _POPPED) | {ours: answer.ext.get(theirs) for theirs, ours in _INFO.items()}
        fields |= {"messages": call.messages}
    return "pop_log", fields


def _pop_ack(call: Call, names: Names) -> tuple[str, Fields]:
    ext, answer, asked = call.request.ext, call.response, _broker(call, names)
    kind = _ACKS[call.request.code]
    fields = _times(call) | {"kind": kind, "client_id": names.client(call.connection)} | asked | _named_answer(call)
    fields |= _of_group(ext) | {"extra_info": ext.get("extraInfo")}
    fields |= numbers_of(ext, {"offset": "queue_offset", "invisibleTime": "invisible_time_ms"})
    if kind == "BATCH_ACK":
        fields |= {"body": _text(call.request)}
    elif answer is not None:
        fields |= numbers_of(answer.ext, _POPPED)
    return "pop_acks", fields


def _pop_assignment(call: Call, names: Names) -> tuple[str, Fields]:
    fields = _times(call) | _broker(call, names) | _answer(call)
    return "pop_assignments", fields | {"request": _text(call.request), "response": _body(call)}


def _of_group(ext: Mapping[str, str]) -> Fields:
    return {"consumer_group": ext.get("consumerGroup"), "topic": ext.get("topic")}


_RECORDS: Final[Mapping[int, Callable[[Call, Names], tuple[str, Fields] | None]]] = {
    **dict.fromkeys(codes.SENDS, _send),
    **dict.fromkeys(codes.PULLS, _pull),
    codes.QUERY_CONSUMER_OFFSET: _offset,
    codes.UPDATE_CONSUMER_OFFSET: _offset,
    codes.GET_MAX_OFFSET: _offset_lookup,
    codes.SEARCH_OFFSET_BY_TIMESTAMP: _offset_lookup,
    codes.GET_BROKER_RUNTIME_INFO: _runtime,
    codes.GET_BROKER_HA_STATUS: _ha_status,
    codes.HEART_BEAT: _heartbeat,
    codes.UNREGISTER_CLIENT: _heartbeat,
    codes.CONSUMER_SEND_MSG_BACK: _send_back,
    codes.GET_CONSUMER_LIST_BY_GROUP: _consumer_list,
    codes.LOCK_BATCH_MQ: _lock,
    codes.UNLOCK_BATCH_MQ: _lock,
    codes.GET_ROUTEINFO_BY_TOPIC: _route,
    codes.GET_BROKER_CLUSTER_INFO: _cluster_info,
    codes.GET_TOPIC_STATS_INFO: _topic_stats,
    codes.QUERY_ASSIGNMENT: _pop_assignment,
    codes.POP_MESSAGE: _pop,
    **dict.fromkeys(_ACKS, _pop_ack),
}
