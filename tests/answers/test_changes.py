"""What changed between two instants, and why."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from made_warehouse import made_warehouse
from mqreplay.answers.changes import NOT_SEEN, changes_between
from mqreplay.moment.instant import Recorded

DAY = dt.date(2026, 11, 21)
QUEUE = {"topic": "T", "broker_name": "b", "day": DAY, "consumer_group": "g", "source": "rebalance"}


def at(minute: int, second: int = 0) -> dt.datetime:
    return dt.datetime(2026, 11, 21, 2, minute, second, tzinfo=dt.UTC)


def session(client: str, since: dt.datetime, until: dt.datetime, ended: str = "silent") -> dict:
    both = {"from_ts": since, "to_ts": until, "ended": ended, "shares_queues": True}
    return {"day": DAY, "consumer_group": "g", "client_id": client, **both}


def held(client: str, queue: int, since: dt.datetime, until: dt.datetime) -> dict:
    return QUEUE | {"client_id": client, "queue_id": queue, "from_ts": since, "to_ts": until}


def described(ts: dt.datetime, ratio: str) -> dict:
    properties = {
        "slaveReadEnable": "true",
        "accessMessageInMemoryMaxRatio": ratio,
        "storePathRootDir": f"/data/{ratio}",
    }
    return {"broker_name": "b", "broker_id": 0, "ts": ts, "recording": f"r{ratio}", "properties": properties}


@pytest.fixture
def night(tmp_path: Path) -> Recorded:
    tables = {
        "gold.member": [
            session("a", at(0), at(59)),
            session("z", at(10), at(30), "unregistered"),
        ],
        "gold.queue_owner": [
            held("a", 0, at(0), at(59)),
            held("a", 1, at(0), at(10, 5)),
            held("z", 1, at(10, 5), at(30)),
            held("a", 1, at(35), at(59)),
        ],
        "silver.broker": [described(at(0), "40"), described(at(20), "60")],
        "gold.offset_continuity": [],
        "gold.finding": [
            {"finding_id": "f" * 16, "kind": "orphan_queue", "severity": "info", "from_ts": at(31), "to_ts": at(35)}
            | {"summary": "Nobody held b/1.", "day": DAY, "consumer_group": "g", "broker_name": None, "topic": "T"}
        ],
    }
    return Recorded(made_warehouse(tmp_path, tables), "c", at(0), at(59))


def changes(night: Recorded, since: dt.datetime, until: dt.datetime, **of: str) -> list[tuple]:
    rows = changes_between(night, since, until, **of).to_dicts()
    return [(row["ts"], row["change"], row["what"], row["cause"]) for row in rows]


def test_a_queue_moves_because_a_member_joined(night):
    assert changes(night, at(9), at(11)) == [
        (at(10), "member", "joined the group", None),
        (at(10, 5), "owner", "released queue 1 of T on b", "z joined the group"),
        (at(10, 5), "owner", "took queue 1 of T on b", "z joined the group"),
    ]


def test_a_member_leaves_and_a_queue_stays_without_owner_for_a_while(night):
    assert changes(night, at(29), at(36)) == [
        (at(30), "member", "left the group", "it unregistered"),
        (at(30), "owner", "released queue 1 of T on b", "z left the group"),
        (at(31), "finding", "begins: info orphan_queue (ffffffff)", "Nobody held b/1."),
        (at(35), "finding", "ends: info orphan_queue (ffffffff)", None),
        (at(35), "owner", "took queue 1 of T on b", NOT_SEEN),  # five minutes later
    ]


def step(name: str, ts: dt.datetime, client: str | None = None, **more: object) -> dict:
    outage = {"day": DAY, "outage_ts": at(40), "broker_name": "b", "broker_id": 0, "step": name, "ts": ts}
    unknown = dict.fromkeys(("expected_to", "namesrv_addr", "consumer_group", "amount", "judgement"))
    return outage | unknown | {"client_id": client, "happened": True, "reason": "why", "step_id": f"{name}{ts}"} | more


def test_the_steps_of_an_outage_are_changes(tmp_path):
    steps = [
        step("stopped_answering", at(40)),
        step("removed_by_name_server", at(40, 1), namesrv_addr="n:9876"),
        *(step("first_slave_read", at(40, 30 + n), f"c{n}", amount=4, judgement="agree") for n in range(3)),
        step("answers_again", at(42)),
    ]
    tables = {"gold.failover_step": steps, "gold.member": [session("a", at(0), at(59))]}
    night = Recorded(made_warehouse(tmp_path, tables), "c", at(0), at(59))
    assert changes(night, at(39), at(41)) == [
        (at(40), "broker", "b/0: the broker stopped answering", "why"),
        (at(40, 1), "broker", "b/0: a name server removed it (n:9876)", "why"),
        (at(40, 30), "broker", "b/0: 3 clients read from the slave, 12 pulls, until 02:40:32", "agree: why"),
    ]
    assert changes(night, at(39), at(41), broker="other") == []


def test_settings_that_decide_are_compared_with_the_description_before(night):
    assert changes(night, at(19), at(21)) == [
        (at(20), "setting", "accessMessageInMemoryMaxRatio of broker 0 is 60 (was 40)", None)
    ]


def test_changes_of_one_group_and_of_what_concerns_all(night):
    assert changes(night, at(0), at(58), group="h") == changes(night, at(19), at(21))
    assert changes(night, at(0), at(58), broker="other") == [
        each for each in changes(night, at(0), at(58)) if each[1] in ("member", "finding")
    ]


def test_the_end_of_the_recording_is_no_end_of_a_session(night):
    assert changes(night, at(58), at(59)) == []
