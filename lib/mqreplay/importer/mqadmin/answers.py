"""Records from complete answers in mqadmin's output: brokers, connections, routes, resets. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from mqreplay.core.java import INT_MAX
from mqreplay.importer.mqadmin.context import AdminContext
from mqreplay.importer.mqadmin.lists import (
    by_address,
    cluster_table,
    group_of,
    json_text,
    only_server,
    ordinal_of,
    route_text,
)
from mqreplay.importer.mqadmin.outputs import Output
from mqreplay.importer.mqadmin.tables import queue_text, settings_of, whole
from mqreplay.words.errors import DecodeError

Record = tuple[str, dict[str, object]]  # the stem of its kind, and its fields
_ADDRESS = re.compile(r"\S+:[0-9]{1,5}")
_VERSION = re.compile(r"V[0-9]+_[0-9]+_[0-9]+\w*")
_NUMBERED = re.compile(r"[0-9]{3,9}\s+\S+\s+\S+:[0-9]{1,5}\s")
_NUMBER = re.compile(r"^[0-9]{3,9}\s+(?=\S)")
_NUMBERED_TOPIC = re.compile(r"[0-9]{3,9}\s+Topic: (\S+)\s+SubExpression: ?(.*)$")
_SLAVE = re.compile(
    r"(?P<addr>\S+:[0-9]{1,5})\s+(?P<acked>-?[0-9]+)\s+(?P<diff>-?[0-9]+)\s+(?P<speed>[0-9]+\.[0-9]{2})\s+"
    r"(?P<status>OK|Fall Behind)\s+(?P<sent>-?[0-9]+)$"
)
_RESET = re.compile(r"group\[([^\]]*)\], topic\[([^\]]*)\]")
_RESET_ROW = re.compile(r"(\S+)\s+([0-9]+)(?:\s+-?[0-9]\S*){0,4}$")
_RESET_TO = re.compile(r"reset consumer offset to (-?[0-9]{1,19})$")
_RESET_CODE: Final = 220  # RESET_CONSUMER_CLIENT_OFFSET


def cluster_info(output: Output, ts_ms: int, context: AdminContext) -> list[Record]:
    """Return the cluster_info record of clusterList, and the disk of each broker whose disk was once nearly full.

    The column #SPACE is commitLogDiskRatio (ClusterListSubCommand#printClusterBaseInfo). Raises DecodeError.
    """
    rows, broken = cluster_table(output.lines)
    context.count_broken("clusterList", broken)
    if not rows:
        if broken:
            raise DecodeError("no_rows", "all its rows are cut or broken; redirect mqadmin to a file")
        if any("#BID" in line for line in output.lines):
            raise DecodeError("no_rows", "it lists no broker: none is registered at this name server")
        raise DecodeError("no_rows", "it lists no broker with an address; use clusterList without -m")
    addrs: dict[str, dict[int, str]] = defaultdict(dict)
    clusters: dict[str, list[str]] = defaultdict(list)
    for cluster, name, broker_id, addr, *_ in rows:
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
    polls: list[Record] = [
        (
            "broker_runtime",
            {
                **{"ts": ts_ms, "broker_name": row.broker_name, "broker_id": row.broker_id, "broker_addr": row.addr},
                **{"full": False, "table": {"commitLogDiskRatio": row.disk_ratio}},
            },
        )
        for row in rows
        if row.disk_ratio is not None and (row.broker_name, row.broker_id) in context.nearly_full
    ]
    listed: dict[str, object] = {"ts": ts_ms, "namesrv_addr": only_server(output.options), "body": json_text(body)}
    return [("cluster_info", listed), *polls]


def consumer_connections(output: Output, ts_ms: int, context: AdminContext) -> list[Record]:
    """Return the connections of a group from consumerConnection, and its members of -b ADDR. Raises DecodeError.

    The table has no heading before 4.9.3, and its rows have numbers (ConsumerConnectionSubCommand).

    Without -b, mqadmin asks any broker and does not print which. Lists of two brokers would then look like one list
    that changed. So there is a consumer list only if the broker is known and every client of the output was read.
    """
    connections, broken = client_rows(output.lines)
    context.count_broken("consumerConnection", broken)
    table = {topic: {"topic": topic, "subString": text} for topic, text in _subscriptions(output.lines)}
    group = output.options.get("g") or group_of(table)
    if group is None:
        raise DecodeError("no_group", "it names no group; put the command as a line before the output")
    settings = settings_of(output.lines, ":")
    named = {"consumeType": "ConsumeType", "messageModel": "MessageModel", "consumeFromWhere": "ConsumeFromWhere"}
    body = {"connectionSet": connections, "subscriptionTable": table} | {
        name: settings[text] for name, text in named.items() if text in settings
    }
    record = {"ts": ts_ms, "consumer_group": group, "body": json_text(body)}
    if (broker := context.asked(output)) is None:
        return [("consumer_connections", record)]
    known = {"broker_name": broker[0], "broker_id": broker[1]}
    records: list[Record] = [("consumer_connections", {**record, **known})]
    if clients := _all_clients(output.lines):
        answer = {"broker_addr": output.options.get("b"), "response_code": 0}
        listed = {"ts": ts_ms, "consumer_group": group, **known, **answer}
        records.append(("consumer_lists", {**listed, "body": json_text({"consumerIdList": clients})}))
    return records


def client_rows(lines: Sequence[str]) -> tuple[list[dict[str, object]], list[str]]:
    """Return the connections that consumerConnection lists, and its broken rows. Raises DecodeError.

    >>> client_rows(["#ClientId  #ClientAddr", "c@1  10.0.0.1:4321  JAVA  V4_9_7", "", "c@2"])
    ([{'clientAddr': '10.0.0.1:4321', 'clientId': 'c@1', 'language': 'JAVA', 'version': 407}], [])
    >>> client_rows(["001  c@1    10.0.0.1:4321    JAVA     V4_5_1", "002  c@2"])[1]
    ['c@2']
    """
    rows = _listed(lines)
    if rows is None:
        raise DecodeError("no_table", "it lists no client")
    connections: list[dict[str, object]] = []
    broken: list[str] = []
    for line in rows:
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


def _listed(lines: Sequence[str]) -> list[str] | None:
    """Return the lines from the first row of consumerConnection on, without the numbers that rows had before 4.9.3."""
    begin = next((at for at, line in enumerate(lines) if line.strip().startswith("#ClientId")), None)
    if begin is not None:
        return list(lines[begin + 1 :])
    begin = next((at for at, line in enumerate(lines) if _NUMBERED.match(line.strip())), None)
    return None if begin is None else [_NUMBER.sub("", line.strip()) for line in lines[begin:]]


def _subscriptions(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield topic and expression of each subscription that consumerConnection lists."""
    for line in lines:
        if match := _NUMBERED_TOPIC.search(line):
            yield match[1], match[2].strip()
    begin = next((at for at, line in enumerate(lines) if line.strip().startswith("#Topic")), len(lines))
    for line in lines[begin + 1 :]:
        topic, _, expression = line.strip().partition(" ")
        if not topic:
            return
        yield topic, expression.strip()


def _all_clients(lines: Sequence[str]) -> list[str] | None:
    """Return the clients that consumerConnection lists; None if a line or the list is incomplete."""
    rows = _listed(lines) or []
    clients: list[str] = []
    for at, row in enumerate(rows):
        words = row.split()
        if not words:
            after = next((line.strip() for line in rows[at:] if line.strip()), "")
            return clients if after.startswith("Below") else None
        if len(words) != 4 or not _ADDRESS.fullmatch(words[1]):
            return None
        clients.append(words[0])
    return None


def broker_runtime(output: Output, ts_ms: int, context: AdminContext) -> list[Record]:
    """Return the runtime figures of each broker of brokerStatus. Raises DecodeError."""
    records: list[Record] = []
    unknown = []
    for addr, lines in by_address(output.lines, output.options.get("b", "")).items():
        table = settings_of(lines, ":")
        if "brokerVersionDesc" not in table and "bootTimestamp" not in table:
            continue
        broker = context.names.of_address(addr) if addr else None
        if broker is None and not addr and (named := context.names.find(output.path_names)) is not None:
            broker = named.broker_name, named.broker_id
        if broker is None:
            unknown.append(addr or "this output")
            continue
        key = {"broker_name": broker[0], "broker_id": broker[1], "broker_addr": addr or None}
        records.append(("broker_runtime", {"ts": ts_ms, **key, "full": True, "table": table}))
    if unknown and not records:
        raise DecodeError("no_broker", f"nothing shows which broker is at {unknown[0]}; add clusterList's output")
    if not records:
        raise DecodeError("no_rows", "it has no runtime figures of a broker")
    return records


def ha_status(output: Output, ts_ms: int, context: AdminContext) -> list[Record]:
    """Return the answer of each broker of haStatus (HAStatusSubCommand#printStatus). Raises DecodeError.

    A master prints a table of its slaves. A slave prints its own state: its master is in the first line.
    """
    records: list[Record] = []
    for addr, lines in _of_masters(output.lines):
        figures = dict(words for line in lines if len(words := line.split(None, 1)) == 2 and not line.startswith(" "))
        is_master = "#MasterCommitLogMaxOffset" in figures
        asked = addr if is_master else output.options.get("b", "")
        broker = context.names.of_address(asked)
        if broker is None:
            raise DecodeError("no_broker", f"nothing shows which broker is at {asked}; add clusterList's output")
        rows = [match for line in lines if (match := _SLAVE.match(line.strip())) is not None]
        body = _of_master(figures, rows) if is_master else _of_slave(addr, figures)
        key = {"broker_name": broker[0], "broker_id": broker[1], "broker_addr": asked}
        records.append(("ha_status", {"ts": ts_ms, **key, "body": json_text(body)}))
    if not records:
        raise DecodeError("no_rows", "it shows no master and no slave")
    return records


def _of_masters(lines: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the address after each #MasterAddr, and the lines below it."""
    blocks: list[tuple[str, list[str]]] = []
    for line in lines:
        words = line.split()
        if words[:1] == ["#MasterAddr"] and len(words) == 2:
            blocks.append((words[1], []))
        elif blocks:
            blocks[-1][1].append(line)
    return blocks


def _of_master(figures: Mapping[str, str], rows: Sequence[re.Match[str]]) -> dict[str, object]:
    slaves = [
        {
            "addr": row["addr"],
            "slaveAckOffset": whole(row["acked"], "#SlaveAckOffset"),
            "diff": whole(row["diff"], "#Diff"),
            "inSync": row["status"] == "OK",
            "transferredByteInSecond": round(float(row["speed"]) * 1024),
            "transferFromWhere": whole(row["sent"], "#TransferFromWhere"),
        }
        for row in rows
    ]
    return {
        "master": True,
        "masterCommitLogMaxOffset": whole(figures["#MasterCommitLogMaxOffset"], "#MasterCommitLogMaxOffset"),
        "inSyncSlaveNums": whole(figures.get("#InSyncSlaveNum", "-1"), "#InSyncSlaveNum", -1, INT_MAX),
        "haConnectionInfo": slaves,
    }


def _of_slave(master_addr: str, figures: Mapping[str, str]) -> dict[str, object]:
    client = {
        "masterAddr": master_addr,
        "maxOffset": whole(figures.get("#CommitLogMaxOffset"), "#CommitLogMaxOffset"),
        "masterFlushOffset": whole(figures.get("#MasterFlushOffset"), "#MasterFlushOffset"),
    }
    return {"master": False, "haClientRuntimeInfo": client}


def route(output: Output, ts_ms: int, _context: AdminContext) -> list[Record]:
    """Return the route record of topicRoute. Raises DecodeError."""
    topic = output.options.get("t")
    body = route_text(output.lines)
    if not topic:
        raise DecodeError("no_topic", "it names no topic; put the command as a line before the output")
    server = only_server(output.options)
    return [("routes", {"ts": ts_ms, "topic": topic, "namesrv_addr": server, "response_code": 0, "body": body})]


def reset(output: Output, ts_ms: int, context: AdminContext) -> list[Record]:
    """Return the record of a reset, in the form of the request that brokers push. Raises DecodeError.

    resetOffsetByTime prints a table, of an offline group another one (ResetOffsetByTimeOldCommand), and with -b and -q
    one offset of the broker at the address of -b. ``client_id`` is mqadmin, which received the answer.
    """
    queues, broken = reset_rows(output.lines)
    context.count_broken(output.command or "", broken)
    match = next((found for line in output.lines if (found := _RESET.search(line))), None)
    group, topic = (match[1], match[2]) if match else (output.options.get("g"), output.options.get("t"))
    if not group or not topic:
        raise DecodeError("no_group", "it names no group and topic; put the command as a line before the output")
    one = next((found for line in output.lines if (found := _RESET_TO.match(line.strip()))), None)
    queue_id = output.options.get("q", "")
    if not queues and one is not None and queue_id.isascii() and queue_id.isdigit():
        if (asked := context.asked(output)) is None:
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
