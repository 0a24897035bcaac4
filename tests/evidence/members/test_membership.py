"""Sessions of members: they end only with UNREGISTER_CLIENT or a silence."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.evidence.members.membership import (
    commit_signs_of_shard,
    membership,
    pull_signs_of_shard,
    pulling_groups_of_shard,
    signs,
    subscribed_expressions,
    subscriptions,
    unregistrations,
    unshared_groups,
)
from mqreplay.evidence.offsets.queue_events import groups_with_commits_of_shard
from queue_shards import queue_shards
from silver_moments import at
from silver_rows import rows

SILENT_S = 90
BROKER = {"broker_name": "b", "broker_id": 0, "response_code": 0}
QUEUE = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0}
COMMIT = QUEUE | {"kind": "UPDATE"}
PULL = QUEUE | {"queue_offset": 0}
Row = dict[str, Any]


def beat(client: str, seconds: float, model: str = "CLUSTERING", *topics: tuple, group: str = "g") -> Row:
    subscribed = list(topics) or [("T", "*", "TAG", 1)]
    data = (group, "CONSUME_PASSIVELY", model, "CONSUME_FROM_LAST_OFFSET", False, subscribed)
    return {"client_id": client, "ts": at(seconds), "kind": "HEART_BEAT", "consumer_data_set": [data]}


def left(client: str, seconds: float) -> Row:
    return {
        "client_id": client,
        "ts": at(seconds),
        "kind": "UNREGISTER_CLIENT",
        "unregistered_consumer_group": "g",
    }


def sessions(
    heartbeats: list[Row], pulls: list[Row], commits: list[Row], silent_s: int = SILENT_S, shards: int = 1
) -> pl.DataFrame:
    """membership's frame, in order; pulls and commits come in so many shards."""
    heartbeat = rows("silver.heartbeat", BROKER, heartbeats)
    none = [rows(f"silver.{name}", {}, []) for name in ("rebalance", "assignment")]
    gone = unregistrations(heartbeat)
    pulled = queue_shards(rows("silver.pull", PULL, pulls), shards)
    committed = queue_shards(rows("silver.offset_commit", COMMIT, commits), shards)
    found = [
        signs(heartbeat, *none),
        *[pull_signs_of_shard(shard, gone, silent_s) for shard in pulled],
        *[commit_signs_of_shard(shard, gone, silent_s) for shard in committed],
    ]
    return membership(pl.concat(found), silent_s).sort("consumer_group", "client_id", "session")


HEARTBEATS = [
    *[beat("steady", s) for s in (0, 30, 60)],
    *[beat("silent for just as long", s) for s in (0, 90)],
    *[beat("silent for longer", s) for s in (0, 91)],
    *[beat("left", 0), left("left", 60), left("left", 60.2)],
    *[beat("left and came back", 0), left("left and came back", 60), beat("left and came back", 66)],
    *[beat("a last word", 0), left("a last word", 60)],
    *[beat("a last word, then back", 0), left("a last word, then back", 60), beat("a last word, then back", 100)],
    *[left("left and was seen no more", 10)],
    *[left("pulls again after it left", 10)],
]
COMMITS = [
    {"client_id": "a last word", "ts": at(63)},
    {"client_id": "a last word, then back", "ts": at(63)},
    {"client_id": "commits alone", "ts": at(5)},
]
PULLS = [
    *[{"client_id": "pulls again after it left", "request_ts": at(s), "queue_id": s} for s in (2, 12, 15, 16, 17, 30)],
    *[{"client_id": "pulls two queues in turn", "request_ts": at(s), "queue_id": s} for s in (0, 60, 120, 211)],
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
    "pulls again after it left": [(2, 10, True, True), (16, 30, False, True)],
    "pulls two queues in turn": [(0, 120, False, True), (211, 211, False, True)],
}
WITHOUT_BEATS = {
    "commits alone",
    "left and was seen no more",
    "pulls again after it left",
    "pulls two queues in turn",
}


@pytest.fixture(scope="module", params=[1, 7], ids=["one shard", "seven shards"])
def members(request) -> pl.DataFrame:
    return sessions(HEARTBEATS, PULLS, COMMITS, shards=request.param)


@pytest.mark.parametrize("client", SESSIONS)
def test_sessions(members, client):
    found = members.filter(pl.col("client_id") == client)
    spans = [
        ((since - at(0)).total_seconds(), (until - at(0)).total_seconds(), *flags)
        for since, until, *flags in found.select("from_ts", "to_ts", "left", "watched").iter_rows()
    ]
    assert spans == SESSIONS[client]
    assert found["session"].to_list() == list(range(1, len(spans) + 1))
    assert set(found["beat"]) == {client not in WITHOUT_BEATS}


def test_nobody_else_was_there(members):
    assert set(members["client_id"]) == SESSIONS.keys()


def test_a_night_without_rows_has_no_members():
    empty = sessions([], [], [])
    assert empty.is_empty()
    assert empty.schema == sessions(HEARTBEATS, PULLS, COMMITS).schema


def test_pulls_and_commits_of_a_session_are_few_rows():
    pulled = rows("silver.pull", PULL | {"client_id": "c"}, [{"request_ts": at(s)} for s in range(0, 1000, 10)])
    gone = unregistrations(rows("silver.heartbeat", BROKER, [left("c", 500)]))
    assert len(pull_signs_of_shard(pulled, gone.clear(), SILENT_S)) == 1
    assert len(pull_signs_of_shard(pulled, gone, SILENT_S)) == 2
    committed = rows("silver.offset_commit", COMMIT | {"client_id": "c"}, [{"ts": at(s)} for s in range(0, 1000, 10)])
    assert len(commit_signs_of_shard(committed, gone, SILENT_S)) == 2


def by_the_rule(moments: list[tuple[float, str]], silent_s: int) -> list[tuple[float, float, bool, bool, bool]]:
    """Sessions of one client, moment by moment: from, to, left, watched, beat."""
    found: list[list[tuple[float, str]]] = []
    last_left: float | None = None
    last: float | None = None
    for second, sign in sorted(moments, key=lambda moment: (moment[0], moment[1] == "unregister")):
        silent = last is None or second - last > silent_s
        late = last_left is not None and second - last_left > 5
        back = sign != "unregister" and late and last is not None and last_left is not None and last - last_left <= 5
        if silent or back:
            found.append([])
        found[-1].append((second, sign))
        last, last_left = second, second if sign == "unregister" else last_left
    spans = []
    for session in found:
        kinds = {sign for _, sign in session}
        gone = [second for second, sign in session if sign == "unregister"]
        end = max(gone) if gone else max(second for second, _ in session)
        watched = bool(kinds - {"heartbeat", "unregister"})
        spans.append((min(second for second, _ in session), end, bool(gone), watched, "heartbeat" in kinds))
    return spans


MOMENTS = st.lists(
    st.tuples(
        st.integers(0, 240).map(lambda halves: halves / 2),
        st.sampled_from(["heartbeat", "unregister", "pull", "pull", "pull", "commit"]),
        st.integers(0, 3),
    ),
    max_size=30,
)


@given(MOMENTS, st.sampled_from([0, 4, 5, 6, 20]), st.sampled_from([1, 2, 7]))
def test_signs_reduced_in_shards_give_the_sessions_of_all_moments(moments, silent_s, shards):
    beats = [beat("c", s) for s, sign, _ in moments if sign == "heartbeat"]
    gone = [left("c", s) for s, sign, _ in moments if sign == "unregister"]
    pulls = [{"client_id": "c", "request_ts": at(s), "queue_id": q} for s, sign, q in moments if sign == "pull"]
    commits = [{"client_id": "c", "ts": at(s), "queue_id": q} for s, sign, q in moments if sign == "commit"]
    found = sessions(beats + gone, pulls, commits, silent_s, shards)
    spans = [
        ((since - at(0)).total_seconds(), (until - at(0)).total_seconds(), *flags)
        for since, until, *flags in found.select("from_ts", "to_ts", "left", "watched", "beat").iter_rows()
    ]
    assert spans == by_the_rule(
        [(s // 1 if sign in ("pull", "commit") else s, sign) for s, sign, _ in moments], silent_s
    )
    assert found["session"].to_list() == list(range(1, len(spans) + 1))


def test_rebalances_and_assignments_are_signs_once_a_second():
    mine = {"client_id": "c1", "consumer_group": "g"}
    rebalance = rows("silver.rebalance", mine | {"topic": "T"}, [{"ts": at(s)} for s in (1, 1.5, 2)])
    held = [("T", "b", 0, *[None] * 8)]
    assignment = rows(
        "silver.assignment", mine, [{"ts": at(s), "queues": queues} for s, queues in ((3, held), (4, []), (5, None))]
    )
    found = signs(rows("silver.heartbeat", BROKER, []), rebalance, assignment).sort("from_ts")
    assert found.select("sign", "from_ts", "to_ts").rows() == [
        ("rebalance", at(1), at(1)),
        ("rebalance", at(2), at(2)),
        ("assignment", at(3), at(3)),
    ]


def test_subscriptions_of_heartbeats():
    beats = rows(
        "silver.heartbeat",
        BROKER,
        [
            beat("c1", 0, "CLUSTERING", ("T", "TagA || TagB", "TAG", 1), ("%RETRY%g", "*", "TAG", 1)),
            beat("c2", 1, "CLUSTERING", ("U", "*", "TAG", 1), ("T", "a > 3", "SQL92", 1)),
            beat("c3", 2, "CLUSTERING", ("V", None, "TAG", 1)),
            beat("c4", 3) | {"consumer_data_set": []},
            beat("c5", 4) | {"consumer_data_set": None},
            left("c6", 5),
            beat("c7", 6) | {"consumer_data_set": [("g", "CONSUME_PASSIVELY", "CLUSTERING", None, False, None)]},
        ],
    )
    found = {
        client: (text, topics)
        for client, text, topics in subscriptions(beats)["client_id", "subscribed", "topics"].rows()
    }
    assert found == {
        "c1": ("T TAG TagA || TagB", ["T", "%RETRY%g"]),
        "c2": ("T SQL92 a > 3; U TAG *", ["U", "T"]),
        "c3": ("V TAG", ["V"]),
        "c7": (None, None),
    }
    assert set(subscribed_expressions(beats).drop("consumer_group").rows()) == {
        ("T", "TagA || TagB", "TAG"),
        ("T", "a > 3", "SQL92"),
        ("%RETRY%g", "*", "TAG"),
        ("U", "*", "TAG"),
        ("V", None, "TAG"),
    }


def test_groups_that_share_no_queues_and_those_without_evidence():
    # Of each group but the first two what its client did, and no heartbeat.
    heartbeat = rows("silver.heartbeat", BROKER, [beat("c1", 0, group="c"), beat("c2", 0, "BROADCASTING", group="d")])
    mine = {"client_id": "c1"}
    held = [mine | {"consumer_group": name, "ts": at(1)} for name in ("rebalances", "holds")]
    pulled = rows(
        "silver.pull",
        PULL | mine | {"request_ts": at(1)},
        [
            *[
                {"consumer_group": name, "sys_flag": 2, "queue_id": queue}
                for name in ("c", "d", "pulls", "commits", "rebalances", "asks", "commits with a pull")
                for queue in range(3)
            ],
            {"consumer_group": "commits with a pull", "sys_flag": 3},
            {"consumer_group": "does not tell", "sys_flag": None},
        ],
    )
    committed = rows(
        "silver.offset_commit",
        COMMIT | mine | {"ts": at(1)},
        [{"consumer_group": "commits"}, {"consumer_group": "asks", "kind": "QUERY"}],
    )
    for shards in (1, 7):
        found = unshared_groups(
            heartbeat,
            rows("silver.rebalance", {"topic": "T"}, held[:1]),
            rows("silver.assignment", {}, held),
            pl.concat([pulling_groups_of_shard(shard) for shard in queue_shards(pulled, shards)]),
            set().union(*map(groups_with_commits_of_shard, queue_shards(committed, shards))),
        )
        assert sorted(found["consumer_group"]) == ["asks", "d", "does not tell", "holds", "pulls"]
