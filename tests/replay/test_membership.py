"""Who was a member, from when to when: sessions end with UNREGISTER_CLIENT or with a silence, and with nothing else."""

from __future__ import annotations

import pytest

from mqreplay.replay.membership import membership, signs, subscribed_tags, subscriptions, unshared_groups
from silver_moments import at

SILENT_S = 90
BROKER = {"broker_name": "b", "broker_id": 0, "response_code": 0}


COMMIT = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0, "kind": "UPDATE"}


def beat(client: str, seconds: float, model: str = "CLUSTERING", *topics: tuple) -> dict[str, object]:
    subscribed = list(topics) or [("T", "*", "TAG", 1)]
    data = ("g", "CONSUME_PASSIVELY", model, "CONSUME_FROM_LAST_OFFSET", False, subscribed)
    return {"client_id": client, "ts": at(seconds), "kind": "HEART_BEAT", "consumer_data_set": [data]}


def left(client: str, seconds: float) -> dict[str, object]:
    return {
        "client_id": client,
        "ts": at(seconds),
        "kind": "UNREGISTER_CLIENT",
        "unregistered_consumer_group": "g",
    }


HEARTBEATS = [
    *[beat("steady", s) for s in (0, 30, 60)],
    *[beat("silent for just as long", s) for s in (0, 90)],
    *[beat("silent for longer", s) for s in (0, 91)],
    *[beat("left", 0), left("left", 60), left("left", 60.2)],
    *[beat("left and came back", 0), left("left and came back", 60), beat("left and came back", 66)],
    *[beat("a last word", 0), left("a last word", 60)],
    *[beat("a last word, then back", 0), left("a last word, then back", 60), beat("a last word, then back", 100)],
    *[left("left and was seen no more", 10)],
]
COMMITS = [
    {"client_id": "a last word", "ts": at(63)},
    {"client_id": "a last word, then back", "ts": at(63)},
    {"client_id": "commits alone", "ts": at(5)},
]
SESSIONS = {
    "steady": [(0, 60, False, False)],
    "silent for just as long": [(0, 90, False, False)],
    "silent for longer": [(0, 0, False, False), (91, 91, False, False)],
    "left": [(0, 60.2, True, False)],
    "left and came back": [(0, 60, True, False), (66, 66, False, False)],
    "a last word": [(0, 60, True, True)],
    "a last word, then back": [(0, 60, True, True), (100, 100, False, False)],
    "left and was seen no more": [(10, 10, True, False)],
    "commits alone": [(5, 5, False, True)],
}


@pytest.fixture(scope="module")
def sessions(rows):
    heartbeat = rows("silver.heartbeat", BROKER, HEARTBEATS)
    commits = rows("silver.offset_commit", COMMIT, COMMITS)
    none = [rows(f"silver.{name}", {}, []) for name in ("rebalance", "assignment", "pull")]
    found: dict[str, list[tuple]] = {}
    for r in membership(signs(heartbeat, *none, commits), SILENT_S).orderBy("from_ts").collect():
        start, end = ((ts - at(0).replace(tzinfo=None)).total_seconds() for ts in (r.from_ts, r.to_ts))
        found.setdefault(r.client_id, []).append((start, end, r.left, r.watched))
        assert r.beat == (r.client_id not in ("commits alone", "left and was seen no more"))
    return found


@pytest.mark.parametrize("client", SESSIONS)
def test_sessions(sessions, client):
    assert sessions[client] == SESSIONS[client]


def test_nobody_else_was_there(sessions):
    assert sessions.keys() == SESSIONS.keys()


def test_what_heartbeats_say_of_subscriptions(rows):
    told = rows(
        "silver.heartbeat",
        BROKER,
        [
            beat("c1", 0, "CLUSTERING", ("T", "TagA || TagB", "TAG", 1), ("%RETRY%g", "*", "TAG", 1)),
            beat("c2", 1, "CLUSTERING", ("T", "a > 3", "SQL92", 1)),
            beat("c3", 2, "BROADCASTING") | {"cluster": "d"},
        ],
    )
    said = {r.client_id: (r.told, set(r.topics)) for r in subscriptions(told).collect()}
    assert said["c1"] == ("T TAG TagA || TagB", {"T", "%RETRY%g"})
    assert said["c2"][0] == "T SQL92 a > 3"
    (tags,) = subscribed_tags(told).where("cluster = 'c' AND topic = 'T'").collect()
    assert (set(tags.expressions) >= {"TagA", "TagB"}, tags.has_sql92) == (True, True)


def test_groups_that_share_no_queues_and_those_of_which_nothing_says_it(rows):
    said = [beat("c1", 0, "CLUSTERING"), beat("c2", 0, "BROADCASTING") | {"cluster": "d"}]
    # Of each cluster its one group: what its clients did, and no heartbeat.
    mine = {"client_id": "c1", "consumer_group": "g"}
    pulled = mine | {"topic": "T", "broker_name": "b", "queue_id": 0, "queue_offset": 0, "request_ts": at(1)}
    held = [mine | {"cluster": name, "ts": at(1)} for name in ("rebalances", "holds")]
    asked = {"client_id": "c1", "ts": at(1)}
    found = unshared_groups(
        rows("silver.heartbeat", BROKER, said),
        rows("silver.rebalance", {"topic": "T"}, held[:1]),
        rows("silver.assignment", {}, held),
        rows(
            "silver.pull",
            pulled,
            [
                *[{"cluster": name, "sys_flag": 2} for name in ("c", "d", "pulls", "commits", "rebalances", "asks")],
                {"cluster": "commits with a pull", "sys_flag": 3},
                {"cluster": "does not tell", "sys_flag": None},
            ],
        ),
        rows(
            "silver.offset_commit",
            COMMIT,
            [{"cluster": "commits"} | asked, {"cluster": "asks", "kind": "QUERY"} | asked],
        ),
    )
    assert sorted(r.cluster for r in found.collect()) == ["asks", "d", "does not tell", "holds", "pulls"]
