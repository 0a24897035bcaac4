"""Outcomes of messages by both logs: each scenario is a separate group, all audited together."""

from __future__ import annotations

import random
from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery_logs import Night, scenarios
from mqreplay.decisions.delivery_audit import AUDIT_COUNTS
from mqreplay.lake.contract import arrow_schema, load_contracts
from oracles.delivery_audit import Delivery, audit_delivery, order_violations
from silver_moments import at


@pytest.fixture(scope="module", params=[1, 7])
def audit(request) -> dict[str, dict]:
    return {row["consumer_group"]: row for row in scenarios().audit(request.param).to_dicts()}


def figures(row: dict) -> dict:
    """What is not zero, in doubt included."""
    return {
        name: row[name]
        for name in AUDIT_COUNTS
        if row[name] != 0 and not (name == "out_of_order" and row[name] is None)
    }


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("fine", {"acknowledged": 10, "delivered": 10}),
        ("late start", {"acknowledged": 6, "delivered": 6}),
        ("lost", {"acknowledged": 10, "delivered": 8, "lost": 2}),
        ("pending", {"acknowledged": 10, "delivered": 6, "pending": 4}),
        ("twice", {"acknowledged": 5, "delivered": 5, "duplicated": 3}),
        ("tags", {"acknowledged": 10, "delivered": 8, "filtered": 2}),
        ("untagged", {"acknowledged": 5, "delivered": 4, "filtered": 1}),
        ("empty and tag", {"acknowledged": 5, "delivered": 4, "filtered": 1}),
        ("empty subscription", {"acknowledged": 5, "delivered": 4, "lost": 1}),
        ("no heartbeat", {"acknowledged": 5, "delivered": 4, "filtered": None, "lost": None}),
        ("no heartbeat and whole", {"acknowledged": 5, "delivered": 5}),
        ("sql", {"acknowledged": 5, "delivered": 3, "filtered": None, "lost": None}),
        ("sql of tags", {"acknowledged": 4, "delivered": 2, "filtered": 1, "lost": 1}),
        ("sql of keys", {"acknowledged": 4, "delivered": 2, "filtered": 1, "lost": 1}),
        ("sql of properties", {"acknowledged": 7, "delivered": 2, "filtered": 3, "lost": 2}),
        ("no commit", {"acknowledged": 5, "delivered": 4, "lost": None}),
        ("by a slave's file", {"acknowledged": 5, "delivered": 3, "pending": 2}),
        ("by the file", {"acknowledged": 5, "delivered": 4, "lost": None}),
        ("failed commit", {"acknowledged": 5, "delivered": 3, "pending": 2}),
        ("one of two logged", {"acknowledged": 5, "delivered": 4, "lost": None}),
        ("unlogged", {"acknowledged": 5, "delivered": 4, "lost": None}),
        ("only the first", {"acknowledged": 5, "delivered": 1, "lost": 4}),
        ("sampled", {"acknowledged": 10, "delivered": 10}),
        ("set back", {"acknowledged": 10, "delivered": 6, "pending": 4}),
        ("two at once", {"acknowledged": 10, "delivered": 4, "pending": 4, "lost": 2}),
        ("not answered", {"acknowledged": 5, "delivered": 4, "lost": 1}),
        ("beyond", {"acknowledged": 13, "delivered": 8, "pending": 2, "skipped": 3}),
        ("lost after a jump", {"acknowledged": 10, "delivered": 4, "skipped": 5, "lost": 1}),
        ("lost after the end", {"acknowledged": 13, "delivered": 9, "skipped": 3, "lost": 1}),
        ("jumped", {"acknowledged": 10, "delivered": 4, "skipped": 5, "lost": 1}),
        ("retried", {"acknowledged": 6, "delivered": 4, "failed": 2}),
        ("strange", {"acknowledged": 8, "delivered": 8, "unexpected": 1}),
        ("orderly", {"acknowledged": 6, "delivered": 6, "duplicated": 1, "out_of_order": 1}),
        ("orderly retry", {"acknowledged": 3, "delivered": 3}),
        ("logged twice", {"acknowledged": 5, "delivered": 5}),
        ("stored twice", {"acknowledged": 5, "delivered": 5, "duplicated": 1}),
        ("two topics", {"acknowledged": 5, "delivered": 4, "lost": 1}),
        ("retries only", {"acknowledged": 5, "delivered": 4, "lost": 1}),
        ("forwarded", {"acknowledged": 4, "delivered": 4}),
    ],
)
def test_what_became_of_the_messages(audit, group, expected):
    assert figures(audit[group]) == expected


def test_groups_that_cannot_be_audited_have_no_row(audit):
    assert not {"broadcast", "nobody took it"} & set(audit)


def test_every_message_is_counted_once(audit):
    for row in audit.values():
        if row["lost"] is not None and row["filtered"] is not None:
            ways = ("delivered", "pending", "failed", "skipped", "filtered", "lost")
            assert row["acknowledged"] == sum(row[way] for way in ways), row


def test_order_is_counted_for_orderly_listeners_only(audit):
    assert {group for group, row in audit.items() if row["out_of_order"] is not None} == {"orderly", "orderly retry"}


@pytest.mark.parametrize(
    ("group", "reason"),
    [
        (
            "no heartbeat",
            "no heartbeat tells what the group subscribed to: messages without a delivery may not match it",
        ),
        (
            "sql",
            "a SQL92 filter, and properties that are not known: messages without a delivery may have been filtered",
        ),
        ("no commit", "no commit tells how far the group came: messages without a delivery may be pending"),
        (
            "unlogged",
            "a client that committed past them left no log of deliveries: messages without a delivery may be in it",
        ),
        (
            "by the file",
            "a client that committed past them left no log of deliveries: messages without a delivery may be in it",
        ),
        (
            "sampled",
            "by the logs of producers and consumers, of every 100th offset of a queue, as logged; "
            "order is promised to orderly listeners only",
        ),
        ("fine", "by the logs of producers and consumers; order is promised to orderly listeners only"),
        ("orderly", "by the logs of producers and consumers"),
    ],
)
def test_the_reason_names_what_the_counts_rest_on(audit, group, reason):
    assert audit[group]["reason"] == reason


def test_a_night_without_logs_has_no_rows_but_the_columns_of_the_table() -> None:
    empty = Night().audit()
    columns = load_contracts()["gold.delivery_audit"].columns
    expected = pl.from_arrow(arrow_schema((c.name, c.type) for c in columns if c.name != "cluster").empty_table())
    assert empty.is_empty()
    assert empty.schema == expected.schema


def test_a_night_over_midnight_has_a_row_for_each_day() -> None:
    night = Night()
    night.plain("late", 4, range(4), 4)
    midnight = 22 * 3600  # the recording begins at 02:00
    for row in night.sent[2:]:
        row["ts"] = at(midnight)
    found = night.audit().sort("day")
    assert found.select("acknowledged", "delivered").rows() == [(2, 2), (2, 2)]
    assert found["day"].to_list() == [at(0).date(), at(midnight).date()]


def test_a_day_without_acknowledged_messages_has_no_row() -> None:
    night = Night()
    night.plain("late", 4, [0, 1, 3], 4)
    night.sent = [row for row in night.sent if row["msg_id"] != "late-2"]
    night.give("late", [2], late=22 * 3600, msg_id="nobody's")
    assert night.audit().select("day", "unexpected").rows() == [(at(0).date(), 0)]


MESSAGES = st.tuples(st.integers(0, 1), st.integers(0, 5))


@given(
    sent=st.lists(MESSAGES, max_size=12, unique=True),
    received=st.lists(
        st.tuples(MESSAGES, st.sampled_from(["c1", "c2"]), st.sampled_from(["SUCCESS", "RECONSUME_LATER"])), max_size=20
    ),
    committed=st.integers(0, 6),
)
@pytest.mark.long
def test_the_split_into_shards_changes_nothing(sent, received, committed) -> None:
    night = Night()
    for queue_id, offset in sent:
        night.send("g", [offset], queue_id=queue_id, msg_id=f"{queue_id}-{offset % 4}")
    for second, ((queue_id, offset), client, status) in enumerate(received):
        place = {"queue_id": queue_id, "msg_id": f"{queue_id}-{offset % 4}", "orderly": True}
        night.give("g", [offset], client=client, late=second, status=status, **place)
    night.commit("g", committed)
    night.subscribe("g", "*")
    order = ["consumer_group", "topic", "day"]
    assert night.audit(shards=5).sort(order).equals(night.audit().sort(order))


@pytest.mark.parametrize("seed", [1, 2])
def test_sums_and_order_are_the_laws(seed):
    chance = random.Random(seed)
    size, queues = 60, (0, 1)
    every = [(queue, offset) for queue in queues for offset in range(size)]
    acknowledged = [m for m in every if chance.random() < 0.9]
    delivered = [m for m in every for _ in range(chance.choice((0, 1, 1, 1, 1, 2)))]
    delivered += [(queue, 0) for queue in queues if (queue, 0) not in delivered]
    for _ in range(25):
        i = chance.randrange(len(delivered) - 1)
        delivered[i], delivered[i + 1] = delivered[i + 1], delivered[i]
    # The log of producers covers a queue from its first line to its last; what lies outside is not unexpected.
    acknowledged = sorted({*acknowledged, *((queue, end) for queue in queues for end in (0, size - 1))})
    clients = [chance.choice(("c1", "c2")) for _ in delivered]
    night = Night()
    for q, o in acknowledged:
        night.send("g", [o], queue_id=q, ts=at(0), msg_id=f"{q}-{o}")
    for i, ((q, o), who) in enumerate(zip(delivered, clients, strict=True)):
        night.give("g", [o], client=who, late=i, queue_id=q, msg_id=f"{q}-{o}", orderly=True, status="SUCCESS")
    for q in queues:
        for who in sorted(set(clients)):
            night.commit("g", size, 999, queue_id=q, client_id=who)
    night.subscribe("g", "*")
    (row,) = night.audit().to_dicts()
    law = audit_delivery(acknowledged, acknowledged, delivered)
    assert row["lost"] == law.lost.total()
    assert row["unexpected"] == len(law.unexpected)
    assert row["duplicated"] == sum(
        (Counter(m for m in delivered if m in set(acknowledged)) - Counter(acknowledged)).values()
    )
    assert law.duplicated.total() == row["duplicated"]
    made = [Delivery(("T", "b", q), who, o) for (q, o), who in zip(delivered, clients, strict=True)]
    assert row["out_of_order"] == len(order_violations(made)) > 0
