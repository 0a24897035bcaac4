"""Numbers of queues that changed, and offsets that outlived their queues."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from evidence_keys import keys_of
from mqreplay.findings.shape import SCHEMA
from mqreplay.findings.topics import changed_counts, orphan_offset_keys, orphans_of_shard
from silver_moments import at
from silver_rows import rows

CONFIG = {"source_name": "a-0", "broker_name": "a", "broker_id": 0, "change": "changed"}
CHANGE = {"source_name": "a-0", "broker_name": "a", "broker_id": 0, "consumer_group": "g"}
Row = dict[str, Any]


def config(
    topic: str, seconds: float, read: int | None, write: int | None, broker: str = "a", **differs: object
) -> Row:
    row = {"topic": topic, "ts": at(seconds), "read_queue_nums": read, "write_queue_nums": write}
    return row | {"broker_name": broker, "source_name": f"{broker}-0"} | differs


def offset(topic: str, queue: int, seconds: float, new: int | None = 5, **differs: object) -> Row:
    return {"topic": topic, "queue_id": queue, "to_ts": at(seconds), "new_offset": new} | differs


CONFIGS = [
    # The same change on two masters, a minute apart, is one; on the slave it is a copy.
    *[config("grown", s, n, n, "a") for s, n in ((0, 2), (100, 4))],
    *[config("grown", s, n, n, "b") for s, n in ((0, 2), (160, 4))],
    *[config("grown", s, n, n, broker_id=1, source_name="a-1") for s, n in ((0, 2), (500, 4))],
    # Two minutes between them are one change, more are two.
    *[config("grown slowly", s, n, n, "a") for s, n in ((0, 2), (100, 4))],
    *[config("grown slowly", s, n, n, "b") for s, n in ((0, 2), (220.001, 4))],
    # Read queues half a minute after write queues, on both masters, are one change.
    *[config("grown in steps", s, r, w, "a") for s, r, w in ((0, 2, 2), (100, 2, 4), (130, 4, 4))],
    *[config("grown in steps", s, r, w, "b") for s, r, w in ((0, 2, 2), (101, 2, 4), (131, 4, 4))],
    # The same with a minute and a half between read and write queues.
    *[config("grown in late steps", s, r, w, "a") for s, r, w in ((0, 2, 2), (100, 4, 2), (190, 4, 4))],
    *[config("grown in late steps", s, r, w, "b") for s, r, w in ((0, 2, 2), (110, 4, 2), (200, 4, 4))],
    # A change that is taken back at once.
    *[config("taken back", s, n, n) for s, n in ((0, 4), (100, 2), (120, 4))],
    # Too many, then fewer: not a growth in all.
    *[config("grown and shrunk", s, n, n) for s, n in ((0, 4), (100, 8), (190, 6))],
    # Shrinking by the book: first what is written, then what is read.
    *[config("shrunk", s, r, w) for s, r, w in ((0, 4, 4), (100, 4, 2), (300, 2, 2))],
    *[config("permission", s, 2, 2, perm=p) for s, p in ((0, 6), (100, 4))],
    config("new", 50, 8, 8, change="first"),
    config("removed", 0, 2, 2),
    config("removed", 100, None, None, change="removed"),
]
OFFSETS = [
    *[offset("grown", q, 10) for q in range(4)],
    *[offset("shrunk", q, 10) for q in range(4)],
    offset("shrunk", 3, 10, consumer_group="h"),
    # A light message queue is in no topics.json.
    offset("%LMQ%device", 0, 10, consumer_group="%LMQ%device"),
    offset("shrunk", 3, 20, None, consumer_group="h"),  # its entry is gone too
    offset("removed", 0, 400),
    offset("removed", 0, 10),
    offset("removed", 1, 10),
    offset("removed", 0, 10, broker_id=1, source_name="a-1"),
    offset("never known", 0, 10),
    offset("shrunk", 3, 10, broker_name="c", source_name="c-0"),  # nobody copied its topics.json
]


def configs() -> pl.DataFrame:
    return rows("silver.topic_config", CONFIG, CONFIGS)


def orphans(shards: int) -> pl.DataFrame:
    changes = rows("silver.offset_change", CHANGE, OFFSETS)
    shard = changes.select(pl.struct("broker_name", "topic", "queue_id").hash() % shards).to_series()
    return pl.concat([orphans_of_shard(changes.filter(shard == n), configs()) for n in range(shards)])


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], list[Row]]:
    findings = pl.concat([changed_counts(configs(), "c"), orphan_offset_keys(orphans(1), "c")]).sort("from_ts")
    by_topic: dict[tuple[str, str], list[Row]] = {}
    for row in findings.iter_rows(named=True):
        by_topic.setdefault((row["kind"], row["topic"]), []).append(row)
    return by_topic


def test_a_change_of_queues_is_one_note_of_all_masters(found):
    (grown,) = found["queue_count_changed", "grown"]
    assert grown["summary"] == "Topic grown went from 2 read and 2 write queues to 4 and 4 on a, b."
    assert (grown["severity"], grown["broker_name"]) == ("info", None)
    assert (grown["from_ts"], grown["to_ts"]) == (at(100), at(160))
    assert keys_of(grown["evidence"]) == [
        "source_name=a-0 topic=grown ts=2026-11-21 02:01:40",
        "source_name=b-0 topic=grown ts=2026-11-21 02:02:40",
    ]
    (steps,) = found["queue_count_changed", "grown in steps"]
    assert steps["summary"] == "Topic grown in steps went from 2 read and 2 write queues to 4 and 4 on a, b."
    assert (steps["from_ts"], steps["to_ts"], len(steps["evidence"])) == (at(100), at(131), 4)
    assert [row["summary"].split(" queues ", 1)[1] for row in found["queue_count_changed", "shrunk"]] == [
        "to 4 and 2 on a.",
        "to 2 and 2 on a.",
    ]
    (late,) = found["queue_count_changed", "grown in late steps"]
    assert late["summary"].endswith(" went from 2 read and 2 write queues to 4 and 4 on a, b.")
    assert (late["from_ts"], late["to_ts"], len(late["evidence"])) == (at(100), at(200), 4)
    assert all("To remove queues" not in row["advice"] for row in (grown, steps, late))
    assert all("To remove queues" in row["advice"] for row in found["queue_count_changed", "shrunk"])
    assert ["To remove" in row["advice"] for row in found["queue_count_changed", "grown and shrunk"]] == [False, True]
    slow = found["queue_count_changed", "grown slowly"]
    assert [row["broker_name"] for row in slow] == ["a", "b"]
    assert keys_of(slow[1]["evidence"])[0].endswith("ts=2026-11-21 02:03:40.001000")


def test_other_changes_of_a_topic_are_none(found):
    changed = {topic for kind, topic in found if kind == "queue_count_changed"}
    assert changed == {"grown", "grown slowly", "grown in steps", "grown in late steps", "grown and shrunk", "shrunk"}


def test_keys_are_orphans_when_the_master_has_no_such_queue_any_more(found):
    of_topics = {topic: listed for (kind, topic), listed in found.items() if kind == "orphan_offset_key"}
    assert of_topics.keys() == {"shrunk", "removed", "never known"}
    (shrunk,) = of_topics["shrunk"]
    assert (shrunk["broker_name"], shrunk["broker_id"], shrunk["severity"]) == ("a", 0, "info")
    assert shrunk["consumer_group"] == "g"
    assert shrunk["summary"] == "Broker a keeps 2 offsets of 1 group on queues of shrunk that it no longer has."
    assert keys_of(shrunk["evidence"]) == [
        f"source_name=a-0 consumer_group=g topic=shrunk queue_id={queue}" for queue in (2, 3)
    ]
    assert all(len(listed) == 1 for listed in of_topics.values())
    # Since the queues were gone, or since the offset was set, where nobody knew the topic.
    since = {topic: (row["from_ts"], row["to_ts"]) for topic, (row,) in of_topics.items()}
    seconds = {"shrunk": (300, 300), "removed": (100, 400), "never known": (10, 10)}
    assert since == {topic: (at(first), at(last)) for topic, (first, last) in seconds.items()}


def test_shards_together_hold_the_same_orphans():
    order = ["topic", "consumer_group", "queue_id"]
    assert orphans(1).height == 5
    assert orphans(7).sort(order).equals(orphans(1).sort(order))


def test_no_rows_give_no_findings():
    no_configs, no_changes = rows("silver.topic_config", {}, []), rows("silver.offset_change", {}, [])
    assert changed_counts(no_configs, "c").schema == SCHEMA
    assert orphans_of_shard(rows("silver.offset_change", CHANGE, OFFSETS), no_configs).is_empty()
    none = orphans_of_shard(no_changes, no_configs)
    assert none.schema == orphans(1).schema
    assert orphan_offset_keys(none, "c").schema == SCHEMA
