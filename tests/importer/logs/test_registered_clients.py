"""Clients that a broker had registered, from the lines of its log about connections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from mqreplay.decode.logs.broker_facts import Announced, Channel, Joined, Left, Vanished
from mqreplay.importer.logs.broker_records import Broker, Record
from mqreplay.importer.logs.registered_clients import Presence, Registrations

T = 1_800_000_000_000
CONSUMER = {"groupName": "g", "subscriptionDataSet": []}
Fact = Joined | Announced | Left | Vanished


def channel(addr: str, heard_s: int) -> Channel:
    return Channel("c", addr, T + heard_s * 1000)


def joined(addr: str, second: int) -> Joined:
    return Joined("g", channel(addr, second), "CONSUME_PASSIVELY", "CLUSTERING")


def replayed(facts: Iterable[tuple[int, Fact]], end_s: int = 600) -> tuple[list[Record], list[Record], Counter[str]]:
    """The records of the facts, those of the presence, and the lines without use."""
    presence, left_out = Presence(), Counter[str]()
    registered = Registrations(Broker("b", 0, None), presence, left_out)
    records: list[Record] = []
    for second, fact in facts:
        ts = T + second * 1000
        presence.see_line(ts)
        match fact:
            case Joined():
                registered.joined(fact)
            case Announced():
                records += registered.announced(ts, fact)
            case Left():
                records += registered.left(ts, fact)
            case Vanished():
                records += registered.vanished(ts, fact)
    presence.see_line(T + end_s * 1000)
    records += registered.end(T + end_s * 1000)
    return records, list(presence.records()), left_out


def seconds(records: Iterable[Record], kind: str) -> list[int]:
    return [(int(str(one["ts"])) - T) // 1000 for _, one in records if one["kind"] == kind]


def test_a_closed_connection_is_a_record_with_the_last_heartbeat() -> None:
    facts = [(0, joined("h:1", 0)), (0, Announced("h:1", CONSUMER)), (200, Vanished("g", "h:1", channel("h:1", 190)))]
    records, repeated, _ = replayed(facts)
    (closed,) = [one for _, one in records if one["kind"] == "CHANNEL_CLOSE"]
    assert (closed["client_id"], closed["broker_name"], closed["heard_ts"]) == ("c", "b", T + 190_000)
    assert closed["header"] == {"clientID": "c", "consumerGroup": "g"}
    assert seconds(records, "HEART_BEAT") == [0, 190]
    assert seconds(repeated, "HEART_BEAT") == [60, 120, 180]


def test_a_closed_connection_of_a_client_that_joined_before_the_log_begins() -> None:
    records, _, left_out = replayed([(200, Vanished("g", "h:1", channel("h:1", 190)))])
    assert seconds(records, "CHANNEL_CLOSE") == [200]
    assert not left_out


def test_an_expired_connection_has_no_time_of_the_last_heartbeat() -> None:
    facts = [(0, joined("h:1", 0)), (0, Announced("h:1", CONSUMER)), (400, Vanished("g", "h:1", None))]
    records, repeated, left_out = replayed([*facts, (410, Vanished("g", "h:8", None))])
    (closed,) = [one for _, one in records if one["kind"] == "CHANNEL_CLOSE"]
    assert "heard_ts" not in closed
    assert seconds(repeated, "HEART_BEAT") == [60, 120, 180, 240]  # until 130 s before the line
    assert left_out == {"expired connections of clients that joined before the log begins (no client id)": 1}


@pytest.mark.parametrize("leave", [Vanished("g", "h:1", channel("h:1", 100)), Left("g", channel("h:1", 100))])
def test_a_client_with_another_connection_stays_registered(leave: Fact) -> None:
    facts = [(0, joined("h:1", 0)), (0, Announced("h:1", CONSUMER)), (90, joined("h:2", 90))]
    _, repeated, _ = replayed([*facts, (90, Announced("h:2", CONSUMER)), (220, leave)], end_s=400)
    assert max(seconds(repeated, "HEART_BEAT")) == 360


@pytest.mark.parametrize("ends", [True, False])
def test_a_join_without_its_subscriptions_is_a_heartbeat_without_them(ends: bool) -> None:
    closed = [(300, Vanished("g", "h:1", channel("h:1", 290)))] if ends else []
    records, repeated, _ = replayed([(10, joined("h:1", 10)), *closed])
    first = next(one for _, one in records if one["kind"] == "HEART_BEAT")
    consumer = {"groupName": "g", "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING"}
    assert first["body"] == {"clientID": "c", "consumerDataSet": [consumer], "withoutSub": True}
    assert seconds(records, "HEART_BEAT") == ([10, 290] if ends else [10])
    assert seconds(repeated, "HEART_BEAT") == list(range(70, 290 if ends else 600, 60))


def test_a_client_is_not_repeated_while_the_log_says_nothing() -> None:
    """A file may hold lines of several years."""
    years = 10 * 365 * 86_400
    _, repeated, _ = replayed([(0, joined("h:1", 0)), (0, Announced("h:1", CONSUMER))], years)
    shown = seconds(repeated, "HEART_BEAT")
    assert shown[0] == 60
    assert [second for second in shown if 3_660 < second < years - 60] == []
    assert len(shown) < 100
