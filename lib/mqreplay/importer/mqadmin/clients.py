"""Records of consumers: consumerStatus -i, the files that consumerStatus writes, and its list of clients."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence

from mqreplay.importer.mqadmin.answers import Record
from mqreplay.importer.mqadmin.context import AdminContext
from mqreplay.importer.mqadmin.lists import json_text, section
from mqreplay.importer.mqadmin.outputs import Output
from mqreplay.importer.mqadmin.tables import QueueRow, keyed_text, queue_table, settings_of, whole
from mqreplay.importer.times.printed_times import local_ms
from mqreplay.words.errors import DecodeError
from mqreplay.words.quantity import counted

_SUBSCRIPTION = re.compile(r"[0-9]+ Topic: (\S+)\s+ClassFilter: (true|false)\s+SubExpression: (.*)$")
_STATE = re.compile(r"(\w+)[=:]([^,\]]*)")
_DETAIL = "#Consumer MQ Detail#"
_POP_DETAIL = "#Consumer Pop Detail#"
_LISTED = re.compile(r"[0-9]+\s+(\S+)\s+V[0-9]\w*\s+([0-9]{13}/\S+)$")
# Source: ConsumerRunningInfo#analyzeProcessQueue, ConsumerStatusSubCommand.
_REMARK = re.compile(
    r"can't consume for a while|can't lock for a while|unlock [0-9]+ times, still failed|^Rebalance Failed|"
    r"Different subscription in the same group"
)


def assignment(output: Output, ts_ms: int, context: AdminContext) -> list[Record]:
    """Return the assignments record of one client. Raises DecodeError.

    mqadmin does not cut the names here. Source: ConsumerRunningInfo#formatString.
    """
    if not any("#Consumer Properties#" in line for line in output.lines):
        raise _only_a_list(output, context)
    properties = settings_of(section(output.lines, "#Consumer Properties#"), ":")
    client = output.options.get("i") or client_in(output.path_names) or client_of(properties)
    group = properties.get("consumerGroup") or output.options.get("g")
    if not client or not group:
        raise DecodeError("no_client", "it does not name its client and group; put the command as a line before it")
    queues = _states(output, _DETAIL, ts_ms, context)
    if queues is None:
        raise DecodeError("no_table", f"it lacks the section {_DETAIL}")
    shared = _states(output, _POP_DETAIL, ts_ms, context)
    subscriptions = [
        {"classFilterMode": found[2] == "true", "subString": found[3].strip(), "topic": found[1]}
        for line in section(output.lines, "#Consumer Subscription#")
        if (found := _SUBSCRIPTION.match(line.strip())) is not None
    ]
    pop = "" if shared is None else f'"mqPopTable":{keyed_text(shared)},'
    dump = section(output.lines, "#Consumer jstack#")
    threads = "\n".join(line for line in dump if line.startswith("ConsumeMessage"))
    jstack = f'"jstack":{json_text(threads)},' if dump else ""
    body = (
        f'{{"mqTable":{keyed_text(queues)},{pop}{jstack}"properties":{json_text(properties)},'
        f'"subscriptionSet":{json_text(subscriptions)}}}'
    )
    return [("assignments", running_info(ts_ms, client, group, body))]


def running_info(ts_ms: int, client: str, group: str, body: str) -> dict[str, object]:
    """Return an assignments record from a client's answer to GET_CONSUMER_RUNNING_INFO."""
    return {"ts": ts_ms, "client_id": client, "consumer_group": group, "source": "running_info", "body": body}


def client_in(names: Sequence[str]) -> str | None:
    """Return the client id that a file is named by: consumerStatus names its files so."""
    return next((name for name in names[:1] if "@" in name), None)


def client_of(properties: Mapping[str, str]) -> str | None:
    """Return the client id from a client's properties, which have its parts since 5.0.

    Source: ClientConfig#buildMQClientId.

    >>> client_of({"clientIP": "10.0.0.1", "instanceName": "7#9", "enableStreamRequestType": "true"})
    '10.0.0.1@7#9@STREAM'
    """
    address, instance = properties.get("clientIP"), properties.get("instanceName")
    if not address or not instance:
        return None
    unit = properties.get("unitName", "").strip()
    is_stream = properties.get("enableStreamRequestType") == "true"
    return "@".join([address, instance, *([unit] if unit else []), *(["STREAM"] if is_stream else [])])


def process_queue_state(text: str, zone: dt.tzinfo) -> dict[str, int | bool]:
    """Return the fields of a ProcessQueueInfo or PopProcessQueueInfo from its toString(), times in epoch ms.

    >>> process_queue_state("ProcessQueueInfo [commitOffset=7, locked=true, lastPullTimestamp=19700101]", dt.UTC)
    {'commitOffset': 7, 'locked': True, 'lastPullTimestamp': 0}
    >>> process_queue_state("PopProcessQueueInfo [waitAckCount:2, lastPopTimestamp:1795228883490]", dt.UTC)
    {'waitAckCount': 2, 'lastPopTimestamp': 1795228883490}
    """
    state: dict[str, int | bool] = {}
    for name, value in _STATE.findall(text):
        if name.endswith("Timestamp"):
            is_epoch = re.fullmatch("[0-9]{13}", value) is not None
            state[name] = int(value) if is_epoch else local_ms(value, zone) or 0
        elif value in ("true", "false"):
            state[name] = value == "true"
        else:
            state[name] = whole(value, name)
    return state


def _states(
    output: Output, title: str, ts_ms: int, context: AdminContext
) -> list[tuple[QueueRow, dict[str, int | bool]]] | None:
    """Return the queues of a section with their states; None without the section. Raises DecodeError."""
    lines = section(output.lines, title)
    if not any(line.strip().startswith("#Topic") for line in lines):
        return None
    table = queue_table(lines, "#Topic", cuts_names=False)
    kept, states = [], []
    for row in table.rows:
        text = row.columns.get("ProcessQueueInfo", "")
        if "QueueInfo [" not in text or "]" not in text:
            table.broken.append(f"{row.topic} {row.broker_name} {row.queue_id} {text}")
            continue
        kept.append(row)
        states.append(process_queue_state(text[text.index("QueueInfo [") :], context.times.zone))
    if table.broken:
        # Without a queue the client would seem not to hold it.
        raise DecodeError("bad_row", f"a queue in {title} is cut or broken: {' '.join(table.broken[0].split())[:80]!r}")
    times = ("lastPullTimestamp", "lastPopTimestamp")
    if any(context.times.is_ahead(int(state.get(name, 0)), ts_ms) for state in states for name in times):
        states = [{n: v for n, v in state.items() if not n.endswith("Timestamp")} for state in states]
    return list(zip(kept, states, strict=True))


def _only_a_list(output: Output, context: AdminContext) -> DecodeError:
    """Return why a list of clients is not used. What mqadmin concluded is kept as remarks."""
    group = output.options.get("g")
    of_group = f" of group {group}" if group else ""
    for line in map(str.strip, output.lines):
        if _REMARK.search(line):
            context.remarks[f"mqadmin consumerStatus{of_group}: {line[:200]}"] += 1
    listed = [found for line in output.lines if (found := _LISTED.match(line.strip())) is not None]
    if listed:
        clients = counted(len(listed), "client")
        shown = ", ".join(found[1] for found in listed[:3])
        return DecodeError(
            "only_a_list",
            f"it only lists {clients}{of_group} ({shown}{', ...' if len(listed) > 3 else ''}); give the files that it "
            f"wrote ({listed[0][2]}), or consumerStatus -g GROUP -i CLIENT",
        )
    if any("#Consumer " in line for line in output.lines):
        return DecodeError("no_table", "it lacks the section #Consumer Properties#; give the whole output")
    return DecodeError("no_table", "it lists no client; use consumerStatus -g GROUP -i CLIENT")
