"""Records of offsets: consumerProgress, brokerConsumeStats and topicStatus of mqadmin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from mqreplay.errors import DecodeError
from mqreplay.record.imports.mqadmin.answers import Record
from mqreplay.record.imports.mqadmin.context import AdminContext
from mqreplay.record.imports.mqadmin.lists import group_of, tps_text
from mqreplay.record.imports.mqadmin.outputs import Output
from mqreplay.record.imports.mqadmin.tables import GROUP, QueueRow, QueueTable, keyed_text, queue_table, whole

_OffsetRow = tuple[QueueRow, Mapping[str, object]]
_OF_GROUP = ("Broker Offset", "Consumer Offset")
_OF_TOPIC = ("Min Offset", "Max Offset")


def consume_stats(output: Output, ts_ms: int, context: AdminContext) -> list[Record]:
    """Return the consume_stats records of consumerProgress -g, one a broker. Raises DecodeError."""
    if any(line.strip().startswith("#Group") for line in output.lines):
        raise DecodeError("not_used", "it is a summary of all groups; use consumerProgress -g GROUP for each group")
    table = _table(output, "#Topic", None, _OF_GROUP, context)
    group = output.options.get("g") or group_of(row.topic for row in table.rows)
    if group is None:
        raise DecodeError("no_group", "it names no group; put the command as a line before the output")
    by_broker: dict[str, list[_OffsetRow]] = defaultdict(list)
    for row, offsets in _offsets_of_group(table.rows, ts_ms, context):
        by_broker[row.broker_name].append((row, offsets))
    tps = _tps_of(output.lines) if len(by_broker) == 1 else None
    return [
        _consume_stats(name, context.asked_id(name, ts_ms), group, rows, ts_ms, tps) for name, rows in by_broker.items()
    ]


def broker_consume_stats(output: Output, ts_ms: int, context: AdminContext) -> list[Record]:
    """Return the consume_stats records of brokerConsumeStats, one a group and broker. Raises DecodeError.

    mqadmin leaves out queues from which the group consumed nothing, and those with less lag than -l.
    """
    table = _table(output, "#Topic", None, (GROUP, *_OF_GROUP), context)
    asked = context.names.of_address(output.options.get("b", ""))
    by_group: dict[tuple[str, str], list[_OffsetRow]] = defaultdict(list)
    for row, offsets in _offsets_of_group(table.rows, ts_ms, context):
        by_group[row.columns[GROUP], row.broker_name].append((row, offsets))
    return [
        _consume_stats(name, asked[1] if asked and asked[0] == name else None, group, rows, ts_ms)
        for (group, name), rows in by_group.items()
    ]


def topic_stats(output: Output, ts_ms: int, context: AdminContext) -> list[Record]:
    """Return the topic_stats records of topicStatus, one a broker. Raises DecodeError."""
    topic = output.options.get("t")
    if not topic:
        raise DecodeError("no_topic", "it names no topic; put the command as a line before the output")
    table = _table(output, "#Broker Name", topic, _OF_TOPIC, context)
    times = context.times.of([row.columns.get("Last Updated") for row in table.rows], ts_ms)
    by_broker: dict[str, list[_OffsetRow]] = defaultdict(list)
    for row, at in zip(table.rows, times, strict=True):
        offsets = {
            "lastUpdateTimestamp": at,
            "maxOffset": whole(row.columns["Max Offset"], "Max Offset"),
            "minOffset": whole(row.columns["Min Offset"], "Min Offset"),
        }
        by_broker[row.broker_name].append((row, offsets))
    return [
        (
            "topic_stats",
            {
                "ts": ts_ms,
                "broker_name": name,
                "broker_id": context.asked_id(name, ts_ms),
                "topic": topic,
                "body": f'{{"offsetTable":{keyed_text(of)}}}',
            },
        )
        for name, of in by_broker.items()
    ]


def _table(output: Output, heading: str, topic: str | None, needs: Sequence[str], context: AdminContext) -> QueueTable:
    table = queue_table(output.lines, heading, topic, needs=needs)
    context.count(output.command or "", table)
    table.rows = _once(table.rows)
    if not table.is_whole:
        raise DecodeError("no_rows", "its heading is cut or broken; redirect mqadmin to a file")
    if not table.rows and table.broken:
        raise DecodeError(
            "no_rows", f"all {len(table.broken)} rows in it are cut or broken; redirect mqadmin to a file"
        )
    if not table.rows:
        raise DecodeError(
            "no_rows", "mqadmin may have cut the names of all its queues" if table.cut_names else "it lists no queue"
        )
    return table


def _once(rows: Sequence[QueueRow]) -> list[QueueRow]:
    """Return the last row of each queue and group, where a page repeats rows."""
    return list({(row[:3], row.columns.get(GROUP)): row for row in rows}.values())


def _offsets_of_group(rows: Sequence[QueueRow], ts_ms: int, context: AdminContext) -> list[_OffsetRow]:
    times = context.times.of([row.columns.get("LastTime") for row in rows], ts_ms)
    return [
        (
            row,
            {
                "brokerOffset": whole(row.columns["Broker Offset"], "Broker Offset"),
                "consumerOffset": whole(row.columns["Consumer Offset"], "Consumer Offset"),
                "lastTimestamp": at,
            },
        )
        for row, at in zip(rows, times, strict=True)
    ]


def _consume_stats(
    name: str, broker_id: int | None, group: str, rows: Sequence[_OffsetRow], ts_ms: int, tps: str | None = None
) -> Record:
    return (
        "consume_stats",
        {
            "ts": ts_ms,
            "broker_name": name,
            "broker_id": broker_id,
            "consumer_group": group,
            "body": f'{{{tps_text(tps)}"offsetTable":{keyed_text(rows)}}}',
        },
    )


def _tps_of(lines: Sequence[str]) -> str | None:
    begin = "Consume TPS:"
    return next((line.strip().removeprefix(begin).strip() for line in lines if line.strip().startswith(begin)), None)
