"""Members that disagree, and members that were lost."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

from evidence_keys import evidence_of, keys_of
from mqreplay.evidence.intervals import INSTANT
from mqreplay.findings.lost_consumers import heard_until, lost_consumers, lost_findings
from mqreplay.findings.members import conflict_findings
from mqreplay.findings.shape import SCHEMA
from silver_moments import at
from silver_rows import rows

LOST_S, ENDED, DISPUTE_S = 45, 300, 45
MEMBERS = {
    "consumer_group": pl.String,
    "client_id": pl.String,
    "session": pl.Int64,
    "from_ts": INSTANT,
    "to_ts": INSTANT,
    "left": pl.Boolean,
    "watched": pl.Boolean,
    "beat": pl.Boolean,
    "dropped": pl.String,
}
CONFLICTS = {"consumer_group": pl.String, "from_ts": INSTANT, "to_ts": INSTANT, "sides": pl.List(pl.String)}
CONFLICTS |= {"topics": pl.List(pl.String), "record_ids": pl.List(pl.String)}


def member(
    group: str,
    client: str,
    start: float,
    end: float,
    *,
    left: bool = False,
    beat: bool = True,
    dropped: str | None = None,
) -> tuple:
    return (group, client, 1, at(start), at(end), left, not beat, beat, dropped)


def held(group: str, client: str, queue: int, start: float, end: float) -> dict[str, object]:
    row = {"consumer_group": group, "client_id": client, "queue_id": queue, "topic": "T", "broker_name": "b"}
    return row | {"from_ts": at(start), "to_ts": at(end), "source": "rebalance"}


SESSIONS = [
    member("g", "killed", 0, 60),
    member("g", "stayed", 0, ENDED),
    member("idle", "without a queue", 0, 60),
    member("planned", "stopped", 0, 70, left=True),
    member("cut", "recorded no longer", 240, ENDED - LOST_S),
    member("cut", "silent for longer", 240, ENDED - LOST_S - 0.001),
    member("pulls alone", "perhaps stopped", 0, 45, beat=False),
    member("released", "gave all up before", 0, 60),
    member("spare", "with a retry topic alone", 0, 60),
]
OWNERS = [
    *[held("g", "killed", q, 0, 60) for q in (0, 1)],
    held("g", "killed", 2, 0, 10),  # released long before
    held("g", "stayed", 2, 10, ENDED),
    held("g", "stayed", 0, 62, ENDED),
    held("g", "stayed", 1, 75, ENDED),
    held("planned", "stopped", 0, 0, 70),
    held("pulls alone", "perhaps stopped", 0, 0, 45),
    held("cut", "recorded no longer", 0, 240, ENDED),
    held("cut", "silent for longer", 0, 240, ENDED - LOST_S - 0.001),
    held("g", "killed", 0, 0, 60) | {"topic": "%RETRY%g"},
    held("spare", "with a retry topic alone", 0, 0, 60) | {"topic": "%RETRY%spare"},
    held("released", "gave all up before", 0, 0, 60 - LOST_S - 0.001),
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
        ({}, None, None),
        ({}, 90, 90),
    ],
)
def test_one_client_alone_does_not_make_the_night_longer(
    clients: dict[str, int], recorded: int | None, until: int | None
) -> None:
    seen = [(who, at(s)) for who, last in clients.items() for s in (0, last)]
    members = pl.DataFrame(seen, {"client_id": pl.String, "to_ts": INSTANT}, orient="row")
    assert heard_until(members, None if recorded is None else at(recorded)) == (None if until is None else at(until))


@pytest.fixture(scope="module")
def lost() -> dict[str, dict]:
    members = pl.DataFrame(SESSIONS, MEMBERS, orient="row")
    until = heard_until(members, None)
    found = lost_findings(lost_consumers(members, rows("gold.queue_owner", {}, OWNERS), until, LOST_S), "c")
    assert dict(found.schema) == SCHEMA
    return {row["client_id"]: row for row in found.to_dicts()}


def test_only_who_fell_silent_without_a_word_is_lost(lost: dict[str, dict]) -> None:
    assert {client: row["severity"] for client, row in lost.items()} == {
        "killed": "warning",
        "silent for longer": "warning",
        "with a retry topic alone": "warning",
        "without a queue": "info",
    }
    assert lost["without a queue"]["evidence"] == [evidence_of("silver.heartbeat", client_id="without a queue")]


def test_lost_from_the_last_sign_until_all_its_queues_had_new_owners(lost: dict[str, dict]) -> None:
    row = lost["killed"]
    assert (row["kind"], row["severity"], row["consumer_group"]) == ("consumer_lost", "warning", "g")
    assert (row["from_ts"], row["to_ts"]) == (at(60), at(75))
    assert row["summary"] == (
        "Consumer killed of group g disappeared without unregistering while it held 2 queues: "
        "killed, crashed or cut off."
    )
    assert row["evidence"] == [
        evidence_of("silver.heartbeat", client_id="killed"),
        evidence_of("gold.queue_owner", consumer_group="g", client_id="killed"),
    ]
    assert "while it held no queue but of its retry topic:" in lost["with a retry topic alone"]["summary"]
    assert "while it held no queue:" in lost["without a queue"]["summary"]
    assert "while it held 1 queue:" in lost["silent for longer"]["summary"]
    assert lost["silent for longer"]["to_ts"] == at(ENDED), "nobody took its queue"


def test_nobody_is_lost_where_nobody_was_recorded() -> None:
    none = lost_consumers(pl.DataFrame(schema=MEMBERS), rows("gold.queue_owner", {}, []), None, LOST_S)
    found = lost_findings(none, "c")
    assert (len(found), dict(found.schema)) == (0, SCHEMA)


DROPPED = [
    member("g", "closed", 0, 60, beat=False, dropped="closed"),
    member("g", "expired", 0, 60, beat=False, dropped="expired"),
    member("g", "left", 0, 60, left=True, beat=False, dropped="closed"),
    member("g", "stayed", 0, 61, beat=False),
]


def test_a_client_that_a_broker_dropped_is_lost_even_if_no_other_row_is_later() -> None:
    unwatched = pl.DataFrame(
        [("g", "closed", at(0), at(60), None), ("g", "expired", at(0), at(60), None)],
        {"consumer_group": pl.String, "client_id": pl.String, "from_ts": INSTANT, "to_ts": INSTANT, "why": pl.String},
        orient="row",
    )
    members = pl.DataFrame(DROPPED, MEMBERS, orient="row")
    owners = rows("gold.queue_owner", {}, [])
    found = lost_findings(lost_consumers(members, owners, at(61), LOST_S, None, unwatched), "c").sort("client_id")
    closed, expired = found.to_dicts()
    assert (closed["client_id"], closed["severity"], closed["from_ts"]) == ("closed", "warning", at(60))
    assert closed["evidence"] == [evidence_of("silver.heartbeat", client_id="closed")]
    assert "(its queues are not known)" in closed["summary"]
    assert "last heartbeat is not known" not in closed["summary"]
    assert (expired["client_id"], expired["severity"]) == ("expired", "warning")
    assert "The time of its last heartbeat is not known" in expired["summary"]


def conflict(group: str, seconds: float, topics: tuple[str, ...] = ("T",), ids: tuple[str, ...] = ("r1",)) -> tuple:
    return (group, at(100), at(100 + seconds), ["AVG", "AVG_BY_CIRCLE"], list(topics), list(ids))


def conflicts_of(*found: tuple) -> pl.DataFrame:
    return pl.DataFrame(list(found), CONFLICTS, orient="row")


def test_conflicts_are_findings_once_they_last() -> None:
    by_strategy = conflicts_of(
        conflict("just bearable", DISPUTE_S),
        conflict("too long", DISPUTE_S + 0.001, ("%RETRY%g", "T", "U"), ("r1", "r2")),
    )
    by_subscription = conflicts_of(conflict("too long", 60, ("",)), conflict("brief", 1, ("",)))
    found = conflict_findings(by_strategy, by_subscription, "c", DISPUTE_S)
    assert dict(found.schema) == SCHEMA
    strategies, subscriptions = found.to_dicts()
    assert (strategies["kind"], strategies["severity"], strategies["consumer_group"]) == (
        "strategy_conflict",
        "warning",
        "too long",
    )
    assert strategies["summary"] == (
        "Members of group too long shared out T, U by different strategies: AVG against AVG_BY_CIRCLE."
    )
    assert strategies["evidence"] == [
        evidence_of("gold.allocation", record_id="r1"),
        evidence_of("gold.allocation", record_id="r2"),
    ]
    assert strategies["to_ts"] - strategies["from_ts"] == dt.timedelta(seconds=DISPUTE_S + 0.001)
    assert (subscriptions["kind"], subscriptions["severity"]) == ("subscription_conflict", "warning")
    assert subscriptions["summary"] == (
        "Members of group too long subscribed to different things: AVG against AVG_BY_CIRCLE."
    )
    assert [row["table_name"] for row in subscriptions["evidence"]] == ["silver.heartbeat"]


def test_a_conflict_keeps_fifty_rows_as_evidence() -> None:
    ids = tuple(f"r{n:02}" for n in range(60))
    (row,) = conflict_findings(conflicts_of(conflict("g", 60, ids=ids)), conflicts_of(), "c", DISPUTE_S).to_dicts()
    assert keys_of(row["evidence"]) == [f"record_id={i}" for i in ids[:50]]


def test_no_conflicts_are_no_findings() -> None:
    found = conflict_findings(conflicts_of(), conflicts_of(), "c", DISPUTE_S)
    assert (len(found), dict(found.schema)) == (0, SCHEMA)


def test_a_lost_consumer_that_comes_back() -> None:
    again = member("g", "c", 160, ENDED)
    sessions = pl.DataFrame([member("g", "c", 0, 60), (*again[:2], 2, *again[3:])], MEMBERS, orient="row")
    lost = lost_consumers(sessions, rows("gold.queue_owner", {}, [held("g", "c", 0, 0, 60)]), at(ENDED), LOST_S)
    assert lost.select("from_ts", "to_ts").rows() == [(at(60), at(160))]


@pytest.mark.parametrize(("returns", "severity"), [(1, "info"), (2, "warning")])
def test_a_brokers_subscription_that_returns_is_a_conflict_of_members(returns: int, severity: str):
    row = {"consumer_group": "g", "from_ts": at(0), "to_ts": at(90), "sides": ["T a", "T b"], "topics": []}
    row |= {"record_ids": ["silver.consumer_connection r1"], "returns": returns}
    other = row | {"consumer_group": "stated"}
    alternations = pl.DataFrame([row, other], CONFLICTS | {"returns": pl.Int64})
    stated = conflicts_of(conflict("stated", 90))
    found = conflict_findings(conflicts_of(), stated, "c", DISPUTE_S, alternations)
    (by_broker,) = found.filter(pl.col("consumer_group") == "g").to_dicts()
    assert (by_broker["kind"], by_broker["severity"]) == ("subscription_conflict", severity)
    assert "T a against T b" in by_broker["summary"]
    assert by_broker["evidence"] == [evidence_of("silver.consumer_connection", record_id="r1")]
    assert len(found) == 2  # what members state themselves is better evidence
