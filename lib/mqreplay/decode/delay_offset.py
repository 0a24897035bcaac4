"""delayOffset.json of a broker: the delivered offset of each delay level of SCHEDULE_TOPIC_XXXX."""

from __future__ import annotations

from typing import NamedTuple

from mqreplay.decode.fastjson_text import read_fastjson
from mqreplay.decode.fields import DataVersion, bare_int, data_version_of, object_of, table_of, wrong_type
from mqreplay.words.errors import DecodeError


class DelayOffset(NamedTuple):
    """A delay level (1 and up; its queue is level - 1) and its offset in messages."""

    delay_level: int
    offset: int


class DelayOffsets(NamedTuple):
    """The rows of one delayOffset.json, in the order written, and the version of the table."""

    rows: list[DelayOffset]
    data_version: DataVersion


def decode_delay_offset(data: bytes) -> DelayOffsets:
    """Return the levels in the bytes of a delayOffset.json of 4.9 or 5.x.

    Source: ScheduleMessageService.encode, DelayOffsetSerializeWrapper.

    Raises:
        DecodeError: torn, foreign (no offsetTable), wrong_type, bad_number and those of fastjson_text.

    >>> decode_delay_offset(b'{"offsetTable":{3:3,4:6}}').rows
    [DelayOffset(delay_level=3, offset=3), DelayOffset(delay_level=4, offset=6)]
    """
    root = read_fastjson(data)
    rows: dict[int, DelayOffset] = {}
    for key, value in table_of(root, "offsetTable").items():
        level = bare_int(key, "a delay level")
        if level in rows:
            raise DecodeError("duplicate_key", f"delay level {level} is there twice")
        if type(value) is not int:
            raise wrong_type(f"the offset of delay level {level}", "a whole number", value)
        rows[level] = DelayOffset(level, value)
    return DelayOffsets(list(rows.values()), data_version_of(object_of(root, "delayOffset.json")))
