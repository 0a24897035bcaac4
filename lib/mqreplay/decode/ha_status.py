"""ha_status: answers of brokers of 5.x to GET_BROKER_HA_STATUS, the slaves of a master and what each has confirmed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mqreplay.core.java import LONG_MAX, LONG_MIN
from mqreplay.decode.body import answer_of, items_of
from mqreplay.decode.columns import PlainColumns, instant_field, missing
from mqreplay.decode.fastjson_text import Key, Value
from mqreplay.decode.fields import bool_field, int_field, object_of, text_field
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import Kind

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, response_ts timestamp_ms, broker_name string not null, broker_id bigint not null,
    broker_addr string, response_code int, error string
    """
)
_OF_MASTER: Final = {
    "master_end": "bigint",
    "in_sync_slaves": "int",
    "slaves": (
        "array<struct<addr:string,confirmed_offset:bigint,behind_bytes:bigint,in_sync:boolean,"
        "bytes_per_second:bigint,transfer_offset:bigint>>"
    ),
}
_OF_SLAVE: Final = {
    "master_addr": "string",
    "log_end": "bigint",
    "master_flushed_offset": "bigint",
    "last_read_ts": "timestamp_ms",
    "last_write_ts": "timestamp_ms",
}
_OF_BODY: Final = {"is_master": "boolean", **_OF_MASTER, **_OF_SLAVE}
COLUMNS: Final = {**_PLAIN.types, **_OF_BODY}
_TIMES: Final = PlainColumns("last_read_ts timestamp_ms, last_write_ts timestamp_ms")


def decode_ha_status(line: bytes) -> dict[str, object]:
    """Return the columns of one line of ha_status: times in epoch ms, offsets of the commit log in bytes.

    ``slaves`` has a tuple a connection, its fields as `COLUMNS` names them, in the body's order. Columns of a master
    are None for a slave, and those of a slave for a master. Source: HARuntimeInfo, DefaultHAService#getRuntimeInfo.

    Raises:
        DecodeError: see `mqreplay.decode.jsonl`, `body_of` and `PlainColumns.take`.

    >>> line = (b'{"ts":1795228830217,"broker_name":"b","broker_id":0,"body":{"haConnectionInfo":[{"addr":"h:5",'
    ...         b'"diff":7,"inSync":true,"slaveAckOffset":93,"transferFromWhere":100,"transferredByteInSecond":0}],'
    ...         b'"inSyncSlaveNums":1,"master":true,"masterCommitLogMaxOffset":100}}')
    >>> status = decode_ha_status(line)
    >>> status["master_end"], status["slaves"], status["log_end"]
    (100, [('h:5', 93, 7, True, 0, 100)], None)
    """
    record = read_object(line)
    status = dict.fromkeys(_OF_BODY) | _PLAIN.take(record)
    body = answer_of(record)
    if body is None:
        return status
    if body.get("master") is None:
        raise missing("master in body")
    status["is_master"] = bool_field(body, "master", False)
    return status | (_of_master(body) if status["is_master"] else _of_slave(body))


def _of_master(body: Mapping[Key, Value]) -> dict[str, object]:
    return {
        "master_end": _offset(body, "masterCommitLogMaxOffset"),
        "in_sync_slaves": int_field(body, "inSyncSlaveNums", 0, low=-1),
        "slaves": [_slave(object_of(each, "haConnectionInfo")) for each in items_of(body, "haConnectionInfo")],
    }


def _slave(each: Mapping[Key, Value]) -> tuple[object, ...]:
    if each.get("inSync") is None:
        raise missing("inSync")
    return (
        text_field(each, "addr", None),
        _offset(each, "slaveAckOffset"),
        _offset(each, "diff"),
        bool_field(each, "inSync", False),
        _offset(each, "transferredByteInSecond"),
        _offset(each, "transferFromWhere"),
    )


def _of_slave(body: Mapping[Key, Value]) -> dict[str, object]:
    client = object_of(body.get("haClientRuntimeInfo") or {}, "haClientRuntimeInfo")
    # 0: nothing was read or written on this connection.
    times = {
        "last_read_ts": instant_field(client, "lastReadTimestamp", 0) or None,
        "last_write_ts": instant_field(client, "lastWriteTimestamp", 0) or None,
    }
    return {
        "master_addr": text_field(client, "masterAddr", None),
        "log_end": _offset(client, "maxOffset"),
        "master_flushed_offset": _offset(client, "masterFlushOffset"),
        **_TIMES.take(times),
    }


def _offset(fields: Mapping[Key, Value], name: str) -> int:
    if fields.get(name) is None:
        raise missing(name)
    return int_field(fields, name, 0, LONG_MIN, LONG_MAX)


KIND: Final = Kind(
    stem="ha_status",
    table="silver.ha_status",
    label="states of the slaves by their masters",
    decode=decode_ha_status,
    columns=COLUMNS,
    required=_PLAIN.required,
    by_recorder=True,
    phrases=(
        "no answer: {error}",
        ("{in_sync_slaves:,} slaves in sync, log ends at {master_end:,} bytes", "log ends at {log_end:,} bytes"),
    ),
)
