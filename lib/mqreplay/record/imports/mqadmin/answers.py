"""Records from complete answers in mqadmin's output: brokers, connections, routes, resets. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from mqreplay.errors import DecodeError
from mqreplay.record.imports.mqadmin.lists import (
    cluster_table,
    group_of,
    json_text,
    only_server,
    ordinal_of,
    route_text,
)
from mqreplay.record.imports.mqadmin.outputs import Output
from mqreplay.record.imports.mqadmin.tables import INT_MAX, queue_text, settings_of, whole

Record = tuple[str, dict[str, object]]  # the stem of its kind, and its fields
_ADDRESS = re.compile(r"\S+:[0-9]{1,5}")
_VERSION = re.compile(r"V[0-9]+_[0-9]+_[0-9]+\w*")
_RESET = re.compile(r"group\[([^\]]*)\], topic\[([^\]]*)\]")
_RESET_ROW = re.compile(r"(\S+)\s+([0-9]+)(?:\s+-?[0-9]\S*){0,4}$")
_RESET_TO = re.compile(r"reset consumer offset to (-?[0-9]{1,19})$")
_RESET_CODE: Final = 220  # RESET_CONSUMER_CLIENT_OFFSET


def cluster_info(output: Output, ts_ms: int) -> list[Record]:
    """Return the cluster_info record of clusterList. Raises DecodeError."""
    rows, broken = cluster_table(output.lines)
    if not rows:
        if broken:
            raise DecodeError("no_rows", "all its rows are cut or broken; redirect mqadmin to a file")
        if any("#BID" in line for line in output.lines):
            raise DecodeError("no_rows", "it lists no broker: none is registered at this name server")
        raise DecodeError("no_rows", "it lists no broker with an address; use clusterList without -m")
    addrs: dict[str, dict[int, str]] = defaultdict(dict)
    clusters: dict[str, list[str]] = defaultdict(list)
    for cluster, name, broker_id, addr, _version in rows:
        addrs[name][broker_id] = addr
        if name not in clusters[cluster]:
            clusters[cluster].append(name)
    of = {name: cluster for cluster, names in clusters.items() for name in names}
    body = {
        "brokerAddrTable": {
            name: {"brokerAddrs": {str(i): a for i, a in ids.items()}, "brokerName": name, "cluster": of[name]}
            for name, ids in addrs.items()
        },
        "clusterAddrTable": clusters,
    }
    return [("cluster_info", {"ts": ts_ms, "namesrv_addr": only_server(output.options), "body": json_text(body)})]


def consumer_connections(output: Output, ts_ms: int) -> list[Record]:
    """Return the connections of a group from consumerConnection. Raises DecodeError."""
    connections, _ = client_rows(output.lines)
    table = {}
    heads = [at for at, line in enumerate(output.lines) if line.strip().startswith("#Topic")]
    for line in output.lines[heads[0] + 1 :] if heads else []:
        topic, _, expression = line.strip().partition(" ")
        if not topic:
            break
        table[topic] = {"topic": topic, "subString": expression.strip()}
    group = output.options.get("g") or group_of(table)
    if group is None:
        raise DecodeError("no_group", "it names no group; put the command as a line before the output")
    settings = settings_of(output.lines, ":")
    named = {"consumeType": "ConsumeType", "messageModel": "MessageModel", "consumeFromWhere": "ConsumeFromWhere"}
    body = {"connectionSet": connections, "subscriptionTable": table} | {
        name: settings[text] for name, text in named.items() if text in settings
    }
    return [("consumer_connections", {"ts": ts_ms, "consumer_group": group, "body": json_text(body)})]


def client_rows(lines: Sequence[str]) -> tuple[list[dict[str, object]], list[str]]:
    """Return the connections that consumerConnection lists, and its broken rows. Raises DecodeError.

    >>> client_rows(["#ClientId  #ClientAddr", "c@1  10.0.0.1:4321  JAVA  V4_9_7", "", "c@2"])
    ([{'clientAddr': '10.0.0.1:4321', 'clientId': 'c@1', 'language': 'JAVA', 'version': 407}], [])
    """
    begin = _begin_of(lines)
    if begin is None:
        raise DecodeError("no_table", "it lists no client")
    connections: list[dict[str, object]] = []
    broken: list[str] = []
    for line in lines[begin + 1 :]:
        words = line.split()
        if not words or words[0] == "Below":
            if connections or broken:
                break
        elif len(words) >= 3 and _ADDRESS.fullmatch(words[1]) and words[2].isupper():
            version = {"version": ordinal_of(words[3])} if len(words) > 3 and _VERSION.fullmatch(words[3]) else {}
            connections.append({"clientAddr": words[1], "clientId": words[0], "language": words[2], **version})
        elif "@" in words[0] and len(words) < 4:
            broken.append(line.strip())
    return connections, broken


def _begin_of(lines: Sequence[str]) -> int | None:
    return next((at for at, line in enumerate(lines) if line.strip().startswith("#ClientId")), None)


def with_members(output: Output, records: list[Record], broker: tuple[str, int] | None) -> list[Record]:
    """Return the records of consumerConnection -b ADDR with their broker, and a consumer list of the same clients.

    Without -b, mqadmin asks any broker and does not print which. Lists of two brokers would then look like one list
    that changed. So there is a consumer list only if ``broker`` is known and every client of the output was read.
    """
    if broker is None:
        return records
    known = {"broker_name": broker[0], "broker_id": broker[1]}
    found: list[Record] = []
    for stem, record in records:
        found.append((stem, {**record, **known}))
        clients = _all_clients(output.lines)
        if clients:
            asked = {"ts": record["ts"], "consumer_group": record["consumer_group"], **known}
            answer = {"broker_addr": output.options.get("b"), "response_code": 0}
            body = json_text({"consumerIdList": clients})
            found.append(("consumer_lists", {**asked, **answer, "body": body}))
    return found


def _all_clients(lines: Sequence[str]) -> list[str] | None:
    """Return the clients that consumerConnection lists; None if a line or the list is incomplete."""
    begin = _begin_of(lines)
    clients: list[str] = []
    for at in range(begin + 1, len(lines)) if begin is not None else ():
        words = lines[at].split()
        if not words:
            after = next((line.strip() for line in lines[at:] if line.strip()), "")
            return clients if after.startswith("Below") else None
        if len(words) != 4 or not _ADDRESS.fullmatch(words[1]):
            return None
        clients.append(words[0])
    return None


def route(output: Output, ts_ms: int) -> list[Record]:
    """Return the route record of topicRoute. Raises DecodeError."""
    topic = output.options.get("t")
    body = route_text(output.lines)
    if not topic:
        raise DecodeError("no_topic", "it names no topic; put the command as a line before the output")
    server = only_server(output.options)
    return [("routes", {"ts": ts_ms, "topic": topic, "namesrv_addr": server, "response_code": 0, "body": body})]


def reset(output: Output, ts_ms: int, asked: tuple[str, int] | None = None) -> list[Record]:
    """Return the record of a reset, in the form of the request that brokers push. Raises DecodeError.

    resetOffsetByTime prints a table, of an offline group another one (ResetOffsetByTimeOldCommand), and with -b and -q
    one offset: ``asked`` is the broker at the address of -b. ``client_id`` is mqadmin, which received the answer.
    """
    match = next((found for line in output.lines if (found := _RESET.search(line))), None)
    group, topic = (match[1], match[2]) if match else (output.options.get("g"), output.options.get("t"))
    if not group or not topic:
        raise DecodeError("no_group", "it names no group and topic; put the command as a line before the output")
    queues, _ = reset_rows(output.lines)
    one = next((found for line in output.lines if (found := _RESET_TO.match(line.strip()))), None)
    queue_id = output.options.get("q", "")
    if not queues and one is not None and queue_id.isascii() and queue_id.isdigit():
        if asked is None:
            addr = output.options.get("b", "the address of -b")
            raise DecodeError("no_broker", f"nothing shows which broker is at {addr}; add clusterList's output")
        queues = [(asked[0], whole(queue_id, "a queue id", 0, INT_MAX), whole(one[1], "an offset"))]
    rows = [f"{queue_text(topic, name, queue_id)}:{offset}" for name, queue_id, offset in queues]
    if not rows:
        raise DecodeError("no_rows", "it lists no queue with a new offset")
    ext = {"group": group, "topic": topic}
    key = {"client_id": "mqadmin", "request_code": _RESET_CODE, "name": "RESET_CONSUMER_CLIENT_OFFSET"}
    return [("server_requests", {"ts": ts_ms, **key, "ext": ext, "body": f'{{"offsetTable":{{{",".join(rows)}}}}}'})]


def reset_rows(lines: Sequence[str]) -> tuple[list[tuple[str, int, int]], list[str]]:
    """Return (broker name, queue id, offset) of each row of a reset (the last column), and its broken rows.

    >>> reset_rows(["#brokerName   #queueId   #offset", "b             0          12", "b             1", "$ ls"])
    ([('b', 0, 12)], ['b             1'])
    >>> reset_rows(["#brokerName #queueId #brokerOffset #rollbackOffset", "b 0 90 12"])[0]
    [('b', 0, 12)]
    """
    begin = next((at for at, line in enumerate(lines) if line.strip().startswith("#brokerName")), len(lines))
    columns = len(lines[begin].split()) if begin < len(lines) else 0
    rows: dict[tuple[str, int], int] = {}
    broken: list[str] = []
    for line in lines[begin + 1 :]:
        match = _RESET_ROW.match(line.strip())
        if match is None:
            continue
        try:
            if len(line.split()) != columns:
                raise DecodeError("bad_row", "a row without some of its columns")
            queue = match[1], whole(match[2], "a queue id", 0, INT_MAX)
            rows[queue] = whole(line.split()[-1], "an offset")
        except DecodeError:
            broken.append(line.strip())
    return [(*queue, offset) for queue, offset in rows.items()], broken
