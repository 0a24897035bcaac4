"""messageRequestMode.json of a broker of 5.x: the groups that are set to receive messages by POP or by PULL."""

from __future__ import annotations

from typing import Final, NamedTuple

from mqreplay.decode.fastjson_text import read_fastjson
from mqreplay.decode.fields import int_field, object_of, table_of, text_field
from mqreplay.decode.kind import FileKind
from mqreplay.words.errors import DecodeError


class MessageRequestMode(NamedTuple):
    """The mode of a group for a topic, and to how many clients the broker gives each queue besides its own."""

    topic: str
    consumer_group: str
    mode: str
    pop_share_queue_num: int


def decode_message_request_mode(data: bytes) -> list[MessageRequestMode]:
    """Return the modes in the bytes of a messageRequestMode.json, or of an answer to 402, in the order written.

    A group without an entry has the broker's defaultMessageRequestMode. An absent field has the default of RocketMQ's
    SetMessageRequestModeRequestBody. Source: MessageRequestModeManager.

    Raises:
        DecodeError: torn, foreign, wrong_type, bad_number and those of fastjson_text.

    >>> decode_message_request_mode(b'{"messageRequestModeMap":{"t":{"g":{"mode":"POP","popShareQueueNum":2}}}}')
    [MessageRequestMode(topic='t', consumer_group='g', mode='POP', pop_share_queue_num=2)]
    """
    rows = []
    for topic, groups in table_of(read_fastjson(data), "messageRequestModeMap").items():
        for group, value in object_of(groups, str(topic)).items():
            if not isinstance(topic, str) or not isinstance(group, str):
                raise DecodeError("bad_key", "a quoted topic and group name are expected")
            body = object_of(value, group)
            mode = text_field(body, "mode", "PULL") or "PULL"
            share = int_field(body, "popShareQueueNum", 0, low=-(2**31))
            rows.append(MessageRequestMode(topic, group, mode, share))
    return rows


KIND: Final = FileKind(
    stem="message_request_modes",
    table="silver.message_request_mode",
    label="messageRequestMode.json",
    by_recorder=True,
)
