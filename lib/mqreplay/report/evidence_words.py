"""What a row of evidence says, in words: for each table the columns worth showing, and the text made of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import Formatter
from typing import Any

from mqreplay.decode.kind import OFFSETS, ON_BROKER, QUEUE, Phrase
from mqreplay.decode.kinds import FILE_KINDS

WHO: Phrase = (
    "{client_id}, group {consumer_group}",
    "{client_id}",
    "group {consumer_group}",
    "{broker_name}-{broker_id}",
    "{source_name}",
    "{path}",
)
LONGEST = 160  # characters of one value
MOST = 12  # items of a list
ZERO_IS_NOTHING = frozenset({"reconsume_times", "redelivered_max"})
NOT_SHOWN = frozenset({"cluster", "day", "source_digest", "record_id"})


@dataclass(frozen=True)
class Wording:
    """How the rows of a table are shown: their instant, and phrases that say what happened.

    ``instant`` is the column by which rows are sorted; "" for a table without one. A row of a table with ``until``
    lasts until then. A phrase of which a column is null is left out.
    """

    instant: str
    phrases: tuple[Phrase, ...] = ()
    until: str = ""

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns that the text needs."""
        texts = [text for phrase in (WHO, *self.phrases) for text in alternatives(phrase)]
        named = {name for text in texts for name in columns_in(text)}
        return frozenset(named | {self.instant, self.until} - {""})


WORDINGS: Mapping[str, Wording] = {
    **{kind.table: Wording(kind.time, kind.phrases) for kind in FILE_KINDS.values() if kind.phrases},
    "bronze.quarantine": Wording("", ("{code}: {reason}",)),
    "gold.allocation": Wording(
        "rebalance_ts", ("{strategy} of {topic}", "expected {expected}", "took {actual}", "{judgement}: {reason}")
    ),
    "gold.failover_step": Wording(
        "ts", ("{step}", "name server {namesrv_addr}", "due until {expected_to}", ("{judgement}: {reason}", "{reason}"))
    ),
    "gold.offset_continuity": Wording(
        "to_ts",
        (
            OFFSETS,
            QUEUE,
            ON_BROKER,
            "{kind} of {size:,}",
            "cause {cause}",
            "sent from {client_addr}",
            "source {source}",
            "at most {redelivered_max:,} delivered again",
        ),
    ),
    "gold.pop_assignment": Wording("ts", ("{consumer_group} {topic}", ("{judgement}: {reason}", "{judgement}"))),
    "gold.pop_receipt": Wording("pop_ts", (QUEUE, "offset {queue_offset}", ("{judgement}: {reason}", "{judgement}"))),
    "gold.pull_answer": Wording(
        "request_ts",
        (
            QUEUE,
            "asked for offset {queue_offset:,}",
            "code {response_code}: {remark}",
            ("{judgement}: {reason}", "{judgement}"),
        ),
    ),
    "gold.pull_route": Wording(
        "request_ts",
        (
            QUEUE,
            "asked broker id {actual_broker_id}",
            "expected {expected_broker_id}",
            ("{judgement}: {reason}", "{judgement}"),
        ),
    ),
    "gold.queue_lock": Wording(
        "ts",
        (
            "lock of " + QUEUE,
            ("{actual}; {holder} has it since {holder_ts}", "{actual}; {holder} has it", "{actual}"),
            ("{judgement}: {reason}", "{judgement}"),
        ),
    ),
    "gold.queue_owner": Wording("from_ts", ("held " + QUEUE + " until {to_ts}", "source {source}"), until="to_ts"),
    "gold.send_attempt": Wording(
        "request_ts",
        (
            "try {attempt} of a send to {topic}",
            ("queue {broker_name}/{queue_id}", "{broker_name}"),
            ("answer {response_code}: {remark}", "answer {response_code}"),
            "error: {error}",
            ("{judgement}: {reason}", "{judgement}"),
        ),
    ),
    "gold.queue_start": Wording(
        "request_ts",
        (
            "first pull of " + QUEUE + " at offset {actual_offset:,}",
            "queue {min_offset:,} to {max_offset:,}",
            ("{judgement}: {reason}", "{judgement}"),
        ),
    ),
    "gold.flow_control": Wording(
        "ts",
        (
            QUEUE,
            "{cached_msgs:,} messages cached",
            "from offset {head_offset:,}",
            "{waiting:,} waiting",
            "flow control by {flow_control}",
            ("{judgement}: {reason}", "{judgement}"),
        ),
    ),
    "gold.committed_offset": Wording(
        "ts",
        (
            QUEUE,
            "offset {committed_offset:,} committed",
            "offset {unfinished_offset:,} not finished",
            "finished {finished_ts}",
            ("{judgement}: {reason}", "{judgement}"),
        ),
    ),
    "gold.retried_message": Wording(
        "sent_ts",
        (
            "sent back message {msg_id} of {topic}",
            "due {due_ts} in {expected_topic}",
            "stored again {stored_ts}",
            "received again {delivered_ts}",
            ("{judgement}: {reason}", "{judgement}"),
        ),
    ),
    "gold.rebalance_round": Wording(
        "from_ts",
        (
            "{joins} joined, {leaves} left: {members_before} members before, {members_after} after",
            "{moved} of {queues} queues moved",
            "no owner for {idle_s:,.0f} s",
            ("{judgement}: {reason}", "{judgement}"),
        ),
        until="to_ts",
    ),
    "gold.rebalance_step": Wording(
        "ts",
        (
            "queues of {topic}",
            "added {added}",
            "removed {removed}",
            "lacking {lacking}",
            "extra {extra}",
            "not pulled for long {expired}",
            ("{judgement}: {reason}", "{judgement}"),
        ),
    ),
    "gold.pull_batch": Wording(
        "request_ts",
        (QUEUE, "{msg_count} messages, {body_bytes:,} bytes", ("{judgement}: {reason}", "{judgement}")),
    ),
    "gold.replication": Wording(
        "ts",
        (
            "{unflushed_bytes:,} bytes not flushed, {allowed_bytes:,} allowed",
            "{behind_bytes:,} bytes behind its master",
            ("{judgement}: {reason}", "{judgement}"),
        ),
    ),
    "gold.slave_copy": Wording(
        "ts",
        (
            "{part} of slave {broker_id} of {broker_name}",
            "{differing} entries differ",
            ("{judgement}: {reason}", "{judgement}"),
        ),
    ),
    "gold.delay_progress": Wording(
        "ts",
        (
            "delay level {delay_level} of {broker_name}",
            "delivered up to {delivered_offset:,}, due up to {due_offset:,}",
            ("{judgement}: {reason}", "{judgement}"),
        ),
    ),
    "gold.slave_sync": Wording(
        "ts",
        (
            "slave {slave_addr}",
            "{behind_bytes:,} bytes not confirmed, {max_gap_bytes:,} allowed in sync",
            ("{judgement}: {reason}", "{judgement}"),
        ),
    ),
    "gold.listed_route": Wording(
        "from_ts",
        (
            ("route of {topic} at {namesrv_addr}", "route of {topic}"),
            "listed {listed}",
            "expected {expected}",
            ("{judgement}: {reason}", "{judgement}"),
        ),
        until="to_ts",
    ),
    "gold.slave_suggestion": Wording(
        "request_ts",
        (
            QUEUE,
            "{diff_min:,} to {diff_max:,} bytes behind, memory {memory:,} bytes",
            "suggested broker id {recorded_suggest}",
            "expected {expected_suggest}",
        ),
    ),
}
INSTANTS = ("request_ts", "rebalance_ts", "ts", "to_ts", "from_ts")


def wording_of(table: str, columns: Sequence[str]) -> Wording:
    """Return how rows of the table are shown; of a table without a wording of its own: each column that has a value."""
    if table in WORDINGS:
        return WORDINGS[table]
    instant = next((name for name in INSTANTS if name in columns), "")
    shown = [name for name in columns if name not in {*NOT_SHOWN, "client_id", "consumer_group", instant}]
    return Wording(instant, tuple(f"{name} {{{name}}}" for name in shown))


def who(row: Mapping[str, Any]) -> str:
    """Return whom a row is about: a client and its group, a broker, or a file.

    >>> who({"client_id": "c1", "consumer_group": "g"}), who({"broker_name": "b", "broker_id": 0})
    ('c1, group g', 'b-0')
    """
    return filled(WHO, row)


def what(wording: Wording, row: Mapping[str, Any]) -> str:
    """Return what a row says, in one line.

    >>> row = {"previous_offset": 1200, "new_offset": 35, "broker_name": "b", "queue_id": 2, "topic": "T"}
    >>> what(WORDINGS["silver.offset_change"], row)
    'offset 1,200 -> 35, queue b/2 of T'
    """
    return ", ".join(text for phrase in wording.phrases if (text := filled(phrase, row)))


def columns_in(text: str) -> list[str]:
    """Return the columns that a text of a phrase names.

    >>> columns_in("queue {broker_name}/{queue_id}")
    ['broker_name', 'queue_id']
    """
    return [name for _, name, _, _ in Formatter().parse(text) if name]


def filled(phrase: Phrase, row: Mapping[str, Any]) -> str:
    """Return the phrase with the values of a row; "" if none of its texts has all of them."""
    for text in alternatives(phrase):
        values = {name: row.get(name) for name in columns_in(text)}
        if all(value is not None and value != "" for value in values.values()) and not (
            ZERO_IS_NOTHING & values.keys() and 0 in values.values()
        ):
            return text.format_map({name: _text(value) for name, value in values.items()})
    return ""


def alternatives(phrase: Phrase) -> tuple[str, ...]:
    """Return the texts of a phrase; the first one whose columns have values is used."""
    return (phrase,) if isinstance(phrase, str) else phrase


def _text(value: Any) -> Any:
    """Return a value as text; a number as it is, for the text it goes into may format it."""
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, dt.datetime):
        return value.strftime("%H:%M:%S.%f")[:-3]
    if isinstance(value, list):
        return _list_text(value)
    if isinstance(value, dict):
        return _struct_text(value)
    text = str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _list_text(values: list[Any]) -> str:
    """Return the items; those of the same topic behind its name.

    >>> _list_text([{"topic": "T", "broker_name": "b", "queue_id": queue, "offset": 7} for queue in (0, 1)])
    'T b/0 to offset 7, b/1 to offset 7'
    >>> _list_text([]), _list_text(list(range(14)))
    ('none', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 ... (14 in all)')
    """
    texts, before = [], None
    for value in values[:MOST]:
        topic = value.get("topic") if isinstance(value, dict) and "queue_id" in value else None
        texts.append(f"{topic} {_text(value)}" if topic not in (None, before) else str(_text(value)))
        before = topic
    cut = ", ".join(texts) or "none"
    return cut if len(values) <= MOST else f"{cut} ... ({len(values)} in all)"


def _struct_text(value: dict[str, Any]) -> str:
    """Return a queue, a subscription or a group with its subscriptions; of any other struct all its values.

    >>> _struct_text({"group_name": "g", "subscriptions": [{"topic": "T", "sub_string": "A || B"}]})
    'g subscribes to T (A || B)'
    >>> _struct_text({"broker_name": "b", "queue_id": 1, "consumer_offset": 130, "broker_offset": 120})
    'b/1 at 130 of 120'
    """
    if "queue_id" in value:
        queue, offset = f"{value.get('broker_name')}/{value['queue_id']}", value.get("offset")
        if "consumer_offset" in value:
            return f"{queue} at {value['consumer_offset']:,} of {value['broker_offset']:,}"
        return queue if offset is None else f"{queue} to offset {offset:,}"
    if "group_name" in value:
        return f"{value['group_name']} subscribes to {_list_text(value.get('subscriptions') or [])}"
    if "sub_string" in value:
        return f"{value.get('topic')} ({value['sub_string']})"
    return " ".join(str(_text(each)) for each in value.values() if each is not None)[:LONGEST]
