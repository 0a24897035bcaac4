"""What a broker knew of a group, by the heartbeats that it was sent."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mqreplay.evidence.members import group_states as module
from mqreplay.evidence.members.group_states import GroupStates, group_states
from silver_moments import at
from silver_rows import rows

BASE = {"broker_name": "b", "broker_id": 0}
Row = dict[str, Any]
Seen = set[tuple[tuple[str, int], ...] | None]


def beat(client: str, seconds: float, group: str = "g", took: float = 0.01, **versions: int) -> Row:
    subscriptions = [{"topic": topic, "expression_type": "TAG", "sub_version": v} for topic, v in versions.items()]
    consumer = {"group_name": group, "message_model": "CLUSTERING", "subscriptions": subscriptions}
    named = {"kind": "HEART_BEAT", "client_id": client, "ts": at(seconds), "response_ts": at(seconds + took)}
    return named | {"consumer_data_set": [consumer]}


def gone(client: str, seconds: float, **how: str) -> Row:
    return {"kind": "UNREGISTER_CLIENT", "client_id": client, "ts": at(seconds), "response_ts": at(seconds)} | how


def states(*differs: Row, boots: tuple[float, ...] = ()) -> GroupStates:
    runtime = [BASE | {"ts": at(s), "boot_ts": at(s)} for s in boots]
    return group_states(rows("silver.heartbeat", BASE, differs), rows("silver.broker_runtime", {}, runtime))


def seen(of: GroupStates, seconds: float, until: float | None = None, group: str = "g") -> Seen:
    possible = of.possible(("b", 0, group), at(seconds), at(seconds if until is None else until))
    return {
        None if info is None else tuple(sorted((name, sub.sub_version) for name, sub in info.subscriptions.items()))
        for info in possible
    }


def test_the_highest_version_of_each_topic_counts() -> None:
    known = states(beat("c1", 10, t=5, u=5), beat("c2", 20, t=3, u=7), beat("c1", 30, t=5))
    assert seen(known, 5) == {None}
    assert seen(known, 15) == {(("t", 5), ("u", 5))}
    assert seen(known, 25) == {(("t", 5), ("u", 7))}
    assert seen(known, 35) == {(("t", 5),)}, "a topic that the last heartbeat lacks is dropped"
    assert seen(known, 15, group="other") == {None}


def test_while_a_heartbeat_is_on_its_way_both_are_possible() -> None:
    known = states(beat("c1", 10, t=5), beat("c1", 20, took=2, t=9))
    assert seen(known, 21) == {(("t", 5),), (("t", 9),)}
    assert seen(known, 15, 21) == {(("t", 5),), (("t", 9),)}
    assert seen(known, 23) == {(("t", 9),)}


def test_of_two_heartbeats_at_once_the_older_may_win_until_the_next() -> None:
    known = states(beat("c1", 10, t=5), beat("c1", 20, took=1, t=8), beat("c2", 20.5, took=1, t=9), beat("c1", 50, t=8))
    assert (("t", 8),) in seen(known, 30)
    assert (("t", 9),) in seen(known, 30)
    assert (("t", 9),) in seen(states(beat("c1", 10, t=8), beat("c2", 20, t=9)), 30)
    assert (("t", 8),) not in seen(states(beat("c1", 10, t=8), beat("c2", 20, t=9)), 30)


def test_a_group_goes_with_its_last_client() -> None:
    left = {"unregistered_consumer_group": "g"}
    known = states(beat("c1", 10, t=5), beat("c2", 11, t=5), gone("c1", 20, **left), gone("c2", 30, **left))
    assert seen(known, 25) == {(("t", 5),)}
    assert seen(known, 35) == {None}
    closed = states(beat("c1", 10, t=5), gone("c1", 20, kind="CHANNEL_CLOSE", closed_consumer_group="g"))
    assert seen(closed, 25) == {None}


def test_a_broker_that_starts_knows_nobody() -> None:
    known = states(beat("c1", 10, t=5), beat("c1", 40, t=5), boots=(1, 30, 60))
    assert seen(known, 20) == {(("t", 5),)}
    assert seen(known, 35) == {None}
    assert seen(known, 50) == {(("t", 5),)}
    assert seen(known, 70) == {None}


def test_heartbeats_without_subscriptions_change_nothing() -> None:
    short = beat("c1", 20) | {"consumer_data_set": [{"group_name": "g", "subscriptions": None}]}
    assert seen(states(beat("c1", 10, t=5), short), 30) == {(("t", 5),)}


@pytest.mark.parametrize("seed", range(20))
def test_repeats_that_are_left_out_change_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    clients = ["c1", "c2", "c3"]
    versions = {client: {"t": draw.choice((5, 6, 7))} for client in clients}
    if seed % 4 == 0:
        versions["c3"] = {"t": 5, "u": 1}  # a conflict of subscriptions
    sent: list[Row] = []
    for second in range(0, 400, 10):
        client = draw.choice(clients)
        if draw.random() < 0.1:
            sent.append(gone(client, second, unregistered_consumer_group="g"))
        elif draw.random() < 0.05:
            versions[client] = {topic: version + 3 for topic, version in versions[client].items()}
        else:
            sent.append(beat(client, second + draw.random(), **versions[client]))
            sent += [beat(other, second + 0.5, **versions[other]) for other in clients if draw.random() < 0.1]
    boots = (1, 150)
    short = states(*sent, boots=boots)
    monkeypatch.setattr(module, "_without_repeats", lambda heartbeat, broker_runtime: heartbeat)
    whole = states(*sent, boots=boots)
    assert [seen(short, second) for second in range(400)] == [seen(whole, second) for second in range(400)]
