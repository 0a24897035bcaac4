"""The options of a recorder: durations, sizes, name servers and names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from mqreplay.core.retry_topic import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX
from mqreplay.words.errors import InputError

_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ?(ms|s|m|min|h|d)")
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,6})?) ?([kmgt]?)(?:ib|b)?", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:\[[0-9a-fA-F:.%]+\]|[^\s:;,/\[\]]+):([0-9]{1,5})")
LEAST_INTERVAL_S: Final = 1.0
GREATEST_INTERVAL_S: Final = 60.0


def seconds_of(text: str, option: str) -> float:
    """Return a duration in seconds.

    >>> seconds_of("5s", "--every"), seconds_of("1.5 h", "--for"), seconds_of("10m", "--for")
    (5.0, 5400.0, 600.0)
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise InputError(f"{option} {text!r} is not a duration; write it like 5s, 10m or 8h")
    return float(found[1]) * _SECONDS[found[2]]


def bytes_of(text: str, option: str) -> int:
    """Return a size in bytes. Units are powers of 1024, as in Java's -Xmx.

    >>> bytes_of("25276502016", "--physical-memory"), bytes_of("64g", "--max-disk"), bytes_of("1.5 GiB", "--max-disk")
    (25276502016, 68719476736, 1610612736)
    """
    found = _SIZE.fullmatch(text.strip())
    size = 0 if found is None else int(float(found[1]) * _BYTES[found[2].lower()])
    if found is not None and "." not in found[1]:
        size = int(found[1]) * _BYTES[found[2].lower()]
    if not 0 < size < 1 << 60:
        raise InputError(f"{option} {text!r} is not a size; write it in bytes, or like 512m or 64g")
    return size


def name_servers_of(text: str, what: str = "name server") -> tuple[str, ...]:
    """Return the distinct addresses of name servers, or of other servers if ``what`` says so.

    >>> name_servers_of("10.0.0.1:9876;10.0.0.2:9876")
    ('10.0.0.1:9876', '10.0.0.2:9876')
    """
    addresses = tuple(dict.fromkeys(part.strip() for part in re.split("[;,]", text) if part.strip()))
    for address in addresses:
        found = _ADDRESS.fullmatch(address)
        if found is None or not 0 < int(found[1]) <= 65535:
            raise InputError(f"{what} {address!r} is not an address; write HOST:PORT, several as 'HOST:PORT;HOST:PORT'")
    if not addresses:
        raise InputError(f"no {what} is given; write HOST:PORT")
    return addresses


@dataclass(frozen=True, slots=True)
class Filter:
    """The groups and topics to record. Without globs: all of them.

    A retry topic belongs to its group, and not to the globs of topics.

    >>> chosen = Filter(("pay*",), ("orders",))
    >>> chosen.has("orders", "payments"), chosen.has("orders", "x"), chosen.has("%RETRY%payments", "payments")
    (True, False, True)
    """

    groups: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

    def has_group(self, group: str) -> bool:
        """Whether a group is recorded."""
        return not self.groups or any(fnmatchcase(group, glob) for glob in self.groups)

    def has_topic(self, topic: str) -> bool:
        """Return whether a topic is recorded if one of its groups is."""
        if topic.startswith((RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX)):
            return True
        return not self.topics or any(fnmatchcase(topic, glob) for glob in self.topics)

    def has(self, topic: str, group: str) -> bool:
        """Return whether a group's offsets in a topic are recorded."""
        return self.has_group(group) and self.has_topic(topic)


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """The options. Durations are in seconds; ``every_s`` is the interval of the most frequent polls."""

    name_servers: tuple[str, ...]
    every_s: float = 5.0
    for_s: float | None = None
    chosen: Filter = Filter()
    cluster: str | None = None
    physical_memory_bytes: int | None = None
    requests_per_second: float = 50.0
    max_bytes: int | None = None
    timeout_s: float = 3.0
    proxies: tuple[str, ...] = ()  # addresses of proxies' remoting ports

    def described(self) -> str:
        """Return the options as text, without secrets.

        >>> RecordOptions(("h:1",), chosen=Filter(groups=("a*",))).described()
        'name servers h:1; every 5 s; 50 requests per second and server; groups a*'
        """
        parts = [
            f"name servers {';'.join(self.name_servers)}",
            f"every {self.every_s:g} s",
            f"{self.requests_per_second:g} requests per second and server",
        ]
        parts += [f"groups {' '.join(self.chosen.groups)}"] if self.chosen.groups else []
        parts += [f"topics {' '.join(self.chosen.topics)}"] if self.chosen.topics else []
        parts += [f"proxies {' '.join(self.proxies)}"] if self.proxies else []
        parts += [f"for {self.for_s:g} s"] if self.for_s is not None else []
        return "; ".join(parts)


def record_options(
    name_servers: str,
    every: str = "5s",
    lasting: str | None = None,
    groups: Sequence[str] = (),
    topics: Sequence[str] = (),
    cluster: str | None = None,
    physical_memory: str | None = None,
    requests_per_second: float = 50.0,
    max_disk: str | None = None,
    proxies: Sequence[str] = (),
) -> RecordOptions:
    """Return the options of a command line. Raises InputError for an invalid value."""
    every_s = seconds_of(every, "--every")
    if not LEAST_INTERVAL_S <= every_s <= GREATEST_INTERVAL_S:
        raise InputError(f"--every {every} is not 1s to 60s")
    if not 1 <= requests_per_second <= 10_000:
        raise InputError(f"--requests-per-second {requests_per_second:g} is not 1 to 10000")
    return RecordOptions(
        name_servers=name_servers_of(name_servers),
        every_s=every_s,
        for_s=None if lasting is None else seconds_of(lasting, "--for"),
        chosen=Filter(tuple(groups), tuple(topics)),
        cluster=cluster,
        physical_memory_bytes=None if physical_memory is None else bytes_of(physical_memory, "--physical-memory"),
        requests_per_second=requests_per_second,
        max_bytes=None if max_disk is None else bytes_of(max_disk, "--max-disk"),
        proxies=name_servers_of(";".join(proxies), "proxy") if proxies else (),
    )
