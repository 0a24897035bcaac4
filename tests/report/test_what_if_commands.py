"""The commands of `mqreplay whatif` beside findings, and the parts of places."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from made_warehouse import CLUSTER, made_warehouse
from mqreplay.decisions.removed_findings import SHOWN_KINDS
from mqreplay.moment.instant import Recorded
from mqreplay.moment.night_states import GroupStates, NightStates
from mqreplay.report.cursor_states import parts_of
from mqreplay.report.data import Place
from mqreplay.report.what_if_commands import ADVISED, finding_commands, what_if_commands
from report_data import BEGAN, ENDED, finding

AT = BEGAN + dt.timedelta(minutes=10)


@pytest.fixture
def states(tmp_path: Path) -> NightStates:
    night = Recorded(made_warehouse(tmp_path, {}), CLUSTER, BEGAN, ENDED)
    group = GroupStates("pay group", members=[0, 2, 60_000, 5], queues={("pay-topic", "a"): 2, ("pay-topic", "b"): 2})
    settings = {("a", 0): {"accessMessageInMemoryMaxRatio": "55"}}
    return NightStates(night, 20_000, {group.name: group}, {("a", 0): [0, 1, 9_000, 0], ("a", 1): [0, 1]}, settings)


@pytest.mark.parametrize(
    ("kind", "place", "command"),
    [
        ("idle_consumer", {"consumer_group": "pay group"}, "--queues 3 --topic pay-topic"),
        ("idle_consumer", {"consumer_group": "pay group", "from_ts": BEGAN, "to_ts": BEGAN}, None),
        ("uneven_allocation", {"consumer_group": "pay group"}, "--set strategy=AVG_BY_CIRCLE --group 'pay group'"),
        ("slave_pull", {"broker_name": "a"}, "--set ratio=75 --broker a"),
        ("slave_pull", {"broker_name": "b"}, "--set ratio=60 --broker b"),
        ("broker_down", {"broker_name": "a", "broker_id": 0}, "--lose-master a --at 02:09:30"),
        ("broker_down", {"broker_name": "a", "broker_id": 1}, ""),
        ("offset_reset", {"consumer_group": "pay group"}, "--reset-to 02:10:00 --group 'pay group'"),
        ("torn_snapshot", {"broker_name": "a"}, ""),
        ("offset_reset", {"consumer_group": "g", "from_ts": BEGAN - dt.timedelta(days=1)}, ""),
    ],
)
def test_a_supposition_answers_the_finding(
    states: NightStates, kind: str, place: dict[str, object], command: str | None
) -> None:
    row = finding(**{"kind": kind, "consumer_group": None, "topic": None, "from_ts": AT, "to_ts": AT} | place)
    found = what_if_commands(row, states)
    if command is None:  # queues are enough: only fewer consumers would leave none idle
        command = "--consumers -1 --group 'pay group'"
    assert found == ([f"mqreplay whatif {command}"] if command else [])


def test_advise_is_named_for_the_kinds_that_it_decides() -> None:
    assert set(ADVISED) == set(SHOWN_KINDS)


def test_commands_show_the_state_then_and_advise_a_group_with_rebalances(states: NightStates) -> None:
    row = finding(kind="idle_consumer", consumer_group="pay group", topic=None, from_ts=AT, to_ts=AT)
    of_group = " --group 'pay group'"
    assert finding_commands(row, states) == [
        f"mqreplay at 02:10:01{of_group}",
        "mqreplay whatif --queues 3 --topic pay-topic",
    ]
    states.groups["pay group"].strategies = ["AVG"]
    assert finding_commands(row, states)[-1] == "mqreplay advise 'pay group'"
    of_broker = finding(kind="torn_snapshot", consumer_group="gone", broker_name="a", from_ts=ENDED)
    assert finding_commands(of_broker, states) == ["mqreplay at 03:00:00 --broker a"]
    assert finding_commands(row | {"from_ts": BEGAN - dt.timedelta(days=1)}, states) == []


def test_places_have_parts_with_their_findings(states: NightStates) -> None:
    found = [finding(consumer_group="pay group", topic="pay-topic", broker_name="a")]
    parts = {part.place: part for part in parts_of(states, found, [Place("topic", "drawn-topic")])}
    assert {place.name for place in parts} == {"pay group", "a", "pay-topic", "drawn-topic"}
    broker = parts[Place("broker", "a")]
    assert broker.words == ["master and slave 1", "1 outage", "1 finding"]
    assert broker.tables[0].rows == [["accessMessageInMemoryMaxRatio", "55", "–"]]
    assert parts[Place("topic", "pay-topic")].words == ["4 queues", "1 group", "1 finding"]
    assert parts[Place("group", "pay group")].at == "--group 'pay group'"
