"""broker_runtime: a broker's runtime table, polled each second; null and an error while it is down."""

from __future__ import annotations

from typing import Final

from mqreplay.core.java import LONG_MAX, LONG_MIN
from mqreplay.decode.body import body_of
from mqreplay.decode.columns import TIME_MAX, TIME_MIN, PlainColumns
from mqreplay.decode.fields import str_of, wrong_type
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import AGAIN, RECORD, Kind, RecordingWays
from mqreplay.words.errors import DecodeError

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, broker_name string not null, broker_id bigint not null, broker_addr string,
    full boolean, error string, source string
    """
)
# The error of a row that a name server's log gives: it removed the broker, which may live. The reason follows.
NAME_SERVER_LOST: Final = "a name server lost it: "
EXPIRED: Final = "2 minutes without a registration"
# Figures that become numeric columns: column, name in the broker's table.
FIGURES: Final = {
    "commit_log_min_offset": "commitLogMinOffset",
    "commit_log_max_offset": "commitLogMaxOffset",
    "dispatch_behind_bytes": "dispatchBehindBytes",
    "msg_put_total_today_now": "msgPutTotalTodayNow",
    "msg_get_total_today_now": "msgGetTotalTodayNow",
    "put_message_times_total": "putMessageTimesTotal",
    "put_message_size_total": "putMessageSizeTotal",
    "put_message_failed_times": "putMessageFailedTimes",
    "put_message_entire_time_max": "putMessageEntireTimeMax",
    "page_cache_lock_time_mills": "pageCacheLockTimeMills",
    "pull_thread_pool_queue_size": "pullThreadPoolQueueSize",
    "send_thread_pool_queue_size": "sendThreadPoolQueueSize",
    "earliest_message_time_stamp": "earliestMessageTimeStamp",
}
# How full the disks of commit log and consume queues are, 0 to 1 (RunningStats).
DISKS: Final = ("commitLogDiskRatio", "consumeQueueDiskRatio")
COLUMNS: Final = {
    **_PLAIN.types,
    **dict.fromkeys(FIGURES, "bigint"),
    "boot_timestamp": "timestamp_ms",
    "broker_version_desc": "string",
    "table": "map<string,string>",
}


def decode_broker_runtime(line: bytes) -> dict[str, object]:
    """Return the columns of one line of broker_runtime: commit log offsets and sizes in bytes, times in ms.

    A missing figure is None, and so are all of them while the broker is down. The whole table is kept as
    text. Source: AdminBrokerProcessor.prepareRuntimeInfo, DefaultMessageStore.getRuntimeInfo.

    Raises:
        DecodeError: bad_number (a figure that is not a number), bad_time, and those of `mqreplay.decode.jsonl` and
            `PlainColumns.take`.

    >>> line = (b'{"ts":1795228794998,"broker_name":"b","broker_id":0,"table":{"commitLogMaxOffset":"5",'
    ...         b'"brokerVersionDesc":"V4_9_7"}}')
    >>> runtime = decode_broker_runtime(line)
    >>> runtime["commit_log_max_offset"], runtime["commit_log_min_offset"], runtime["broker_version_desc"]
    (5, None, 'V4_9_7')
    """
    record = read_object(line)
    runtime = _PLAIN.take(record)
    body = body_of(record, "table")
    table: dict[str, str] = {}
    for name, value in (body or {}).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise wrong_type(f"{name} in table", "a string", value)
        table[name] = value
    for column, name in FIGURES.items():
        runtime[column] = _figure(table, name, LONG_MIN, LONG_MAX, "bad_number")
    runtime["boot_timestamp"] = _figure(table, "bootTimestamp", TIME_MIN, TIME_MAX, "bad_time")
    runtime["broker_version_desc"] = table.get("brokerVersionDesc")
    runtime["table"] = None if body is None else table
    return runtime


def _figure(table: dict[str, str], name: str, low: int, high: int, code: str) -> int | None:
    text = table.get(name)
    if text is None:
        return None
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19) or not low <= int(text) <= high:
        raise DecodeError(code, f"{name} in table should be {low} to {high}, and is {str_of(text)}")
    return int(text)


KIND: Final = Kind(
    stem="broker_runtime",
    table="silver.broker_runtime",
    label="runtime figures of the brokers",
    decode=decode_broker_runtime,
    columns=COLUMNS,
    required=_PLAIN.required,
    by_recorder=True,
    renamed={"full": "full_table", "boot_timestamp": "boot_ts", "table": "runtime"},
    phrases=("no answer: {error}", "commit log ends at {commit_log_max_offset:,} bytes"),
    recording=RecordingWays(AGAIN, RECORD, importance=7),
)
