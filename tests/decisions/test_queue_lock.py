"""Locks of queues against the answers before: who has the lock when a client asks for it."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import polars as pl
import pytest

from mqreplay.core.message_queue import MessageQueue
from mqreplay.core.rebalance_lock_manager import try_lock_batch, unlock_batch
from mqreplay.decisions import queue_lock as judged
from mqreplay.decisions.queue_lock import GRANTED, REFUSED, UNLOCK, queue_lock, stored_rows
from silver_moments import at
from silver_rows import rows

QUEUE = ("t", "b", 0)
START = at(-1000)
ADDR = {"broker_name": "b", "broker_addr": "10.0.0.1:10911", "broker_id": 0}
Row = dict[str, Any]


def asks(client: str, seconds: float, granted: bool | None = True, *, took: float = 0.01, **differs: Any) -> Row:
    ok = None if granted is None else [QUEUE] if granted else []
    row = ADDR | {"consumer_group": "g", "client_id": client, "kind": "LOCK_BATCH_MQ", "mq_set": [QUEUE]}
    row |= {"ts": at(seconds), "response_ts": at(seconds + took), "lock_ok_mq_set": ok}
    return row | differs


def releases(client: str, seconds: float) -> Row:
    return asks(client, seconds, None) | {"kind": "UNLOCK_BATCH_MQ", "response_ts": None}


def boots(*starts: float, until: float = 1000) -> pl.DataFrame:
    """Polls of the broker: one at each start, and a last one."""
    polls = [{"ts": at(start), "boot_ts": at(start)} for start in starts]
    last = [polls[-1] | {"ts": at(until)}] if polls else []
    return rows("silver.broker_runtime", {"broker_name": "b", "broker_id": 0}, [*polls, *last])


def members(*clients: str) -> pl.DataFrame:
    return pl.DataFrame(
        [{"consumer_group": "g", "client_id": client} for client in clients],
        {"consumer_group": pl.String, "client_id": pl.String},
    )


def verdicts(
    *requests: Row,
    runtime: pl.DataFrame | None = None,
    group: pl.DataFrame | None = None,
    start: dt.datetime = START,
    settings: dict[str, str] | None = None,
) -> list[Row]:
    lock = rows("silver.lock", {}, requests)
    polls = boots(-500) if runtime is None else runtime
    described = [] if settings is None else [{"broker_name": "b", "broker_id": 0, "properties": settings}]
    known = rows("silver.broker", {}, described), members() if group is None else group
    made = queue_lock(lock, polls, *known, [start], start, UNLOCK in lock["kind"])
    return made.sort("ts").rows(named=True)


def last(*requests: Row, **known: Any) -> tuple[str, str, str]:
    row = verdicts(*requests, **known)[-1]
    return row["judgement"], row["expected"], row["reason"]


def test_another_clients_lock_is_refused_until_it_expires() -> None:
    held = asks("a", 0)
    assert last(held, asks("b", 30, False)) == ("agree", REFUSED, "another client has the lock")
    assert last(held, asks("b", 70)) == ("agree", GRANTED, "the lock of another client has expired")
    assert last(held, asks("a", 50), asks("b", 70, False)) == ("agree", REFUSED, "another client has the lock")
    assert last(held, asks("b", 60.2)) == ("undetermined", None, judged.AT_EXPIRY)


def test_a_client_renews_its_own_lock_whatever_its_age() -> None:
    assert last(asks("a", 0), asks("a", 20)) == ("agree", GRANTED, "the client has the lock")
    assert last(asks("a", 0), asks("a", 200)) == ("agree", GRANTED, "the client has the lock")


def test_a_released_lock_is_free() -> None:
    released = (asks("a", 0), releases("a", 20))
    assert last(*released, asks("b", 25)) == ("agree", GRANTED, "no client has the lock")
    # Another client's release changes nothing (RebalanceLockManager#unlockBatch).
    assert last(asks("a", 0), releases("b", 20), asks("b", 25, False))[0] == "agree"


def test_the_holder_is_named() -> None:
    row = verdicts(asks("a", 0), asks("b", 30, False))[-1]
    assert (row["holder"], row["holder_ts"], row["actual"]) == ("a", at(0.01), REFUSED)
    row = verdicts(asks("a", 0), releases("a", 20), asks("b", 25))[-1]
    assert (row["holder"], row["holder_ts"]) == (None, None)


def test_a_lock_against_the_rule_differs() -> None:
    judgement, expected, reason = last(asks("a", 0), releases("a", 1), asks("a", 10), asks("b", 30))
    assert (judgement, expected) == ("differ", REFUSED)
    assert reason == "another client has the lock, but the broker granted it"
    judgement, expected, reason = last(asks("a", 0), asks("a", 30, False))
    assert (judgement, reason) == ("differ", "the client has the lock, but the broker refused it")


@pytest.mark.parametrize(
    ("requests", "known", "reason"),
    [
        ([asks("a", 0), asks("b", 30)], {}, judged.NO_UNLOCKS),
        ([releases("c", -9), asks("a", 0), asks("b", 30)], {"runtime": boots()}, judged.MAY_RESTART),
        ([releases("c", -9), asks("a", 29.9), asks("b", 30)], {}, judged.CONCURRENT_REQUESTS),
        ([asks("a", 0), releases("a", 30), asks("b", 30.2, False)], {}, judged.CONCURRENT_REQUESTS),
        ([asks("a", 0), releases("a", 30), asks("b", 40, None), asks("c", 50, False)], {}, judged.UNANSWERED),
        ([asks("a", 0), releases("a", 9), asks("b", 50, False)], {"group": members("x")}, judged.UNRECORDED),
        ([asks("b", 0, None)], {}, judged.NO_ANSWER),
        ([asks("b", 0)], {"start": at(-30), "runtime": boots()}, judged.AT_START),
        ([asks("b", 0)], {"runtime": boots(), "group": members("x")}, judged.UNRECORDED),
        ([asks("b", 0, False) | {"response_ts": None, "other_client_id": "a"}], {}, judged.BY_LOG),
    ],
)
def test_what_is_not_known_is_undetermined(requests: list[Row], known: dict[str, Any], reason: str) -> None:
    judgement, _, why = last(*requests, **known)
    assert (judgement, why) == ("undetermined", reason)


UNLOCKED = releases("c", -900)  # releases are recorded


@pytest.mark.parametrize(
    ("requests", "reason"),
    [
        # With -Drocketmq.broker.rebalance.lockMaxLiveTime=180000 the lock still lives.
        ([asks("a", 0), asks("b", 90, False)], judged.LIFE),
        # With 30000 it does not.
        ([asks("a", 0), asks("b", 40)], judged.LIFE),
        # Nobody asked for the lock in the recording: the lock of a client that died before may live longer.
        ([asks("b", -800, False)], judged.LIFE),
        # No broker that gives up locks before they can be renewed is of use.
        ([asks("a", 0), asks("b", 15)], "another client has the lock, but the broker granted it"),
        ([asks("a", 0), releases("a", 20), asks("b", 90, False)], "no client has the lock, but the broker refused it"),
    ],
)
def test_the_life_of_a_lock_is_a_property_of_the_broker_that_is_not_recorded(requests: list[Row], reason: str) -> None:
    judgement, _, why = last(UNLOCKED, *requests)
    assert (judgement, why) == ("undetermined" if reason == judged.LIFE else "differ", reason)


def test_a_broker_that_started_again_has_no_locks() -> None:
    restarted = boots(-500, 20)
    assert last(asks("a", 0), asks("b", 30), runtime=restarted) == ("agree", GRANTED, "no client has the lock")
    # A start within the recording also shows that nobody had the lock before.
    assert last(asks("b", 30), start=at(10), runtime=restarted)[0] == "agree"


def test_another_broker_of_the_name_has_its_own_locks() -> None:
    elsewhere = asks("b", 30, broker_addr="10.0.0.2:10911")
    assert last(asks("a", 0), elsewhere) == ("agree", GRANTED, "no client has the lock")


def test_locks_from_before_a_gap_in_the_recording_are_no_evidence() -> None:
    lock = rows("silver.lock", {}, [asks("a", 0), asks("b", 30)])
    made = queue_lock(lock, boots(-500), rows("silver.broker", {}, []), members(), [START, at(20)], START, False).sort(
        "ts"
    )
    assert made["reason"].to_list()[-1] == judged.AT_START


def test_lock_log_names_the_holder() -> None:
    row = verdicts(asks("b", 0, False) | {"response_ts": None, "other_client_id": "a", "broker_addr": None})[0]
    assert (row["holder"], row["expected"], row["actual"]) == ("a", None, REFUSED)


def test_queues_of_a_request_are_judged_one_by_one() -> None:
    both = {"mq_set": [QUEUE, ("t", "b", 1)], "lock_ok_mq_set": [("t", "b", 1)]}
    made = verdicts(asks("a", 0), asks("b", 20) | both)
    assert {(row["queue_id"], row["actual"]) for row in made[1:]} == {(0, REFUSED), (1, GRANTED)}
    assert [row["grants"] for row in made if row["client_id"] == "b" and row["queue_id"] == 0] == [0]


def test_granted_locks_that_agree_are_only_counted() -> None:
    lock = rows("silver.lock", {}, [asks("a", 0), asks("b", 30, False), asks("b", 31, None)])
    made = queue_lock(lock, boots(-500), rows("silver.broker", {}, []), members(), [START], START, False)
    assert len(made) == 3
    assert stored_rows(made).sort("ts")["actual"].to_list() == [REFUSED, None]


def test_without_requests_there_is_nothing() -> None:
    assert verdicts() == []


def test_other_brokers_must_agree_in_strict_mode() -> None:
    requests = (asks("a", 0), releases("a", 20), asks("b", 40, False))
    strict = {"lockInStrictMode": "true", "totalReplicas": "2"}
    assert last(*requests, settings=strict) == ("undetermined", GRANTED, judged.OTHER_BROKERS_COUNT)
    granted = (*requests[:2], asks("b", 40))
    assert last(*granted, settings=strict) == ("agree", GRANTED, "no client has the lock")
    assert last(*requests, settings=strict | {"totalReplicas": "1"})[0] == "differ", "one broker is a quorum"
    assert last(*requests, settings={"totalReplicas": "2"})[0] == "differ"


@pytest.mark.parametrize("seed", range(30))
def test_batches_of_requests_are_decided_as_by_core(seed: int) -> None:
    """Random requests for several queues at once, answered by core's class; then one answer that it does not give."""
    chance, table, requests = random.Random(seed), {}, [releases("x", -400)]
    queues = [MessageQueue("t", "b", queue_id) for queue_id in range(3)]
    for second in range(0, 600, 15):
        client, wanted = chance.choice("abc"), chance.sample(queues, chance.randint(1, 3))
        now = second * 1000 + 10
        if chance.random() < 0.25:
            table = dict(unlock_batch(table, wanted, client))
            requests.append(releases(client, second) | {"mq_set": wanted})
            continue
        locked, table = try_lock_batch(table, wanted, client, now)
        if second == 585:
            locked = frozenset(wanted) - locked
        requests.append(asks(client, second) | {"mq_set": wanted, "lock_ok_mq_set": sorted(locked)})
    found = verdicts(*requests)
    assert {row["judgement"] for row in found if row["ts"] < at(585)} <= {"agree", "undetermined"}
    assert {row["reason"] for row in found if row["judgement"] == "undetermined"} <= {judged.AT_EXPIRY, judged.LIFE}
    assert {row["judgement"] for row in found if row["ts"] == at(585)} <= {"differ", "undetermined"}
