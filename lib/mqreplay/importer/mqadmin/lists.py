"""Lists and bodies in mqadmin's outputs: brokers of a cluster, configurations, routes, sections. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from mqreplay.core.java import INT_MAX
from mqreplay.core.retry_topic import RETRY_GROUP_TOPIC_PREFIX as RETRY
from mqreplay.core.version import V5_0_0, version_key
from mqreplay.decode.body import broker_addrs_of, items_of
from mqreplay.decode.fastjson_text import Key, Value
from mqreplay.decode.fields import object_of, text_field
from mqreplay.importer.mqadmin.tables import settings_of, whole
from mqreplay.words.errors import DecodeError, IllegalArgument

_ADDRESS = re.compile(r"\S+:[0-9]{1,5}")
_BROKER_ID = re.compile(r"[0-9]{1,18}")
_CONFIG_HEAD = re.compile(r"=+(?:My Master: \S+?=+Slave: |Master: )?([^\s=]+:[0-9]+)=+\s*$")
_STATUS_ADDR = re.compile(r"(\S+:[0-9]+)\s+(\S.*)$")
_SECTION = re.compile(r"#[^#]+#\s*$")
_ADDRS = re.compile(r"([0-9]+)=([^,}\s]+)")
_BRACE = re.compile(r'[{}]|"(?:[^"\\\\]|\\\\.)*"', re.DOTALL)
_RATIO = re.compile(r"[01]\.[0-9]{1,8}")
_VERSION = re.compile(r"V[0-9]+_[0-9]+_[0-9]+\w*")
_SECRET = re.compile(r"(?i)password|secret|access_?key|token")
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,20})?")


class ListedBroker(NamedTuple):
    """A row of clusterList. ``version`` is written like 4.9.7; ``disk_ratio`` as printed, None if it was not."""

    cluster: str
    broker_name: str
    broker_id: int
    addr: str
    version: str | None
    disk_ratio: str | None = None


class ClusterTable(NamedTuple):
    """The rows of clusterList, and those that are broken."""

    rows: list[ListedBroker]
    broken: list[str]


def cluster_table(lines: Sequence[str]) -> ClusterTable:
    """Return the brokers that clusterList prints.

    A row is broken if it has no version, since its address may then be cut. The rest of a row that a terminal broke
    after the version is skipped: nothing in it is used.

    >>> table = ["#Cluster Name  #Broker Name  #BID  #Addr  #Version", "C  b  0  h:10911  V4_9_7  0.00(0,0ms)", "$ ls"]
    >>> cluster_table(table).rows
    [ListedBroker(cluster='C', broker_name='b', broker_id=0, addr='h:10911', version='4.9.7', disk_ratio=None)]
    >>> cluster_table([*table, "C  b  1  h:109"]).broken
    ['C  b  1  h:109']
    """
    rows: list[ListedBroker] = []
    broken = []
    start = space = None
    columns = 0
    for line in lines:
        words = line.split()
        if line.strip().startswith("#Cluster Name"):
            heading = line.strip()
            names = re.split(r"\s+(?=#)", heading)
            columns, space = len(names), names.index("#SPACE") if "#SPACE" in names else None
            start = (
                heading.index("#Broker Name") if "#Broker Name" in heading and "#InTotalYest" not in heading else None
            )
        elif start is None or not words:
            continue
        elif len(words) > 4 and _ADDRESS.fullmatch(words[3]) and _BROKER_ID.fullmatch(words[2]):
            version = words[4] if _VERSION.fullmatch(words[4]) else None
            ratio = words[space] if len(words) == columns and space and _RATIO.fullmatch(words[space]) else None
            row = ListedBroker(words[0], words[1], int(words[2]), words[3], release_of(version), ratio)
            if row not in rows:
                rows.append(row)
        elif _is_part_of_row(line.strip(), words, start, {row.cluster for row in rows}):
            broken.append(line.strip())
    return ClusterTable(rows, broken)


def _is_part_of_row(line: str, words: Sequence[str], start: int, clusters: Container[str]) -> bool:
    """Return whether a line begins as a row does: with a known cluster, or with its second column in its place."""
    if words[0] in clusters or len(words) < 2:
        return words[0] in clusters
    has_id = len(words) > 2 and _BROKER_ID.fullmatch(words[2]) is not None
    at_column = abs(line.index(words[1], len(words[0])) - start) <= 1
    return (has_id and (at_column or (len(words) > 3 and ":" in words[3]))) or (at_column and "(" not in words[0])


def configs_of(lines: Sequence[str]) -> list[tuple[str, dict[str, str]]]:
    """Return the address and the properties of each broker that getBrokerConfig prints, without secrets.

    >>> configs_of(["============127.0.0.1:10911============", "brokerName     =  broker-a"])
    [('127.0.0.1:10911', {'brokerName': 'broker-a'})]
    >>> configs_of(["==127.0.0.1:10911== and more"])
    []
    """
    heads = [(at, match[1]) for at, line in enumerate(lines) if (match := _CONFIG_HEAD.match(line.strip()))]
    ends = [*(at for at, _ in heads[1:]), len(lines)][: len(heads)]
    found = [(addr, open_settings(lines[at + 1 : end], "=")) for (at, addr), end in zip(heads, ends, strict=True)]
    return [(addr, properties) for addr, properties in found if properties]


def open_settings(lines: Sequence[str], separator: str) -> dict[str, str]:
    """Return the lines NAME SEPARATOR VALUE, without those that hold a secret.

    >>> open_settings(["brokerId=0", "tls.server.keyPassword=x"], "=")
    {'brokerId': '0'}
    """
    return {name: text for name, text in settings_of(lines, separator).items() if not _SECRET.search(name)}


def route_text(lines: Sequence[str]) -> str:
    """Return the body of a route: as topicRoute prints it, or from the table of topicRoute -l. Raises DecodeError."""
    head = next((at for at, line in enumerate(lines) if line.strip().startswith("#ClusterName")), None)
    if head is not None:
        return _listed_route(lines[head + 1 :])
    text = object_text("\n".join(lines))
    if text is None:
        raise DecodeError("no_table", "it shows no route")
    return text


def object_text(text: str) -> str | None:
    """Return the first object of JSON in a text, from its brace to the one that closes it; None without a whole one.

    >>> object_text('WARN x\\n{"a": {"b": "}"}}\\n$ exit }')
    '{"a": {"b": "}"}}'
    """
    begin, depth = text.find("{"), 0
    for match in _BRACE.finditer(text, max(begin, 0)):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0 and match[0] == "}":
            return text[begin : match.end()]
    return None


def _listed_route(lines: Sequence[str]) -> str:
    brokers, queues = [], []
    for line in map(str.strip, lines):
        if line.startswith("-") or not line:
            break
        match = re.match(r"(\S+)\s+(\S+)\s+\{([^}]*)\}\s+([0-9]+)\s+([0-9]+)\s+([0-9]+)$", line)
        if match is None:
            raise DecodeError("bad_row", "a row of the route is not in mqadmin's format")
        cluster, name = match[1], match[2]
        brokers.append({"brokerAddrs": dict(_ADDRS.findall(match[3])), "brokerName": name, "cluster": cluster})
        read, write, perm = (whole(match[at], "a number of queues", 0, INT_MAX) for at in (4, 5, 6))
        queues.append({"brokerName": name, "perm": perm, "readQueueNums": read, "writeQueueNums": write})
    if not brokers:
        raise DecodeError("no_rows", "it lists no broker")
    return json_text({"brokerDatas": brokers, "queueDatas": queues})


def route_brokers(route: Mapping[Key, Value]) -> list[tuple[str, int, str]]:
    """Return (name, id, address) of the brokers of a decoded route. Raises DecodeError."""
    found = []
    for value in items_of(route, "brokerDatas"):
        data = object_of(value, "brokerDatas")
        name = text_field(data, "brokerName", None)
        if name:
            addrs = broker_addrs_of(data.get("brokerAddrs"), "brokerAddrs")
            found += [(name, broker_id, addr) for broker_id, addr in addrs.items()]
    return found


def by_address(lines: Sequence[str], asked: str) -> dict[str, list[str]]:
    """Return the lines of brokerStatus by broker: -c prints the address before each line, -b has ``asked``."""
    parts: dict[str, list[str]] = {}
    for line in lines:
        match = _STATUS_ADDR.match(line.strip())
        addr, text = (match[1], match[2]) if match and " : " in line.replace(": ", " : ") else (asked, line)
        parts.setdefault(addr, []).append(text)
    return parts


def section(lines: Sequence[str], title: str) -> list[str]:
    """Return the lines between a title such as #Consumer Properties# and the next title.

    >>> section(["#A#", "1", "#Topic  #QID", "#B#", "2"], "#A#")
    ['1', '#Topic  #QID']
    """
    begin = next((at for at, line in enumerate(lines) if line.strip().startswith(title)), None)
    if begin is None:
        return []
    end = next((at for at in range(begin + 1, len(lines)) if _SECTION.match(lines[at].strip())), len(lines))
    return list(lines[begin + 1 : end])


def group_of(topics: Iterable[str]) -> str | None:
    """Return the group whose retry topic is among the topics; None without one.

    >>> group_of(["orders", "%RETRY%pay"])
    'pay'
    """
    groups = {topic.removeprefix(RETRY) for topic in topics if topic.startswith(RETRY)}
    return groups.pop() if len(groups) == 1 else None


def only_server(options: Mapping[str, str]) -> str | None:
    """Return the name server of a command line that names only one, which then answered."""
    servers = [server for server in re.split("[;,]", options.get("n", "")) if server]
    return servers[0] if len(servers) == 1 else None


def release_of(version: str | None) -> str | None:
    """Return a version in the form of RocketMQ's releases.

    >>> release_of("V4_9_7")
    '4.9.7'
    """
    try:
        return None if version is None else ".".join(map(str, version_key(version)))
    except IllegalArgument:
        return None


def ordinal_of(version: str) -> int:
    """Return MQVersion's number of a version; 0 if unknown.

    >>> ordinal_of("V4_9_7"), ordinal_of("V5_3_3"), ordinal_of("?")
    (407, 479, 0)
    """
    try:
        major, minor, patch = version_key(version)
    except IllegalArgument:
        return 0
    known = (major, minor) >= (4, 0) and major <= 5 and minor <= 9 and patch <= 9
    return V5_0_0 + 2 * (100 * (major - 5) + 10 * minor + patch) if known else 0


def tps_text(tps: str | None) -> str:
    """Return the member consumeTps of a body; empty if unknown."""
    return f'"consumeTps":{tps},' if tps and _NUMBER.fullmatch(tps) else ""


def json_text(value: object) -> str:
    """Return JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
