"""Outcomes of messages by packets: each scenario is a separate group and topic, all audited together."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import polars as pl
import pytest

from mqreplay.decisions.delivery_audit import AUDIT_COUNTS
from mqreplay.decisions.packet_audit import (
    acknowledged_messages,
    packet_audit,
    packet_counts_of_shard,
    unplaced_messages,
)
from mqreplay.evidence.messages.pulled_messages import PulledMessages, pulled_messages_of_shard, retry_fates
from mqreplay.lake.contract import arrow_schema, load_contracts
from mqreplay.replay.task_results import merged
from silver_moments import at
from silver_rows import rows

SEND = {"broker_name": "b", "queue_id": 0, "answer_queue_id": 0, "mode": "sync", "response_code": 0, "client_id": "p"}
SEND |= {"is_batch": False, "is_delayed": False, "is_transaction": False, "tags": ""}
QUEUE = {"broker_name": "b", "queue_id": 0, "client_id": "c1"}
PULL = QUEUE | {"response_code": 0, "remark": "FOUND", "sys_flag": 0}
COMMIT = QUEUE | {"kind": "UPDATE", "broker_id": 0}
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
RETRY = {"broker_name": "b", "client_id": "c1", "sent_ts": at(5), "judgement": "agree", "reason": "r"}
SUBSCRIPTIONS = dict.fromkeys(("consumer_group", "topic", "sub_string", "expression_type"), pl.String)
VERSIONS = ("4.9.7", "5.3.3")


class Capture:
    """Rows of a capture in the making. Each scenario has a topic of its own, named as its group."""

    def __init__(self) -> None:
        self.sends: list[dict] = []
        self.pulls: list[dict] = []
        self.commits: list[dict] = []
        self.changes: list[dict] = []
        self.breaks: list[dict] = []
        self.retried: list[dict] = []
        self.tags: list[tuple] = []

    def send(self, topic: str, offsets: Iterable[int], **differs: object) -> None:
        for offset in offsets:
            base = {"ts": at(offset), "topic": topic, "queue_offset": offset, "msg_id": f"{topic}-{offset}"}
            self.sends.append(base | differs)

    def pull(self, group: str, asked: int, after: int | None, topic: str | None = None, **differs: object) -> None:
        """A pull; it has a message for each offset up to ``after``. None: it has no recorded answer."""
        base = {"request_ts": at(100), "consumer_group": group, "topic": topic or group, "queue_offset": asked}
        if after is None:
            differs = {"response_code": None, "remark": None} | differs
        else:
            base |= {"response_ts": at(101), "next_begin_offset": after, "msg_count": after - asked}
        self.pulls.append(base | differs)

    def commit(self, group: str, offset: int, **differs: object) -> None:
        self.commits.append({"ts": at(900), "consumer_group": group, "topic": group, "commit_offset": offset} | differs)

    def subscribe(self, group: str, expression: str = "*", kind: str = "TAG") -> None:
        self.tags.append((group, group, expression, kind))

    def plain(self, group: str, sent: int, pulls: Iterable[tuple[int, int | None]], committed: int) -> None:
        self.send(group, range(sent))
        for asked, after in pulls:
            self.pull(group, asked, after)
        self.commit(group, committed)
        self.subscribe(group)

    def sent_back(self, group: str, offset: int, *topics: str, seconds: float = 5) -> None:
        for place, topic in enumerate(topics):
            self.retried.append(
                {"consumer_group": group, "topic": group, "msg_id": f"{group}-{offset}", "expected_topic": topic}
                | {"sent_ts": at(seconds + place)}
            )

    def audit(self, shards: int = 1) -> pl.DataFrame:
        send = rows("silver.send", SEND, self.sends)
        frames = (
            rows("silver.pull", PULL, self.pulls),
            rows("silver.offset_commit", COMMIT, self.commits),
            rows("silver.offset_change", CHANGE, self.changes),
        )
        topics = set(send["topic"])
        by_queue = zip(*(dealt(frame, shards) for frame in frames), strict=True)
        pulled: PulledMessages = merged([pulled_messages_of_shard(*shard, topics) for shard in by_queue])
        fates = retry_fates(rows("gold.retried_message", RETRY, self.retried), pulled)
        subscriptions = pl.DataFrame(self.tags, SUBSCRIPTIONS, orient="row")
        breaks = rows("gold.offset_continuity", BREAK, self.breaks)
        parts = dealt(send, shards)
        counts = [packet_counts_of_shard(each, pulled, subscriptions, VERSIONS, breaks, fates) for each in parts]
        return packet_audit(pl.concat(counts), pl.concat([unplaced_messages(each) for each in parts]))


def dealt(frame: pl.DataFrame, shards: int) -> list[pl.DataFrame]:
    """The rows of each shard, by topic."""
    shard = pl.Series("shard", [zlib.crc32(topic.encode()) % shards for topic in frame["topic"]], pl.Int64)
    numbered = frame.with_columns(shard)
    return [numbered.filter(pl.col("shard") == number).drop("shard") for number in range(shards)]


def scenarios() -> Capture:
    made = Capture()
    made.plain("fine", 10, [(0, 4), (4, 10), (10, None)], 10)
    made.plain("late start", 10, [(4, 10)], 10)
    made.plain("pending", 10, [(0, 6), (6, 10)], 6)
    made.plain("by a pull's commit", 5, [(0, 5)], 2)
    made.pull("by a pull's commit", 5, 5, response_code=19, remark="OFFSET_OVERFLOW_ONE", sys_flag=3, commit_offset=5)
    made.plain("deleted", 10, [(0, 3), (6, 10)], 10)
    made.pull("deleted", 3, 6, response_code=21, remark="OFFSET_TOO_SMALL", msg_count=0)
    made.plain("deleted and unanswered", 10, [(0, 3), (3, None), (6, 10)], 10)
    made.pull("deleted and unanswered", 3, 6, response_code=21, remark="OFFSET_TOO_SMALL", msg_count=0)
    made.plain("skipped", 10, [(0, 3), (6, 10)], 10)
    made.breaks.append(
        {"consumer_group": "skipped", "topic": "skipped", "kind": "jump", "previous_offset": 3, "new_offset": 6}
        | {"queue_max_offset": 10}
    )
    made.plain("a break of the capture", 10, [(0, 3), (6, 10)], 10)
    made.plain("another client", 10, [(0, 3)], 3)
    made.commit("another client", 10, client_id="c2", ts=at(901))
    made.plain("by a file", 5, [(0, 3)], 0)
    made.commits = [row for row in made.commits if row["consumer_group"] != "by a file"]
    of_file = {"consumer_group": "by a file", "topic": "by a file", "from_ts": at(800), "to_ts": at(900)}
    made.changes.append(of_file | {"new_offset": 5})
    made.plain("no commit", 5, [(0, 5)], 0)
    made.commits = [row for row in made.commits if row["consumer_group"] != "no commit"]
    made.plain("twice", 10, [(0, 6), (4, 10)], 10)
    made.plain("perhaps twice", 10, [(0, 6), (6, None), (6, 10)], 10)
    made.plain("no answer", 5, [(0, 5)], 5)
    made.sends[-1] |= {"response_code": None, "queue_offset": None, "answer_queue_id": None}
    made.plain("not flushed", 5, [(0, 5)], 5)
    made.sends[-1] |= {"response_code": 12}
    made.plain("delayed", 5, [(0, 5)], 5)
    made.sends[-1] |= {"is_delayed": True}
    tagged(made)
    batches(made)
    sent_back(made)
    return made


def tagged(made: Capture) -> None:
    for group, expression, kind in (
        ("tags", "A", "TAG"),
        ("sql", "a > 1", "SQL92"),
        ("sql of tags", "TAGS = 'A'", "SQL92"),
    ):
        made.send(group, range(6), tags="A")
        made.sends[-1] |= {"tags": ""}
        made.sends[-2] |= {"tags": "B"}
        made.pull(group, 0, 3)
        made.pull(group, 3, 6, msg_count=1)
        made.commit(group, 6)
        made.subscribe(group, expression, kind)
    made.send("all filtered", range(6), tags="B")
    made.pull("all filtered", 0, 1, msg_count=0)
    made.pull("all filtered", 1, 6, response_code=20, remark="NO_MATCHED_MESSAGE", msg_count=0)
    made.commit("all filtered", 6)
    made.subscribe("all filtered", "A")
    made.plain("tags not known", 3, [], 3)
    made.tags[-1] = ("tags not known", "tags not known", "A", "TAG")
    made.sends = [row | ({"tags": None} if row["topic"] == "tags not known" else {}) for row in made.sends]
    made.pull("tags not known", 0, 3, msg_count=2)
    made.plain("no tags wanted", 3, [(0, 3)], 3)
    made.sends = [row | ({"tags": None} if row["topic"] == "no tags wanted" else {}) for row in made.sends]
    for group, count in (("no heartbeat", 2), ("no heartbeat and whole", 3)):
        made.plain(group, 3, [], 3)
        made.tags.pop()
        made.pull(group, 0, 3, msg_count=count)


def batches(made: Capture) -> None:
    messages = [{"msg_id": f"batch-{n}", "keys": None, "tags": ""} for n in range(4)]
    made.send("batch", [0], is_batch=True, batch=messages, msg_id=None, tags=None)
    made.send("batch", [4])
    made.pull("batch", 0, 5)
    made.commit("batch", 5)
    made.subscribe("batch")
    made.plain("cut batch", 2, [(0, 5)], 5)
    made.sends[-1] |= {"is_batch": True, "batch": None, "msg_id": None, "tags": None}


def sent_back(made: Capture) -> None:
    made.plain("dead letters", 5, [(0, 5)], 5)
    made.sent_back("dead letters", 1, "%RETRY%dead letters", "%DLQ%dead letters")
    for group in ("retried", "retry pending", "retry not pulled"):
        made.plain(group, 5, [(0, 5)], 5)
        made.sent_back(group, 1, *[f"%RETRY%{group}"] * 2)
        if group != "retry not pulled":
            made.pull(group, 0, 2, topic=f"%RETRY%{group}")
            made.commit(group, 2 if group == "retried" else 1, topic=f"%RETRY%{group}")


@pytest.fixture(scope="module", params=[1, 7])
def audit(request) -> dict[str, dict]:
    return {row["consumer_group"]: row for row in scenarios().audit(request.param).to_dicts()}


def figures(row: dict) -> dict:
    """What is not zero; unexpected and out_of_order are never known."""
    assert (row["unexpected"], row["out_of_order"], row["source"]) == (None, None, "packets")
    return {name: row[name] for name in AUDIT_COUNTS if row[name] != 0 and name not in ("unexpected", "out_of_order")}


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("fine", {"acknowledged": 10, "delivered": 10}),
        ("late start", {"acknowledged": 6, "delivered": 6}),
        ("pending", {"acknowledged": 10, "delivered": 6, "pending": 4}),
        ("by a pull's commit", {"acknowledged": 5, "delivered": 5}),
        ("deleted", {"acknowledged": 10, "delivered": 7, "lost": 3}),
        ("deleted and unanswered", {"acknowledged": 10, "delivered": 7, "lost": None}),
        ("skipped", {"acknowledged": 10, "delivered": 7, "skipped": 3}),
        ("a break of the capture", {"acknowledged": 10, "delivered": 7, "lost": None}),
        ("another client", {"acknowledged": 10, "delivered": 3, "lost": None}),
        ("by a file", {"acknowledged": 5, "delivered": 3, "lost": None}),
        ("no commit", {"acknowledged": 5, "delivered": None, "lost": None}),
        ("twice", {"acknowledged": 10, "delivered": 10, "duplicated": None}),
        ("perhaps twice", {"acknowledged": 10, "delivered": 10, "duplicated": None}),
        ("no answer", {"acknowledged": 4, "delivered": 4}),
        ("not flushed", {"acknowledged": 5, "delivered": 5}),
        ("delayed", {"acknowledged": 4, "delivered": 4}),
        ("tags", {"acknowledged": 6, "delivered": 4, "filtered": 2}),
        ("all filtered", {"acknowledged": 6, "filtered": 6}),
        ("sql", {"acknowledged": 6, "delivered": None, "filtered": None, "lost": None}),
        ("sql of tags", {"acknowledged": 6, "delivered": 4, "filtered": 2}),
        ("tags not known", {"acknowledged": 3, "delivered": None, "filtered": None, "lost": None}),
        ("no tags wanted", {"acknowledged": 3, "delivered": 3}),
        ("no heartbeat", {"acknowledged": 3, "delivered": None, "filtered": None, "lost": None}),
        ("no heartbeat and whole", {"acknowledged": 3, "delivered": 3}),
        ("batch", {"acknowledged": 5, "delivered": 5}),
        ("cut batch", {"acknowledged": 1, "delivered": 1}),
        ("dead letters", {"acknowledged": 5, "delivered": 4, "failed": 1}),
        ("retried", {"acknowledged": 5, "delivered": 5}),
        ("retry pending", {"acknowledged": 5, "delivered": None, "failed": None}),
        ("retry not pulled", {"acknowledged": 5, "delivered": None, "failed": None}),
    ],
)
def test_what_became_of_the_messages(audit, group, expected):
    assert figures(audit[group]) == expected, audit[group]["reason"]


def test_every_message_is_counted_once(audit):
    for row in audit.values():
        ways = [row[way] for way in ("delivered", "pending", "failed", "skipped", "filtered", "lost")]
        if None not in ways:
            assert row["acknowledged"] == sum(ways), row


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("fine", "answers to sends and pulls, and commits"),
        ("deleted and unanswered", "pulls have no recorded answer"),
        ("a break of the capture", "capture all brokers without a break"),
        ("another client", "a client committed of which no pull is recorded"),
        ("by a file", "a client committed of which no pull is recorded"),
        ("no commit", "no commit tells"),
        ("twice", "messages were pulled again"),
        ("delayed", "delayed messages and those of transactions are not counted"),
        ("cut batch", "batches whose body was cut are not counted"),
        ("sql", "a SQL92 filter"),
        ("tags not known", "import the capture again"),
        ("no heartbeat", "no heartbeat tells"),
        ("retry pending", "whether the retries of messages sent back succeeded is not known"),
    ],
)
def test_the_reason_names_what_the_counts_rest_on(audit, group, words):
    assert audit[group]["reason"].startswith("by packets: ")
    assert words in audit[group]["reason"]


def test_rows_have_the_columns_of_the_table() -> None:
    columns = load_contracts()["gold.delivery_audit"].columns
    expected = pl.from_arrow(arrow_schema((c.name, c.type) for c in columns if c.name != "cluster").empty_table())
    assert Capture().audit().schema == expected.schema
    assert scenarios().audit().schema == expected.schema


def test_topics_whose_sends_were_not_recorded_and_logical_queues_are_not_audited() -> None:
    made = Capture()
    made.plain("fine", 3, [(0, 3)], 3)
    made.sends = []
    assert made.audit().is_empty()
    made.plain("static", 3, [(0, 3)], 3)
    made.sends = [row | {"broker_name": "__syslo__global__"} for row in made.sends]
    assert made.audit().is_empty()


def test_messages_of_a_batch_have_consecutive_offsets() -> None:
    batch = [{"msg_id": f"7F{n}", "keys": f"k{n}", "tags": "A"} for n in range(3)]
    differs = {"ts": at(1), "topic": "t", "queue_offset": 7, "is_batch": True, "batch": batch, "tags": None}
    found = acknowledged_messages(rows("silver.send", SEND, [differs])).sort("queue_offset")
    assert found.select("queue_offset", "msg_id", "keys", "tags").rows() == [
        (7, "7F0", "k0", "A"),
        (8, "7F1", "k1", "A"),
        (9, "7F2", "k2", "A"),
    ]
