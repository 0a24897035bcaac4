"""What became of messages, by both logs: each scenario a group of its own, all audited at once, and the laws beside."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from mqreplay.core.delivery_audit import Delivery, audit_delivery, order_violations
from mqreplay.replay.delivery_audit import COUNTS, delivery_audit
from silver_moments import at

SENT = {"topic": "T", "broker_name": "b", "queue_id": 0, "send_status": "SEND_OK", "tags": "A"}
GIVEN = {
    "client_id": "c1",
    "topic": "T",
    "queue_topic": "T",
    "broker_name": "b",
    "queue_id": 0,
    "reconsume_times": 0,
    "status": "CONSUME_SUCCESS",
    "orderly": False,
}
COMMIT = {"kind": "UPDATE", "client_id": "c1", "topic": "T", "broker_name": "b", "broker_id": 0, "queue_id": 0}
CHANGE = {"source_name": "b-0", "broker_name": "b", "broker_id": 0, "queue_id": 0}
BREAK = {
    "broker_name": "b",
    "broker_id": 0,
    "queue_id": 0,
    "cause": "reset",
    "from_ts": at(1),
    "to_ts": at(2),
    "size": 1,
}
TAGS = "cluster string, consumer_group string, topic string, expressions array<string>, has_sql92 boolean"


class Night:
    """Rows of the logs in the making. Each scenario has a topic of its own, named as its group."""

    def __init__(self) -> None:
        self.sent: list[dict] = []
        self.given: list[dict] = []
        self.commits: list[dict] = []
        self.changes: list[dict] = []
        self.breaks: list[dict] = []
        self.tags: list[tuple] = []

    def send(self, topic: str, offsets, **differs: object) -> None:
        for offset in offsets:
            base = {"ts": at(offset), "topic": topic, "queue_offset": offset, "msg_id": f"{topic}-{offset}"}
            self.sent.append(base | differs)

    def give(self, group: str, offsets, *, client: str = "c1", late: float = 100, **differs: object) -> None:
        for place, offset in enumerate(offsets):
            base = {"ts": at(late + place), "consumer_group": group, "topic": group, "queue_topic": group}
            row = base | {"client_id": client, "queue_offset": offset, "msg_id": f"{group}-{offset}"}
            self.given.append(row | differs)

    def commit(self, group: str, offset: int, seconds: float = 900, **differs: object) -> None:
        base = {"ts": at(seconds), "consumer_group": group, "topic": group, "commit_offset": offset}
        self.commits.append(base | differs)

    def moved(self, group: str, kind: str, old: int, new: int, end: int | None) -> None:
        offsets = {"previous_offset": old, "new_offset": new, "queue_max_offset": end}
        self.breaks.append({"consumer_group": group, "topic": group, "kind": kind} | offsets)

    def subscribe(self, group: str, *expressions: str, sql: bool = False) -> None:
        self.tags.append(("c", group, group, list(expressions), sql))

    def plain(self, group: str, sent: int, given, committed: int | None, *tags: str) -> None:
        """A topic of so many messages, of which the group was given some, and committed up to an offset."""
        self.send(group, range(sent))
        self.give(group, given)
        if committed is not None:
            self.commit(group, committed)
        self.subscribe(group, *(tags or ("*",)))


def scenarios() -> Night:
    night = Night()
    night.plain("fine", 10, range(10), 10)
    night.plain("late start", 10, range(4, 10), 10)
    night.plain("lost", 10, [0, 1, 2, 5, 6, 7, 8, 9], 10)
    night.plain("pending", 10, range(6), 6)
    night.plain("twice", 5, [0, 1, 2, 2, 3, 4, 4, 4], 5)
    night.plain("tags", 10, [n for n in range(10) if n not in (3, 4)], 10, "A", "B")
    night.sent = [row | ({"tags": "C"} if row["msg_id"] in ("tags-3", "tags-4") else {}) for row in night.sent]
    night.plain("empty subscription", 5, [0, 1, 2, 4], 5, "")
    night.plain("untold", 5, [0, 1, 2, 4], 5)
    night.plain("untold and whole", 5, range(5), 5)
    night.tags = [row for row in night.tags if not row[1].startswith("untold")]
    night.plain("no commit", 5, [0, 1, 2, 4], None)
    night.plain("by the file", 5, [0, 1, 2, 4], None)
    night.changes = [{"consumer_group": "by the file", "topic": "by the file", "to_ts": at(9), "new_offset": 5}]
    night.plain("failed commit", 5, range(3), 3)
    night.commit("failed commit", 5, 950, error="connect failed")
    night.plain("unlogged", 5, [0, 1, 2, 4], None)
    night.commit("unlogged", 5, client_id="c2")
    night.plain("sampled", 1_000, range(0, 1_000, 100), 1_000)
    night.plain("set back", 10, [0, 1, 2, 3, 8, 9], None)
    for seconds, offset in ((10, 10), (20, 4)):
        night.commit("set back", offset, seconds)

    night.subscribe("sql", "a > 1", sql=True)
    night.send("sql", range(5))
    night.give("sql", [0, 1, 4])
    night.commit("sql", 5)

    # Set to 999999 at 5, put back to the end (8), consumed on to 11 of 13.
    night.plain("beyond", 13, [*range(5), *range(8, 11)], None)
    night.commit("beyond", 5, 10)
    night.moved("beyond", "beyond_max", 5, 999_999, 8)
    night.changes += [
        {"consumer_group": "beyond", "topic": "beyond", "to_ts": at(s), "new_offset": o}
        for s, o in ((20, 999_999), (30, 8), (40, 11))
    ]
    night.plain("jumped", 10, [0, 1, 7, 9], 10)
    night.moved("jumped", "jump", 2, 7, 10)

    # Three fail: one comes back and succeeds, one becomes a dead letter, one waits to come back.
    night.plain("retried", 6, [0, 1, 2], 6)
    night.give("retried", [3, 4, 5], status="RECONSUME_LATER")
    back = {"queue_topic": "%RETRY%retried", "broker_name": "z"}
    for status, offset, place in (("CONSUME_SUCCESS", 3, 0), ("RECONSUME_LATER", 4, 1), ("RECONSUME_LATER", 4, 2)):
        night.give("retried", [offset], late=200 + place, queue_offset=place, status=status, reconsume_times=1, **back)

    # Two sends that nobody confirmed: one was stored all the same, one message is nobody's.
    night.plain("strange", 10, [n for n in range(10) if n not in (4, 7)], 10)
    night.sent = [row for row in night.sent if row["msg_id"] not in ("strange-4", "strange-7")]
    night.send("strange", [4], send_status=None, queue_offset=None, msg_id=None, key="k4", error="timeout")
    night.give("strange", [4], keys="k4", msg_id="x4", late=300)
    night.give("strange", [7], keys="k7", msg_id="x7", late=301)

    night.plain("orderly", 6, [], 6)
    night.give("orderly", [0, 1, 3, 2, 1, 4, 5], orderly=True, status="SUCCESS")
    night.give("orderly", [5], orderly=True, status="SUSPEND_CURRENT_QUEUE_A_MOMENT", late=50)

    night.plain("broadcast", 5, [0, 1, 2, 3, 4], 5)
    night.give("broadcast", range(5), client="c2")
    night.plain("logged twice", 5, range(5), 5)
    night.give("logged twice", range(5))
    night.send("logged twice", range(5))
    night.send("nobody took it", range(5))
    return night


@pytest.fixture(scope="module")
def audit(rows, spark):
    night = scenarios()
    frame = delivery_audit(
        rows("silver.produce", SENT, night.sent),
        rows("silver.consume", GIVEN, night.given),
        spark.createDataFrame(night.tags, TAGS),
        rows("silver.offset_commit", COMMIT, night.commits),
        rows("silver.offset_change", CHANGE, night.changes),
        rows("gold.offset_continuity", BREAK, night.breaks),
        spark.createDataFrame([("c", "broadcast")], "cluster string, consumer_group string"),
    )
    return {row.consumer_group: row.asDict() for row in frame.collect()}


def figures(row: dict) -> dict:
    """What is not zero, in doubt included."""
    return {name: row[name] for name in COUNTS if row[name] != 0 and not (name == "out_of_order" and row[name] is None)}


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("fine", {"acknowledged": 10, "delivered": 10}),
        ("late start", {"acknowledged": 6, "delivered": 6}),
        ("lost", {"acknowledged": 10, "delivered": 8, "lost": 2}),
        ("pending", {"acknowledged": 10, "delivered": 6, "pending": 4}),
        ("twice", {"acknowledged": 5, "delivered": 5, "duplicated": 3}),
        ("tags", {"acknowledged": 10, "delivered": 8, "filtered": 2}),
        ("empty subscription", {"acknowledged": 5, "delivered": 4, "lost": 1}),
        ("untold", {"acknowledged": 5, "delivered": 4, "filtered": None, "lost": None}),
        ("untold and whole", {"acknowledged": 5, "delivered": 5}),
        ("sql", {"acknowledged": 5, "delivered": 3, "filtered": None, "lost": None}),
        ("no commit", {"acknowledged": 5, "delivered": 4, "lost": None}),
        ("by the file", {"acknowledged": 5, "delivered": 4, "lost": None}),
        ("failed commit", {"acknowledged": 5, "delivered": 3, "pending": 2}),
        ("unlogged", {"acknowledged": 5, "delivered": 4, "lost": None}),
        ("sampled", {"acknowledged": 10, "delivered": 10}),
        ("set back", {"acknowledged": 10, "delivered": 6, "pending": 4}),
        ("beyond", {"acknowledged": 13, "delivered": 8, "pending": 2, "skipped": 3}),
        ("jumped", {"acknowledged": 10, "delivered": 4, "skipped": 5, "lost": 1}),
        ("retried", {"acknowledged": 6, "delivered": 4, "failed": 2}),
        ("strange", {"acknowledged": 8, "delivered": 8, "unexpected": 1}),
        ("orderly", {"acknowledged": 6, "delivered": 6, "duplicated": 1, "out_of_order": 1}),
        ("logged twice", {"acknowledged": 5, "delivered": 5}),
    ],
)
def test_what_became_of_the_messages(audit, group, expected):
    assert figures(audit[group]) == expected


def test_who_cannot_be_audited_has_no_row(audit):
    assert not {"broadcast", "nobody took it"} & set(audit)


def test_every_message_is_counted_once(audit):
    for row in audit.values():
        if row["lost"] is not None and row["filtered"] is not None:
            ways = ("delivered", "pending", "failed", "skipped", "filtered", "lost")
            assert row["acknowledged"] == sum(row[way] for way in ways), row


def test_order_is_only_told_of_orderly_listeners(audit):
    assert {group for group, row in audit.items() if row["out_of_order"] is not None} == {"orderly"}


@pytest.mark.parametrize(
    ("group", "word"),
    [
        ("untold", "no heartbeat"),
        ("sql", "SQL92"),
        ("no commit", "how far"),
        ("unlogged", "no log of deliveries"),
        ("by the file", "no log of deliveries"),
        ("sampled", "each 100th place"),
        ("fine", "logs of producers and consumers"),
    ],
)
def test_the_reason_says_what_it_rests_on(audit, group, word):
    assert word in audit[group]["reason"]


@pytest.mark.parametrize("seed", [1, 2])
def test_sums_and_order_are_the_laws(rows, spark, seed):
    chance = random.Random(seed)
    size, queues = 60, (0, 1)
    every = [(queue, offset) for queue in queues for offset in range(size)]
    acknowledged = [m for m in every if chance.random() < 0.9]
    given = [m for m in every for _ in range(chance.choice((0, 1, 1, 1, 1, 2)))]
    given += [(queue, 0) for queue in queues if (queue, 0) not in given]
    for _ in range(25):
        i = chance.randrange(len(given) - 1)
        given[i], given[i + 1] = given[i + 1], given[i]
    # The log of producers covers a queue from its first line to its last; what lies outside is not unexpected.
    acknowledged = sorted({*acknowledged, *((queue, end) for queue in queues for end in (0, size - 1))})
    clients = [chance.choice(("c1", "c2")) for _ in given]

    def name(message):
        return f"{message[0]}-{message[1]}"

    sent_rows = [{"ts": at(0), "queue_id": q, "queue_offset": o, "msg_id": name((q, o))} for q, o in acknowledged]
    given_rows = [
        {"ts": at(i), "consumer_group": "g", "client_id": who, "queue_id": q, "queue_offset": o, "msg_id": name((q, o))}
        | {"orderly": True, "status": "SUCCESS"}
        for i, ((q, o), who) in enumerate(zip(given, clients, strict=True))
    ]
    commits = [
        {"ts": at(999), "consumer_group": "g", "client_id": who, "queue_id": q, "commit_offset": size}
        for q in queues
        for who in sorted(set(clients))
    ]
    (row,) = delivery_audit(
        rows("silver.produce", SENT, sent_rows),
        rows("silver.consume", GIVEN, given_rows),
        spark.createDataFrame([("c", "g", "T", ["*"], False)], TAGS),
        rows("silver.offset_commit", COMMIT, commits),
        rows("silver.offset_change", CHANGE, []),
        rows("gold.offset_continuity", BREAK, []),
        spark.createDataFrame([], "cluster string, consumer_group string"),
    ).collect()
    law = audit_delivery(acknowledged, acknowledged, given)
    assert row.lost == law.lost.total()
    assert row.unexpected == len(law.unexpected)
    assert row.duplicated == sum((Counter(m for m in given if m in set(acknowledged)) - Counter(acknowledged)).values())
    assert law.duplicated.total() == row.duplicated
    made = [Delivery(("T", "b", q), who, o) for (q, o), who in zip(given, clients, strict=True)]
    assert row.out_of_order == len(order_violations(made)) > 0
