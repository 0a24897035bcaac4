"""Logs of producers and consumers that tests make up, and what gold.delivery_audit makes of them."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

import polars as pl

from mqreplay.decisions.delivery_audit import delivery_audit, message_counts_of_shard
from mqreplay.evidence.messages.audit_scope import audit_scope, scope_of_shard
from silver_moments import at
from silver_rows import rows

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
SUBSCRIPTIONS = dict.fromkeys(("consumer_group", "topic", "sub_string", "expression_type"), pl.String)
VERSIONS = ("4.9.7", "5.3.3")
BROADCASTING = {"consumer_group": pl.String}
QUEUE = (pl.coalesce("queue_topic", "topic"), "broker_name", "queue_id")


class Night:
    """Rows of the logs in the making. Each scenario has a topic of its own, named as its group."""

    def __init__(self) -> None:
        self.sent: list[dict] = []
        self.given: list[dict] = []
        self.commits: list[dict] = []
        self.changes: list[dict] = []
        self.breaks: list[dict] = []
        self.tags: list[tuple] = []
        self.broadcasting: list[str] = []

    def send(self, topic: str, offsets: Iterable[int], **differs: object) -> None:
        for offset in offsets:
            base = {"ts": at(offset), "topic": topic, "queue_offset": offset, "msg_id": f"{topic}-{offset}"}
            self.sent.append(base | differs)

    def give(
        self, group: str, offsets: Iterable[int], *, client: str = "c1", late: float = 100, **differs: object
    ) -> None:
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
        self.tags.append((group, group, "||".join(expressions), "SQL92" if sql else "TAG"))

    def plain(self, group: str, sent: int, given: Iterable[int], committed: int | None, *tags: str) -> None:
        """A topic of so many messages, of which the group was given some, and committed up to an offset."""
        self.send(group, range(sent))
        self.give(group, given)
        if committed is not None:
            self.commit(group, committed)
        self.subscribe(group, *(tags or ("*",)))

    def audit(self, shards: int = 1) -> pl.DataFrame:
        produce = rows("silver.produce", SENT, self.sent)
        consume = rows("silver.consume", GIVEN, self.given)
        commits = rows("silver.offset_commit", COMMIT, self.commits)
        changes = rows("silver.offset_change", CHANGE, self.changes)
        broadcasting = pl.DataFrame({"consumer_group": self.broadcasting}, BROADCASTING)
        subscriptions = pl.DataFrame(self.tags, SUBSCRIPTIONS, orient="row")
        breaks = rows("gold.offset_continuity", BREAK, self.breaks)
        by_queue = zip(*(dealt(frame, QUEUE, shards) for frame in (produce, consume, commits, changes)), strict=True)
        scope = audit_scope([scope_of_shard(*shard, broadcasting) for shard in by_queue])
        by_message = zip(*(dealt(frame, ["msg_id"], shards) for frame in (produce, consume)), strict=True)
        counts = [message_counts_of_shard(*shard, scope, subscriptions, VERSIONS, breaks) for shard in by_message]
        return delivery_audit(pl.concat(counts), scope)


def dealt(frame: pl.DataFrame, by: Sequence[pl.Expr | str], shards: int) -> list[pl.DataFrame]:
    """The rows of each shard."""
    own = [pl.col("topic") if isinstance(e, pl.Expr) and "queue_topic" not in frame.columns else e for e in by]
    shard = [zlib.crc32(repr(key).encode()) % shards for key in frame.select(own).rows()]
    numbered = frame.with_columns(pl.Series("shard", shard, pl.Int64))
    return [numbered.filter(pl.col("shard") == number).drop("shard") for number in range(shards)]


def scenarios() -> Night:
    night = Night()
    night.plain("fine", 10, range(10), 10)
    night.plain("late start", 10, range(4, 10), 10)
    night.plain("lost", 10, [0, 1, 2, 5, 6, 7, 8, 9], 10)
    night.plain("pending", 10, range(6), 6)
    night.plain("twice", 5, [0, 1, 2, 2, 3, 4, 4, 4], 5)
    night.plain("tags", 10, [n for n in range(10) if n not in (3, 4)], 10, "A", "B")
    night.sent = [row | ({"tags": "C"} if row["msg_id"] in ("tags-3", "tags-4") else {}) for row in night.sent]
    night.plain("untagged", 5, [0, 1, 2, 4], 5, "A")
    night.sent = [row | ({"tags": None} if row["msg_id"] == "untagged-3" else {}) for row in night.sent]
    night.plain("empty subscription", 5, [0, 1, 2, 4], 5, "")
    night.plain("empty and tag", 5, [0, 1, 2, 4], 5, "", "B")
    night.plain("no heartbeat", 5, [0, 1, 2, 4], 5)
    night.plain("no heartbeat and whole", 5, range(5), 5)
    night.tags = [row for row in night.tags if not row[0].startswith("no heartbeat")]
    night.plain("no commit", 5, [0, 1, 2, 4], None)
    night.plain("by the file", 5, [0, 1, 2, 4], None)
    night.changes = [{"consumer_group": "by the file", "topic": "by the file", "to_ts": at(9), "new_offset": 5}]
    night.plain("by a slave's file", 5, range(3), None)
    night.changes += [
        {"consumer_group": "by a slave's file", "topic": "by a slave's file", "to_ts": at(s), "new_offset": o} | differs
        for s, o, differs in ((9, 3, {}), (10, 5, {"broker_id": 1}), (11, None, {}))
    ]
    night.plain("failed commit", 5, range(3), 3)
    night.commit("failed commit", 5, 950, error="connect failed")
    night.plain("unlogged", 5, [0, 1, 2, 4], None)
    night.commit("unlogged", 5, client_id="c2")
    night.plain("one of two logged", 5, [0, 1, 2, 4], 4)
    night.commit("one of two logged", 5, client_id="c2")
    night.plain("only the first", 5, [0], 5)
    night.plain("sampled", 1_000, range(0, 1_000, 100), 1_000)
    night.plain("set back", 10, [0, 1, 2, 3, 8, 9], None)
    for seconds, offset in ((10, 10), (20, 4)):
        night.commit("set back", offset, seconds)
    night.plain("two at once", 10, range(4), None)
    for offset in (4, 6):
        night.commit("two at once", offset, 10)
    night.plain("not answered", 5, [0, 1, 2, 4], 5)
    night.give("not answered", [3], status=None)

    night.subscribe("sql", "a > 1", sql=True)
    night.send("sql", range(5))
    night.give("sql", [0, 1, 4])
    night.commit("sql", 5)

    # Filters that read tags or keys alone, and one whose properties were recorded.
    for name, expression in (("sql of tags", "TAGS IS NOT NULL AND TAGS IN ('A', 'B')"), ("sql of keys", "KEYS = 'k'")):
        night.subscribe(name, expression, sql=True)
        night.send(name, range(3), key="k")
        night.send(name, [3], tags="C", key="l")
        night.give(name, [0, 1])
        night.commit(name, 4)
    night.subscribe("sql of properties", "a > 1 AND a_1 <> 'eu'", sql=True)
    for offset, a in enumerate("2322"):
        night.send("sql of properties", [offset], properties=f"KEYS\x01k\x02a_1\x01us\x02a\x01{a}\x02")
    night.send("sql of properties", [4, 5], properties="KEYS\x01a\x02a_1\x01us\x02a\x011\x02")
    night.send("sql of properties", [6], properties="")
    night.give("sql of properties", [0, 1])
    night.commit("sql of properties", 7)

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

    night.plain("lost after a jump", 10, [0, 1, 8, 9], 10)
    night.moved("lost after a jump", "jump", 2, 7, 10)
    night.plain("lost after the end", 13, [*range(5), *range(9, 13)], 13)
    night.moved("lost after the end", "beyond_max", 5, 999_999, 8)

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

    night.plain("orderly retry", 3, [], 3)
    night.give("orderly retry", [0, 2], orderly=True, status="SUCCESS")
    night.give("orderly retry", [1], orderly=True, status="SUCCESS", late=200, reconsume_times=1)

    night.plain("broadcast", 5, [0, 1, 2, 3, 4], 5)
    night.give("broadcast", range(5), client="c2")
    night.broadcasting = ["broadcast"]
    night.plain("logged twice", 5, range(5), 5)
    night.give("logged twice", range(5))
    night.send("logged twice", range(5))
    night.send("nobody took it", range(5))
    across_queues_and_topics(night)
    return night


def across_queues_and_topics(night: Night) -> None:
    """Add what no single queue or topic shows."""
    # A broker was slow to confirm: the producer stored the message in a second queue too.
    night.plain("stored twice", 5, range(5), 5)
    night.give("stored twice", [0], late=200, broker_name="z", queue_offset=40)
    # The client that committed past a message left its log on another topic of the group.
    night.plain("two topics", 5, [0, 1, 2, 4], None)
    night.commit("two topics", 5, client_id="c2")
    night.give("two topics", [0], client="c2", topic="other topic", queue_topic="other topic", msg_id="other-0")
    # All that a client logged came back by the retry topic.
    night.plain("retries only", 5, [0, 1, 2, 4], None)
    night.commit("retries only", 5, client_id="c2")
    night.give("retries only", [0], client="c2", queue_topic="%RETRY%retries only", status="RECONSUME_LATER")
    # A message forwarded to this topic keeps the id that it was sent with to the first; the second send failed.
    night.plain("forwarded", 5, [0, 1, 2, 4], 5)
    night.sent = [row for row in night.sent if row["msg_id"] != "forwarded-3"]
    night.give("forwarded", [3], late=200, msg_id="fine-3")
