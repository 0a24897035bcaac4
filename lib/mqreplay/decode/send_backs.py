"""other_requests: CONSUMER_SEND_MSG_BACK, with which a consumer returns a message that it could not process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mqreplay.decode.body import body_of
from mqreplay.decode.columns import PlainColumns, missing
from mqreplay.decode.fastjson_text import Key, Value
from mqreplay.decode.fields import text_field, wrong_type
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import ON_BROKER, Kind
from mqreplay.words.errors import DecodeError

CONSUMER_SEND_MSG_BACK: Final = 36
_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, response_ts timestamp_ms, client_id string not null, mode string, broker_name string,
    broker_addr string, broker_id bigint, request_code int not null, response_code int, remark string, error string
    """
)
_OF_HEADER: Final = PlainColumns(
    """
    consumer_group string not null, topic string, msg_id string, commitlog_offset bigint not null,
    delay_level int not null, max_reconsume_times int, unit_mode boolean
    """
)
COLUMNS: Final = {**{name: of for name, of in _PLAIN.types.items() if name != "request_code"}, **_OF_HEADER.types}
REQUIRED: Final = ("ts", "client_id", "consumer_group", "commitlog_offset", "delay_level")
# Our names of the fields of ConsumerSendMsgBackRequestHeader.
_TEXTS: Final = {"consumer_group": "group", "topic": "originTopic", "msg_id": "originMsgId"}
_NUMBERS: Final = {
    "commitlog_offset": "offset",
    "delay_level": "delayLevel",
    "max_reconsume_times": "maxReconsumeTimes",
}


def decode_send_back(line: bytes) -> dict[str, object]:
    """Return the columns of one line of other_requests; times in epoch ms, commitlog_offset in bytes.

    ``header`` has the fields of the request's header, whose numbers may be text, as on the wire. ``msg_id`` is the id
    that the client made (UNIQ_KEY), which stays the same in all retries. Source: ConsumerSendMsgBackRequestHeader,
    DefaultMQPushConsumerImpl#sendMessageBack.

    Raises:
        DecodeError: unknown_kind (another request), missing_field, and those of `mqreplay.decode.jsonl`, `body_of` and
            `PlainColumns.take`.

    >>> line = (b'{"ts":1795228827333,"client_id":"c","request_code":36,'
    ...         b'"header":{"offset":34801,"group":"g","delayLevel":0,"maxReconsumeTimes":2}}')
    >>> sent = decode_send_back(line)
    >>> sent["consumer_group"], sent["commitlog_offset"], sent["max_reconsume_times"]
    ('g', 34801, 2)
    """
    record = read_object(line)
    sent = _PLAIN.take(record)
    code = sent.pop("request_code")
    if code != CONSUMER_SEND_MSG_BACK:
        raise DecodeError("unknown_kind", f"request_code should be {CONSUMER_SEND_MSG_BACK}, and is {code}")
    header = body_of(record, "header")
    if header is None:
        raise missing("header")
    named: dict[str, object] = {ours: text_field(header, theirs, None) for ours, theirs in _TEXTS.items()}
    named |= {ours: _number(header, theirs) for ours, theirs in _NUMBERS.items()}
    named["unit_mode"] = _boolean(header, "unitMode")
    return sent | _OF_HEADER.take(named)


def _number(fields: Mapping[Key, Value], name: str) -> object:
    """Return a number that may be text; another text as it is: `PlainColumns.take` refuses it."""
    value = fields.get(name)
    is_number = isinstance(value, str) and value.removeprefix("-").isdecimal() and value.isascii() and len(value) <= 20
    return int(str(value)) if is_number else value


def _boolean(fields: Mapping[Key, Value], name: str) -> bool | None:
    value = fields.get(name)
    if value is None or isinstance(value, bool):
        return value
    if value not in ("true", "false"):
        raise wrong_type(name, "true or false", value)
    return value == "true"


KIND: Final = Kind(
    stem="other_requests",
    table="silver.send_back",
    label="messages that consumers sent back",
    decode=decode_send_back,
    columns=COLUMNS,
    required=REQUIRED,
    phrases=(
        "message {msg_id} of {topic} sent back",
        ON_BROKER,
        "delay level {delay_level}",
        "maxReconsumeTimes {max_reconsume_times}",
        ("refused: {remark}", "{error}"),
    ),
)
