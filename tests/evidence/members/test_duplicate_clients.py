"""Client ids that a group has more than once, by lists, connections and rebalances."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.evidence.members.duplicate_clients import duplicate_clients
from mqreplay.evidence.recorder_holes import HOLES
from silver_moments import BEGAN, at
from silver_rows import rows

Row = dict[str, Any]
END = 400
BROKER = {"consumer_group": "g", "broker_name": "b", "broker_id": 0, "response_code": 0}


def listed(seconds: float, *clients: str) -> Row:
    return BROKER | {"ts": at(seconds), "previous_ts": at(seconds - 5), "cid_all": list(clients)}


def connected(seconds: float, *connections: tuple[str, str]) -> Row:
    known = [(client, address, "JAVA", 513) for client, address in connections]
    return BROKER | {"ts": at(seconds), "previous_ts": at(seconds - 60), "connections": known}


def started(client: str, seconds: float, start: str) -> Row:
    row = {"consumer_group": "g", "client_id": client, "source": "running_info", "queues": [], "ts": at(seconds)}
    return row | {"previous_ts": at(seconds - 20), "properties": {"PROP_CONSUMER_START_TIMESTAMP": start}}


def found(**silver: list[Row]) -> list[tuple[object, ...]]:
    """The duplicates: client, from and to in seconds, processes, certain, addresses, tables."""
    names = ("broker", "broker_runtime", "consumer_connection", "rebalance", "assignment")
    small = {name: rows(f"silver.{name}", {}, silver.get(name, [])) for name in names}
    lists = rows("silver.consumer_list", {}, silver.get("consumer_list", []))
    spans = duplicate_clients(small, lists, pl.DataFrame(schema=HOLES), at(END)).sort("from_ts")
    seconds = [(pl.col(name) - BEGAN).dt.total_seconds().alias(name) for name in ("from_ts", "to_ts")]
    return spans.select("client_id", *seconds, "processes", "certain", "addresses", "tables").rows()


LISTS, CONNECTIONS = "silver.consumer_list", "silver.consumer_connection"


def test_a_list_that_names_a_client_twice():
    lists = [listed(0, "c", "d"), listed(60, "c", "c", "d"), listed(120, "c", "d", "c"), listed(130, "c", "d")]
    assert found(consumer_list=lists) == [("c", 60, 125, 2, False, [], [LISTS])]


def test_a_client_at_two_addresses_of_one_broker():
    polls = [connected(0, ("c", "h:1")), connected(60, ("c", "h:1"), ("c", "h:2"), ("d", "h:3"))]
    polls += [connected(120, ("c", "h:2"), ("c", "h:1"))]
    other = [row | {"broker_name": "b2"} for row in (connected(0, ("d", "h:7")), connected(60, ("d", "h:7")))]
    assert found(consumer_connection=polls + other) == [("c", 60, 120, 2, False, ["h:1", "h:2"], [CONNECTIONS])]


def test_a_list_that_members_saw():
    saw = {"consumer_group": "g", "client_id": "c", "topic": "T", "mq_all": [], "cid_all": ["c", "c", "c"]}
    seen = [saw | {"ts": at(s)} for s in range(0, 80, 20)]
    assert found(rebalance=seen) == [("c", 0, 80, 3, False, [], ["silver.rebalance"])]


@pytest.mark.parametrize(("until", "certain"), [(180, False), (240, True)])
def test_a_connection_that_died_is_listed_for_two_minutes(until, certain):
    lists = [listed(s, "c", "c") for s in range(60, until, 60)] + [listed(until, "c")]
    (row,) = found(consumer_list=lists)
    assert row[1:5] == (60, until - 5, 2, certain)


@pytest.mark.parametrize(("expired", "certain"), [("300000", False), ("120000", True), ("soon", True)])
def test_a_broker_of_5_1_may_keep_dead_connections_for_longer(expired, certain):
    """ConsumerManager#scanNotActiveChannel: BrokerConfig#channelExpiredTimeout."""
    lists = [listed(s, "c", "c") for s in range(60, 240, 60)] + [listed(240, "c")]
    broker = {"broker_name": "b", "broker_id": 0, "ts": at(0), "properties": {"channelExpiredTimeout": expired}}
    (row,) = found(consumer_list=lists, broker=[broker])
    assert row[4] == certain


@pytest.mark.parametrize(("start", "certain"), [("1000", False), ("2000", True)])
def test_two_start_times_are_two_processes(start, certain):
    lists = [listed(60, "c", "c"), listed(120, "c", "c"), listed(130, "c")]
    # An earlier process that is over is none of the two.
    answers = [started("c", -400, "10"), started("c", -300, "1000"), started("c", 20, "1000")]
    answers += [started("c", 80, start), started("c", 300, "3000")]
    (row,) = found(consumer_list=lists, assignment=answers)
    assert row[4] == certain


TWICE = [connected(s, ("c", "h:1"), ("c", "h:2")) for s in (90, 150)]
STEADY = [started("c", s, "1000") for s in range(20, 180, 20)]
BROKEN = {
    "a poll without an answer": [
        row | ({"queues": None, "error": "timeout"} if row["ts"] == at(80) else {}) for row in STEADY
    ],
    "no answers for a while": [*STEADY[:3], STEADY[5] | {"previous_ts": at(60)}, *STEADY[6:]],
    "first answer after the second connection": [row for row in STEADY if row["ts"] > at(70)],
    "no answers at the end": [row for row in STEADY if row["ts"] < at(100)],
    "never asked": [],
}
FEW = [*(listed(s, "c", "c") for s in (60, 120)), listed(175, "c")]


def test_a_process_that_answers_throughout_did_not_connect_again():
    (row,) = found(consumer_list=FEW, assignment=STEADY, consumer_connection=TWICE)
    assert row[4]


@pytest.mark.parametrize("broken", BROKEN)
def test_a_process_may_have_connected_again_without_answers(broken):
    (row,) = found(consumer_list=FEW, assignment=BROKEN[broken], consumer_connection=TWICE)
    assert not row[4]


def test_a_broker_that_lost_a_client_may_list_it_twice_while_it_answers_through_another():
    other = connected(160, ("c", "h:3")) | {"broker_name": "b2"}
    (row,) = found(consumer_list=FEW, assignment=STEADY, consumer_connection=[*TWICE, other])
    assert not row[4]
    (row,) = found(consumer_list=FEW, assignment=STEADY)  # addresses were not recorded
    assert not row[4]


def test_different_ids_and_nights_without_rows_have_none():
    polls = [connected(0, ("c#1", "h:1"), ("c#2", "h:2")), connected(60, ("c#2", "h:2"))]
    assert found(consumer_connection=polls, consumer_list=[listed(0, "c#1", "c#2")]) == []
    assert found() == []


def certain_after_outage(*lists: Row, until: int = 230) -> list[object]:
    """Whether "c" is certain: broker b does not answer from 20 to 55 s, and then lists "c" three times."""
    down = [BROKER | {"ts": at(s), "previous_ts": at(s - 5), "error": "timed out"} for s in (20, 55)]
    own = [listed(0, "c", "d"), listed(60, "c", "c", "c", "d"), listed(until, "c", "d")]
    return [row[4] for row in found(consumer_list=[*own, *lists], broker_runtime=down)]


def test_connections_that_a_paused_broker_did_not_close_yet():
    assert certain_after_outage() == [False]


def test_an_id_that_is_repeated_after_an_outage_and_stays():
    assert certain_after_outage(until=390) == [True]


def test_an_id_that_another_broker_repeats_too():
    other = [listed(62, "c", "c", "d"), listed(230, "c", "d")]
    assert certain_after_outage(*(row | {"broker_name": "b2"} for row in other)) == [True]


def output(seconds: float, *connections: tuple[str, str]) -> Row:
    """One output of mqadmin: no broker, and nothing says until when it was valid."""
    return connected(seconds, *connections) | {"broker_name": None, "broker_id": None, "previous_ts": None}


def unconfirmed(*polls: Row) -> list[tuple[object, ...]]:
    small = {name: rows(f"silver.{name}", {}, []) for name in ("broker", "broker_runtime", "rebalance", "assignment")}
    small["consumer_connection"] = rows("silver.consumer_connection", {}, list(polls))
    lists = rows("silver.consumer_list", {}, [])
    spans = duplicate_clients(small, lists, pl.DataFrame(schema=HOLES), at(END)).sort("from_ts")
    return spans.select("certain", "unconfirmed").rows()


TWO_HOSTS = [("c", "10.0.0.1:5"), ("c", "10.0.0.2:5")]


def test_the_same_two_connections_in_outputs_minutes_apart_lasted():
    polls = [output(0, *TWO_HOSTS), output(170, *TWO_HOSTS)]
    addresses = [address for _, address in TWO_HOSTS]
    assert found(consumer_connection=polls) == [("c", 0, 170, 2, True, addresses, [CONNECTIONS])]


def test_other_ports_minutes_later_are_other_connections():
    later = [(client, address + "1") for client, address in TWO_HOSTS]
    assert [row[4] for row in found(consumer_connection=[output(0, *TWO_HOSTS), output(170, *later)])] == [False, False]


@pytest.mark.parametrize(
    ("polls", "expected"),
    [
        ([output(0, *TWO_HOSTS)], True),
        ([output(0, ("c", "10.0.0.1:5"), ("c", "10.0.0.1:6"))], False),  # it may have connected again
        ([output(0, *TWO_HOSTS), output(60, TWO_HOSTS[1])], False),  # the old connection was closed
        ([output(0, *TWO_HOSTS), output(900, TWO_HOSTS[1])], True),  # nobody asked while it would have been listed
    ],
)
def test_one_output_with_an_id_at_two_hosts_waits_for_a_second_one(polls: list[Row], expected: bool):
    assert unconfirmed(*polls) == [(False, expected)]


def logged(process: str, *seconds: float) -> list[Row]:
    row = {"consumer_group": "g", "client_id": "c", "source": "client_log", "process": process}
    return [row | {"ts": at(s), "queues": [{"topic": "T", "broker_name": "b", "queue_id": 0}]} for s in seconds]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (range(0, 300, 60), range(31, 200, 60), [("c", 31, 151, 2, True, [], ["silver.assignment"])]),
        (range(0, 300, 60), range(60, 200, 60), []),  # copies of one log
        (range(0, 120, 60), range(131, 300, 60), []),  # a process after the other
        ([0, 3600], [1500, 1800], []),  # a log that does not go on
    ],
)
def test_two_logs_of_one_id_that_overlap_are_two_processes(first: Any, second: Any, expected: list[tuple[object, ...]]):
    assert found(assignment=logged("p1", *first) + logged("p2", *second)) == expected
