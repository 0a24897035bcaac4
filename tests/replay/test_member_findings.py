"""Members that were lost, and members with more than their share."""

from __future__ import annotations

import pytest

from mqreplay.replay.findings.members import heard_until, lost_consumers, lost_findings
from mqreplay.replay.findings.shape import that_reach
from mqreplay.replay.findings.shares import uneven_findings
from mqreplay.replay.membership import membership, signs
from silver_moments import at

LOST_S, ENDED = 45, 300
BEAT = {"broker_name": "b", "broker_id": 0, "response_code": 0}


def beats(group: str, client: str, *seconds: float) -> list[dict]:
    data = (group, "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET", False, [("T", "*", "TAG", 1)])
    row = {"client_id": client, "kind": "HEART_BEAT", "consumer_data_set": [data]}
    return [row | {"ts": at(s)} for s in seconds]


def left(group: str, client: str, seconds: float) -> dict[str, object]:
    row = {"client_id": client, "kind": "UNREGISTER_CLIENT", "unregistered_consumer_group": group}
    return row | {"ts": at(seconds)}


def held(group: str, client: str, queue: int, start: float, end: float) -> dict[str, object]:
    row = {"consumer_group": group, "client_id": client, "queue_id": queue, "topic": "T", "broker_name": "b"}
    return row | {"from_ts": at(start), "to_ts": at(end), "source": "rebalance"}


HEARTBEATS = [
    *beats("g", "killed", 0, 30, 60),
    *beats("g", "stayed", *range(0, ENDED + 1, 30)),
    *beats("idle", "without a queue", 0, 30, 60),
    *beats("planned", "stopped", 0, 30, 60),
    left("planned", "stopped", 70),
    *beats("cut", "recorded no longer", 240, ENDED - LOST_S),
    *beats("cut", "silent for longer", 240, ENDED - LOST_S - 0.001),
]
PULLS = [
    {"consumer_group": "pulls alone", "client_id": "perhaps stopped", "request_ts": at(s)} for s in range(0, 60, 15)
]
OWNERS = [
    *[held("g", "killed", q, 0, 60) for q in (0, 1)],
    held("g", "killed", 2, 0, 10),  # given up long before
    held("g", "stayed", 0, 62, ENDED),
    held("g", "stayed", 1, 75, ENDED),
    held("planned", "stopped", 0, 0, 70),
    held("pulls alone", "perhaps stopped", 0, 0, 45),
    held("cut", "recorded no longer", 0, 240, ENDED),
    held("cut", "silent for longer", 0, 240, ENDED - LOST_S - 0.001),
]


@pytest.mark.parametrize(
    ("clients", "recorded", "until"),
    [
        ({"a": 100, "b": 90, "ahead": 3_700}, 105, 105),
        ({"a": 100, "b": 90, "ahead": 3_700}, 50, 100),
        ({"a": 100, "b": 90}, 200, 100),
        ({"a": 100, "lost": 20}, 99, 99),
        ({"a": 100, "lost": 20}, None, 100),
        ({"alone": 100}, 90, 90),
    ],
)
def test_one_client_alone_does_not_make_the_night_longer(spark, clients, recorded, until) -> None:
    told = [(who, at(s)) for who, last in clients.items() for s in (0, last)]
    members = spark.createDataFrame(told, "client_id string, to_ts timestamp")
    [row] = heard_until(members, None if recorded is None else at(recorded)).collect()
    assert row.until_ts == at(until).replace(tzinfo=None)


@pytest.fixture(scope="module")
def lost(rows):
    none = [rows(f"silver.{name}", {}, []) for name in ("rebalance", "assignment", "offset_commit")]
    pull = rows("silver.pull", {"topic": "T", "broker_name": "b", "queue_id": 0, "queue_offset": 0}, PULLS)
    told = signs(rows("silver.heartbeat", BEAT, HEARTBEATS), *none[:2], pull, none[2])
    members = membership(told, 90).localCheckpoint()
    ended = heard_until(members, None)
    found = lost_findings(lost_consumers(members, rows("gold.queue_owner", {}, OWNERS), ended, LOST_S))
    return {row.client_id: row for row in found.collect()}


def test_only_who_fell_silent_without_a_word_is_lost(lost):
    assert {client: row.severity for client, row in lost.items()} == {
        "killed": "warning",
        "silent for longer": "warning",
        "without a queue": "info",
    }
    assert [e.table_name for e in lost["without a queue"].evidence] == ["silver.heartbeat"]


def test_lost_from_the_last_sign_until_all_its_queues_had_new_owners(lost):
    row = lost["killed"]
    assert (row.kind, row.severity, row.consumer_group) == ("consumer_lost", "warning", "g")
    assert (row.from_ts, row.to_ts) == (at(60).replace(tzinfo=None), at(75).replace(tzinfo=None))
    assert "while it held 2 queues" in row.summary
    assert [e.table_name for e in row.evidence] == ["silver.heartbeat", "gold.queue_owner"]
    assert lost["silent for longer"].to_ts == at(ENDED).replace(tzinfo=None), "nobody took its queue"


def test_lost_before_midnight_and_known_after_it_is_told_after_it(rows):
    def told_from(seconds, kind, to):
        row = {"finding_id": "f", "kind": kind, "from_ts": at(60), "to_ts": at(to)}
        row |= {"severity": "info", "confidence": 1.0, "summary": "", "advice": ""}
        return that_reach(rows("gold.finding", {}, [row]), at(seconds), LOST_S).count() == 1

    assert told_from(75, "consumer_lost", 75), "it goes on"
    assert told_from(60 + LOST_S, "consumer_lost", 75), "it had not been silent for long enough before"
    assert not told_from(61 + 2 * LOST_S, "consumer_lost", 75)
    assert not told_from(60 + LOST_S, "stuck_queue", 75), "it was over, and told of"


def took(group: str, client: str, held: int, of: int, seconds: tuple[float, ...], members: int = 2) -> list[dict]:
    row = {"consumer_group": group, "client_id": client, "topic": "T", "strategy": "CONSISTENT_HASH", "reason": ""}
    row |= {"judgement": "agree", "cid_all": [f"c{n}" for n in range(members)], "mq_all": [("b", q) for q in range(of)]}
    row |= {"actual": [("b", q) for q in range(held)]}
    return [row | {"rebalance_ts": at(s), "record_id": f"{group}{client}{s}"} for s in seconds]


LONG = (0, 20, 40)


def test_an_uneven_share_is_two_more_than_fair_for_a_while(rows):
    allocation = rows(
        "gold.allocation",
        {},
        [
            *took("one more", "c1", 5, 8, LONG),
            *took("two more", "c1", 6, 8, LONG),
            *took("fair is rounded up", "c1", 6, 9, LONG),
            *took("a moment", "c1", 8, 8, (0, 20)),
            *took("alone", "c1", 8, 8, LONG, members=1),
            *[row | {"topic": "%RETRY%g"} for row in took("of retries", "c1", 8, 8, LONG)],
            *[row | {"actual": None} for row in took("unknown", "c1", 8, 8, LONG)],
        ],
    )
    (row,) = uneven_findings(allocation, 2, 20, 45).collect()
    assert (row.consumer_group, row.kind, row.severity) == ("two more", "uneven_allocation", "info")
    assert "held up to 6 queues of T, where a fair share is 4, by CONSISTENT_HASH" in row.summary
    assert (row.to_ts - row.from_ts).total_seconds() == 60
