"""What containers, collectors and tools put around a line of a log: colours, JSON, names, times.

docker logs, json-file     {"log":"LINE\\n","stream":"stdout","time":"2026-03-09T00:11:00.1Z"}
kubectl logs --timestamps  2026-03-09T00:11:00.123456789Z LINE
kubectl logs --prefix      [pod/broker-0-master-0/broker] LINE
docker compose logs        rmqbroker  | LINE
journald                   Mar 09 00:11:00 node1 mqbroker[2211]: LINE
grep -Hn                   broker.log:17:LINE
JSON of a logging library  {"@timestamp":"...","level":"INFO","message":"LINE", ...}
"""

from __future__ import annotations

import datetime as dt
import json
import re
from typing import Final, NamedTuple

from mqreplay.decode.columns import TIME_MAX, TIME_MIN

# Escape sequences of terminals (ECMA-48): control sequences such as colours; operating system commands such as titles;
# character sets; modes of the keypad.
ESCAPE: Final = r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-Z]?|\x1b[=>]"
# A collector may have removed the escape character of a colour.
_COLOUR: Final = re.compile(ESCAPE + r"|\[(?:\d{1,3};){0,4}\d{1,3}m", re.ASCII)
_TEXTS: Final = ("log", "message", "msg", "MESSAGE", "_msg", "body", "content")
_TIMES: Final = ("time", "@timestamp", "timestamp", "ts", "timeMillis", "instant", "__REALTIME_TIMESTAMP", "_time")
_NAMES: Final = ("pod_name", "container_name", "pod", "container", "CONTAINER_NAME", "_SYSTEMD_UNIT")
_MOST_NESTED: Final = 3
_RFC_3339: Final = re.compile(
    r"(?<!\d)(20\d\d-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))? ?(Z|UTC|[+-]\d\d:?\d\d)(?![\d:])", re.ASCII
)
_NAME: Final = re.compile(
    r"\s*(?:\[pod/([^\]\s]{1,300})\]\s"  # kubectl logs --prefix
    r"|([A-Za-z0-9][\w.@-]{0,200})\s+\|\s"  # docker compose logs, docker service logs
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (\S{1,200} [\w.@/-]{1,200})(?:\[\d+\])?:\s"  # journald, syslog
    r"|[^{}]{0,60}\{[^{}]{0,400}\bpod(?:_name)?=\"([^\"]{1,300})\"[^{}]{0,400}\}"  # logcli of Loki
    # stern: the pod, or the pod and its container. The id of a trace has no letter after f.
    r"|((?=[0-9a-f.-]{0,100}[g-z])[a-z0-9][a-z0-9.]{0,100}-[a-z0-9.-]{1,100}(?: [a-z][a-z0-9-]{0,60})?)\s"
    r"|(?:[^\s:]{0,200}/)?([\w.-]{1,200}\.log[\w.-]{0,40}):\d+[:-])",  # grep -Hn
    re.ASCII,
)


class Wrapping(NamedTuple):
    """The name of the container, pod or unit that wrote a line, and the instant (epoch ms) that a collector noted.

    ``wall``: the text of a time without a zone in JSON around the line.
    """

    name: str | None = None
    epoch_ms: int | None = None
    wall: str | None = None


def plain_text(text: str) -> tuple[Wrapping, str]:
    """Return what JSON around a line says, and the line itself without colours.

    >>> plain_text('{"log":"hi\\\\n","stream":"stdout","time":"2026-03-09T00:11:00.1Z"}')
    (Wrapping(name=None, epoch_ms=1773015060100, wall=None), 'hi')
    """
    wrapping = Wrapping()
    for _ in range(_MOST_NESTED):
        stripped = text.lstrip(" ,[")
        if not stripped.startswith("{"):
            break
        inner = _inner(stripped.rstrip(" ,]"))
        if inner is None:
            break
        found, text = inner
        wrapping = Wrapping(
            found.name or wrapping.name, found.epoch_ms or wrapping.epoch_ms, found.wall or wrapping.wall
        )
    if "\x1b" in text or "0m" in text:
        text = _COLOUR.sub("", text)
    return wrapping, text


def wrapping_of(before: str, known: Wrapping) -> Wrapping:
    """Return the name and the instant before a line; ``known`` are those of JSON around it.

    >>> wrapping_of("[pod/broker-0-master-0/broker] ", Wrapping()).name
    'broker-0-master-0/broker'
    """
    if not before.strip():
        return known
    name, epoch_ms, wall = known
    if (named := _NAME.match(before)) is not None:
        name = next(filter(None, named.groups()))
    if (instant := instant_in(before)) is not None:
        epoch_ms = instant
    return Wrapping(name, epoch_ms, wall)


def instant_in(text: str) -> int | None:
    """Return the epoch ms of the first time with a zone in a text.

    >>> instant_in("2026-03-09T00:11:00.123456789Z ")
    1773015060123
    """
    match = _RFC_3339.search(text)
    if match is None:
        return None
    zone = "+00:00" if match[4] in ("Z", "UTC") else match[4]
    try:
        moment = dt.datetime.fromisoformat(f"{match[1]}T{match[2]}.{(match[3] or '0')[:6].ljust(6, '0')}{zone}")
        return _in_range(round(moment.timestamp() * 1000))
    except (ValueError, OverflowError):
        return None


def _inner(text: str) -> tuple[Wrapping, str] | None:
    """Return the wrapping and the text of a JSON object; None for another text."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _inner_of(found) if isinstance(found, dict) else None


def _inner_of(found: dict[str, object]) -> tuple[Wrapping, str] | None:
    inner = next((text for name in _TEXTS if isinstance(text := found.get(name), str)), None)
    if inner is None:
        # Log platforms export {"id": ..., "fields": {"message": LINE, ...}}.
        nested = (_inner_of(value) for value in found.values() if isinstance(value, dict))
        return next(filter(None, nested), None)
    of_pod = found.get("kubernetes")
    places = [found, of_pod] if isinstance(of_pod, dict) else [found]
    names = (name for key in _NAMES for place in places if isinstance(name := place.get(key), str))
    times = (epoch_ms for name in _TIMES if (epoch_ms := _json_time(found.get(name))) is not None)
    walls = (text for name in _TIMES if isinstance(text := found.get(name), str) and instant_in(text) is None)
    return Wrapping(next(names, None), next(times, None), next(walls, None)), inner.rstrip("\r\n")


def _json_time(value: object) -> int | None:
    if isinstance(value, dict) and isinstance(seconds := value.get("epochSecond"), int):
        return _in_range(seconds * 1000)
    if isinstance(value, str) and not value.isdigit():
        return instant_in(value)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    for unit in (1000.0, 1.0, 0.001, 0.000001):  # s, ms, us, ns
        if (epoch_ms := _in_range(number * unit)) is not None:
            return epoch_ms
    return None


def _in_range(epoch_ms: float) -> int | None:
    return int(epoch_ms) if TIME_MIN <= epoch_ms <= TIME_MAX else None
