"""Rows of the tables and lists that mqadmin 4.9 and 5.x prints. Pure."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from mqreplay.errors import DecodeError

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
_HEAD = re.compile(r"\s+(?=#)")
_DATE_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2}) ([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[,.]([0-9]{3}))?|"
    r"([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{3})?"
)
_STATE = re.compile(r"(\w+)=([^,\]]*)")
_CAUSE = re.compile(r"(?:Caused by: )?(?:\w+\.)+(\w*Exception): (.*)")
_CODE = re.compile(r"CODE: ([0-9]+)\s+DESC: ([^\n]*)")


class QueueRow(NamedTuple):
    """A row of a queue: the queue, and the other columns by heading without ``#``."""

    topic: str
    broker_name: str
    queue_id: int
    columns: dict[str, str]


def failure_of(lines: Sequence[str]) -> str | None:
    """Return mqadmin's error message of a failed command; None if there is no exception.

    >>> failure_of(["Caused by: org.apache.MQClientException: CODE: 17  DESC: No topic route info"])
    'code 17: No topic route info'
    """
    first = None
    for line in lines:
        if (code := _CODE.search(line)) is not None:
            return f"code {code[1]}: {code[2].strip()}"
        if first is None and (cause := _CAUSE.match(line)) is not None:
            first = f"{cause[1]}: {cause[2].strip()}"
    return first


def queue_rows(lines: Sequence[str], heading: str, topic: str | None = None) -> tuple[list[QueueRow], int]:
    """Return the rows of a table of queues whose heading begins with ``heading``, and how many names may be cut.

    mqadmin cuts names at the column width, so a name of exactly that length may have been longer: such rows are left
    out. ``topic``: that of all rows, for a table without a topic column.

    Raises:
        DecodeError: bad_number or bad_row, for a row that mqadmin does not write.

    >>> table = ["#Topic   #Broker Name  #QID  #Broker Offset  #LastTime", "t  b  0  66  2026-11-21 02:42:14"]
    >>> queue_rows(table, "#Topic")[0][0].columns
    {'Broker Offset': '66', 'LastTime': '2026-11-21 02:42:14'}
    """
    begin = next((at for at, line in enumerate(lines) if line.startswith(heading)), None)
    if begin is None:
        raise DecodeError("no_table", f"there is no heading {heading}")
    head = _HEAD.split(lines[begin].strip())
    names = [name.removeprefix("#") for name in head]
    starts = [lines[begin].find(name) for name in head]
    of_topic = topic is None
    widths = [after - at - 2 for at, after in pairwise(starts)]
    rows, cut = [], 0
    for line in lines[begin + 1 :]:
        words = line.split()
        if not words or line.startswith("#"):
            break
        if len(words) < (3 if of_topic else 2):
            raise DecodeError("bad_row", f"a row of {len(words)} columns under {len(names)} headings")
        key = words[: 3 if of_topic else 2]
        if any(len(word) >= max(width, 8) for word, width in zip(key[:-1], widths, strict=False)):
            cut += 1
            continue
        rest = names[len(key) :]
        values = words[len(key) :]
        named = dict(zip(rest[:-1], values, strict=False))
        if rest and len(values) >= len(rest):
            named[rest[-1]] = " ".join(values[len(rest) - 1 :])
        of = key[0] if topic is None else topic
        rows.append(QueueRow(of, key[-2], whole(key[-1], "a queue id", 0, INT_MAX), named))
    return rows, cut


def whole(text: str | None, what: str, low: int = -(2**63), high: int = LONG_MAX) -> int:
    """Return a whole number. Raises DecodeError: bad_number.

    >>> whole("66", "an offset")
    66
    """
    digits = (text or "").removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19) or not low <= int(text or "") <= high:
        raise DecodeError("bad_number", f"{what} should be {low} to {high}, and is {(text or '')[:40]!r}")
    return int(text or "")


def local_ms(text: str | None, zone: dt.tzinfo) -> int | None:
    """Return the epoch milliseconds of a time that mqadmin prints in its host's zone; None for N/A.

    >>> local_ms("2026-11-21 02:41:23,490", dt.UTC), local_ms("20261121024123490", dt.UTC), local_ms("N/A", dt.UTC)
    (1795228883490, 1795228883490, None)
    """
    match = _DATE_TIME.fullmatch((text or "").strip())
    if match is None:
        return None
    groups = match.groups()
    *fields, part = groups[:7] if groups[0] else groups[7:]
    year, month, day, hour, minute, second = (int(field or 0) for field in fields)
    try:
        moment = dt.datetime(year, month, day, hour, minute, second, int(part or 0) * 1000, tzinfo=zone)
        ms = round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
    return ms if 0 < ms <= 4_102_444_800_000 else None


def settings_of(lines: Sequence[str], separator: str) -> dict[str, str]:
    """Return the lines NAME SEPARATOR VALUE in order; skip other lines.

    >>> settings_of(["bootTimestamp   : 1795228772969", "", "runtime  : [ 0 days ]"], ":")
    {'bootTimestamp': '1795228772969', 'runtime': '[ 0 days ]'}
    """
    found = {}
    for line in lines:
        name, sign, value = line.partition(separator)
        name = name.strip()
        if sign and name and " " not in name and not name.startswith(("#", "$")):
            found[name] = value.strip()
    return found


def process_queue_state(text: str, zone: dt.tzinfo) -> dict[str, int | bool]:
    """Return the fields of a ProcessQueueInfo from its toString(), times in epoch ms.

    >>> process_queue_state("ProcessQueueInfo [commitOffset=7, locked=true, lastPullTimestamp=19700101]", dt.UTC)
    {'commitOffset': 7, 'locked': True, 'lastPullTimestamp': 0}
    """
    state: dict[str, int | bool] = {}
    for name, value in _STATE.findall(text):
        if name.endswith("Timestamp"):
            state[name] = local_ms(value, zone) or 0
        elif value in ("true", "false"):
            state[name] = value == "true"
        else:
            state[name] = whole(value, name)
    return state


def queue_text(topic: str, broker_name: str, queue_id: int) -> str:
    """Return a queue in fastjson's form, also as a key.

    >>> queue_text("t", "b", 1)
    '{"brokerName":"b","queueId":1,"topic":"t"}'
    """
    return f'{{"brokerName":{json.dumps(broker_name)},"queueId":{queue_id},"topic":{json.dumps(topic)}}}'


def keyed_text(rows: Sequence[tuple[QueueRow, Mapping[str, object]]]) -> str:
    """Return an object whose keys are queues, in fastjson's form."""
    return (
        "{"
        + ",".join(f"{queue_text(*row[:3])}:{json.dumps(value, separators=(',', ':'))}" for row, value in rows)
        + "}"
    )
