"""Records of offsets: consumerProgress, brokerConsumeStats and topicStatus of mqadmin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mqreplay.importer.files.other_files import unused_command
from mqreplay.importer.mqadmin.answers import Record
from mqreplay.importer.mqadmin.context import AdminContext
from mqreplay.importer.mqadmin.lists import group_of, tps_text
from mqreplay.importer.mqadmin.outputs import Output
from mqreplay.importer.mqadmin.tables import GROUP_HEADING, Queue, QueueRow, keyed_text, queue_table, whole
from mqreplay.words.errors import DecodeError

# The column of `consumerProgress -s true`, and what it has for a queue that no client held. All queues have it if no
# client answered (ConsumerProgressSubCommand#getMessageQueueAllocationResult).
CLIENT, UNHELD = "Client IP", "N/A"
_USUAL_MS: Final = 60_000
OffsetRow = tuple[Queue, Mapping[Any, object]]


class OffsetTable(NamedTuple):
    """A table of offsets: its first heading, and the column of each member of a queue in the answer's body.

    ``time`` is the member with a printed time; ``needs`` are the other columns that it must have.
    """

    heading: str
    columns: Mapping[str, str]
    time: str
    needs: tuple[str, ...]


PROGRESS_COLUMNS: Final = {
    "brokerOffset": "Broker Offset",
    "consumerOffset": "Consumer Offset",
    "lastTimestamp": "LastTime",
}
PROGRESS: Final = OffsetTable("#Topic", PROGRESS_COLUMNS, "lastTimestamp", ("Broker Offset", "Consumer Offset"))
BROKER_PROGRESS: Final = PROGRESS._replace(needs=(GROUP_HEADING, *PROGRESS.needs))
ENDS: Final = OffsetTable(
    "#Broker Name",
    {"lastUpdateTimestamp": "Last Updated", "maxOffset": "Max Offset", "minOffset": "Min Offset"},
    "lastUpdateTimestamp",
    ("Min Offset", "Max Offset"),
)


def consume_stats(output: Output, ts_ms: int, context: AdminContext) -> list[Record]:
    """Return the consume_stats records of consumerProgress -g, one a broker. Raises DecodeError."""
    if any(line.strip().startswith("#Group") for line in output.lines):
        raise DecodeError("not_used", str(unused_command("consumerProgress without -g", output.lines)))
    rows = _rows(PROGRESS, output, None, ts_ms, context)
    group = output.options.get("g") or group_of(row.topic for row, _ in rows)
    if group is None:
        raise DecodeError("no_group", "it names no group; put the command as a line before the output")
    of_brokers = by_broker(rows)
    tps = _tps_of(output.lines) if len(of_brokers) == 1 else None
    has_clients = any(row.columns.get(CLIENT, UNHELD) != UNHELD for row, _ in rows)
    unheld = [row for row, _ in rows if row.columns.get(CLIENT) == UNHELD]
    records = []
    for name, own in of_brokers.items():
        stem, record = offset_record("consume_stats", ts_ms, name, group, own, context.asked_id(name, ts_ms), tps)
        if has_clients:
            record["unheld"] = [
                {"topic": row.topic, "broker_name": name, "queue_id": row.queue_id}
                for row in unheld
                if row.broker_name == name
            ]
        records.append((stem, record))
    return records


def broker_consume_stats(output: Output, ts_ms: int, context: AdminContext) -> list[Record]:
    """Return the consume_stats records of brokerConsumeStats, one a group and broker. Raises DecodeError.

    mqadmin leaves out queues from which the group consumed nothing, and those with less lag than -l.
    """
    asked = context.asked(output)
    of_groups: dict[tuple[str, str], list[OffsetRow]] = defaultdict(list)
    for row, offsets in _rows(BROKER_PROGRESS, output, None, ts_ms, context):
        of_groups[row.columns[GROUP_HEADING], row.broker_name].append((row, offsets))
    return [
        offset_record(
            "consume_stats",
            ts_ms,
            name,
            group,
            own,
            asked[1] if asked and asked[0] == name else context.asked_id(name, ts_ms),
        )
        for (group, name), own in of_groups.items()
    ]


def topic_stats(output: Output, ts_ms: int, context: AdminContext) -> list[Record]:
    """Return the topic_stats records of topicStatus, one a broker. Raises DecodeError."""
    topic = output.options.get("t")
    if not topic:
        raise DecodeError("no_topic", "it names no topic; put the command as a line before the output")
    return [
        offset_record("topic_stats", ts_ms, name, topic, own, context.asked_id(name, ts_ms))
        for name, own in by_broker(_rows(ENDS, output, topic, ts_ms, context)).items()
    ]


def lags_seen_once(answers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a note on the largest lag of groups that one answer of a broker shows; without one, no note.

    ``answers`` are rows of silver.consume_stats. One answer shows no offset that stands still. Messages of the last
    minute that wait are usual.
    """
    times: dict[tuple[str, str], set[int]] = defaultdict(set)
    for answer in answers:
        times[answer["consumer_group"], answer["broker_name"]].add(answer["ts"])
    lags = [
        (end - max(offset, 0), f"{group} on {topic} in {broker}/{queue}, which waits at {offset}")
        for answer in answers
        for topic, broker, queue, end, offset, stored in answer["offsets"] or ()
        if len(times[group := answer["consumer_group"], answer["broker_name"]]) == 1
        and (stored is None or answer["ts"] - stored >= _USUAL_MS)
    ]
    lag, place = max(lags, default=(0, ""))
    if lag <= 0:
        return []
    again = "one output shows a lag, and not whether it grows: give mqadmin consumerProgress -g GROUP again"
    return [f"{again}, some minutes later. The largest is {lag:,} messages of {place}"]


def by_broker(rows: Iterable[OffsetRow]) -> dict[str, list[OffsetRow]]:
    """Return the rows by the name of their broker."""
    groups: dict[str, list[OffsetRow]] = defaultdict(list)
    for row in rows:
        groups[row[0].broker_name].append(row)
    return groups


def offset_record(
    stem: str,
    ts_ms: int,
    broker_name: str,
    subject: str,
    rows: Iterable[OffsetRow],
    broker_id: int | None = None,
    tps: str | None = None,
) -> Record:
    """Return a topic_stats or consume_stats record of a broker. ``subject`` is the topic or the group."""
    named = {"topic" if stem == "topic_stats" else "consumer_group": subject}
    body = f'{{{tps_text(tps)}"offsetTable":{keyed_text(rows)}}}'
    return stem, {"ts": ts_ms, "broker_name": broker_name, "broker_id": broker_id, **named, "body": body}


def _rows(
    form: OffsetTable, output: Output, topic: str | None, ts_ms: int, context: AdminContext
) -> list[tuple[QueueRow, dict[str, Any]]]:
    """Return the rows of a table with their offsets and times."""
    table = queue_table(output.lines, form.heading, topic, needs=form.needs)
    context.count(output.command or "", table)
    if not table.is_whole:
        raise DecodeError("no_rows", "its heading is cut or broken; redirect mqadmin to a file")
    # The last row of each queue and group, where a page repeats rows.
    rows = list({(row[:3], row.columns.get(GROUP_HEADING)): row for row in table.rows}.values())
    if not rows and table.broken:
        raise DecodeError(
            "no_rows", f"all {len(table.broken)} rows in it are cut or broken; redirect mqadmin to a file"
        )
    if not rows:
        raise DecodeError(
            "no_rows", "mqadmin may have cut the names of all its queues" if table.cut_names else "it lists no queue"
        )
    times = context.times.of([row.columns.get(form.columns[form.time]) for row in rows], ts_ms)
    return [
        (
            row,
            {
                member: at if member == form.time else whole(row.columns[column], column)
                for member, column in form.columns.items()
            },
        )
        for row, at in zip(rows, times, strict=True)
    ]


def _tps_of(lines: Sequence[str]) -> str | None:
    begin = "Consume TPS:"
    return next((line.strip().removeprefix(begin).strip() for line in lines if line.strip().startswith(begin)), None)
