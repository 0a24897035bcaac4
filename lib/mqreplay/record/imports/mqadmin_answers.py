"""Records from complete answers in mqadmin's output: brokers, connections, routes, resets. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from mqreplay.errors import DecodeError
from mqreplay.record.imports.mqadmin_lists import cluster_rows, group_of, json_text, only_server, ordinal_of, route_text
from mqreplay.record.imports.mqadmin_tables import INT_MAX, queue_text, settings_of, whole
from mqreplay.record.imports.mqadmin_text import Output

Record = tuple[str, dict[str, object]]  # the stem of its kind, and its fields
_ADDRESS = re.compile(r"\S+:[0-9]{1,5}")
_RESET = re.compile(r"group\[([^\]]*)\], topic\[([^\]]*)\]")
_RESET_CODE: Final = 220  # RESET_CONSUMER_CLIENT_OFFSET


def cluster_info(output: Output, ts_ms: int) -> list[Record]:
    """Return the cluster_info record of clusterList. Raises DecodeError."""
    rows = cluster_rows(output.lines)
    if not rows:
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
    begin = next((at for at, line in enumerate(output.lines) if line.startswith("#ClientId")), None)
    if begin is None:
        raise DecodeError("no_table", "it lists no client")
    connections = []
    for line in output.lines[begin + 1 :]:
        words = line.split()
        if len(words) < 3:
            break
        version = {"version": ordinal_of(words[3])} if len(words) > 3 else {}
        connections.append({"clientAddr": words[1], "clientId": words[0], "language": words[2], **version})
    table = {}
    heads = [at for at, line in enumerate(output.lines) if line.startswith("#Topic")]
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
    begin = next((at for at, line in enumerate(lines) if line.startswith("#ClientId")), len(lines))
    clients: list[str] = []
    for line in lines[begin + 1 :]:
        words = line.split()
        if not words:
            return clients
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


def reset(output: Output, ts_ms: int) -> list[Record]:
    """Return the record of resetOffsetByTime, in the form of the request that brokers push. Raises DecodeError.

    ``client_id`` is mqadmin, which received the answer.
    """
    match = next((found for line in output.lines if (found := _RESET.search(line))), None)
    group, topic = (match[1], match[2]) if match else (output.options.get("g"), output.options.get("t"))
    if not group or not topic:
        raise DecodeError("no_group", "it names no group and topic; put the command as a line before the output")
    begin = next((at for at, line in enumerate(output.lines) if line.startswith("#brokerName")), len(output.lines))
    rows = []
    for line in output.lines[begin + 1 :]:
        words = line.split()
        if len(words) != 3:
            break
        queue = queue_text(topic, words[0], whole(words[1], "a queue id", 0, INT_MAX))
        rows.append(f"{queue}:{whole(words[2], 'an offset')}")
    if not rows:
        raise DecodeError("no_rows", "it lists no queue with a new offset")
    ext = {"group": group, "topic": topic}
    key = {"client_id": "mqadmin", "request_code": _RESET_CODE, "name": "RESET_CONSUMER_CLIENT_OFFSET"}
    return [("server_requests", {"ts": ts_ms, **key, "ext": ext, "body": f'{{"offsetTable":{{{",".join(rows)}}}}}'})]
