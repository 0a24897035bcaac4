"""Queues that came and went, keys that outlived them, and copies that could not be believed."""

from __future__ import annotations

import pytest

from mqreplay.replay.findings.queues import changed_counts, orphan_offset_keys
from mqreplay.replay.findings.snapshots import refused_snapshots, snapshot_findings
from silver_moments import at

CONFIG = {"source_name": "a-0", "broker_name": "a", "broker_id": 0, "change": "changed"}
CHANGE = {"source_name": "a-0", "broker_name": "a", "broker_id": 0, "consumer_group": "g"}


def config(topic: str, seconds: float, read: int, write: int, broker: str = "a", **differs: object) -> dict:
    row = {"topic": topic, "ts": at(seconds), "read_queue_nums": read, "write_queue_nums": write}
    return row | {"broker_name": broker, "source_name": f"{broker}-0"} | differs


def offset(topic: str, queue: int, seconds: float, new: int | None = 5, **differs: object) -> dict:
    return {"topic": topic, "queue_id": queue, "to_ts": at(seconds), "new_offset": new} | differs


CONFIGS = [
    # The same change on two masters, a minute apart, is one; on the slave it is a copy.
    *[config("grown", s, n, n, "a") for s, n in ((0, 2), (100, 4))],
    *[config("grown", s, n, n, "b") for s, n in ((0, 2), (160, 4))],
    *[config("grown", s, n, n, broker_id=1, source_name="a-1") for s, n in ((0, 2), (500, 4))],
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
    offset("shrunk", 3, 20, None, consumer_group="h"),  # its entry is gone too
    offset("removed", 0, 10),
    offset("removed", 0, 10, broker_id=1, source_name="a-1"),
    offset("never known", 0, 10),
    offset("shrunk", 3, 10, broker_name="c", source_name="c-0"),  # nobody copied its topics.json
]


@pytest.fixture(scope="module")
def told(rows):
    configs, offsets = rows("silver.topic_config", CONFIG, CONFIGS), rows("silver.offset_change", CHANGE, OFFSETS)
    found = changed_counts(configs).unionByName(orphan_offset_keys(offsets, configs)).orderBy("from_ts").collect()
    by_topic: dict[tuple[str, str], list] = {}
    for row in found:
        by_topic.setdefault((row.kind, row.topic), []).append(row)
    return by_topic


def test_a_change_of_queues_is_one_note_of_all_masters(told):
    (grown,) = told["queue_count_changed", "grown"]
    assert "from 2 read and 2 write queues to 4 and 4 on a, b" in grown.summary
    assert (grown.severity, grown.broker_name, grown.from_ts) == ("info", None, at(100).replace(tzinfo=None))
    assert [row.summary.split(" queues ", 1)[1] for row in told["queue_count_changed", "shrunk"]] == [
        "to 4 and 2 on a.",
        "to 2 and 2 on a.",
    ]


def test_other_changes_of_a_topic_are_none(told):
    assert {topic for kind, topic in told if kind == "queue_count_changed"} == {"grown", "shrunk"}


def test_keys_are_orphans_when_the_master_has_no_such_queue_any_more(told):
    found = {topic: rows for (kind, topic), rows in told.items() if kind == "orphan_offset_key"}
    assert found.keys() == {"shrunk", "removed", "never known"}
    (shrunk,) = found["shrunk"]
    assert (shrunk.broker_name, shrunk.broker_id, shrunk.severity, shrunk.consumer_group) == ("a", 0, "info", "g")
    assert "keeps 2 offsets of 1 group" in shrunk.summary
    assert all(len(rows) == 1 for rows in found.values())
    # Since the queues were gone, or since the offset was set, where nobody knew the topic.
    since = {topic: row.from_ts for topic, (row,) in found.items()}
    seconds = {"shrunk": 300, "removed": 100, "never known": 10}
    assert since == {topic: at(s).replace(tzinfo=None) for topic, s in seconds.items()}


def refused(path: str, **differs: object) -> dict[str, object]:
    return {"path": path, "line_number": 0, "detail_key": "", "code": "torn"} | differs


def test_files_that_were_not_whole_are_told_by_their_broker_or_client(rows):
    base = {"recording": "r", "kind": "consumer_offset", "reason": "", "advice": "", "content": b""}
    ms = 1795228800000
    quarantine = rows(
        "bronze.quarantine",
        base,
        [
            refused(f"snapshots/broker-a-0/{ms}/consumerOffset.json"),
            refused(f"snapshots/broker-a-0/{ms + 5000}/topics.json", code="empty"),
            refused(f"snapshots/client-10.0.0.1@7/{ms}/g.offsets.json"),
            refused(f"snapshots/broker-b-0/{ms}/consumerOffset.json", detail_key="T@g"),  # one entry, not the file
            refused(f"snapshots/broker-b-0/{ms}/consumerOffset.json", code="late"),  # whole, and not read
            refused("pull_log.jsonl.gz", line_number=3),
        ],
    )
    told = snapshot_findings(refused_snapshots(quarantine)).collect()
    found = {(r.broker_name, r.broker_id, r.client_id): r for r in told}
    assert found.keys() == {("broker-a", 0, None), (None, None, "10.0.0.1@7")}
    row = found["broker-a", 0, None]
    assert row.summary.startswith("2 snapshot files of broker-a-0 could not be believed (consumerOffset.json, ")
    assert ((row.to_ts - row.from_ts).total_seconds(), row.severity) == (5, "info")
