"""Tables of queues that clients show against what their rebalances leave them."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.decisions import rebalance_step as judged
from mqreplay.decisions.rebalance_step import rebalance_step, stored_rows
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
CLIENT = {"client_id": "c1", "consumer_group": "g"}
NOTHING: list[Row] = []


def share(seconds: float, *queues: int, topic: str = "T", **differs: object) -> Row:
    divided = [{"broker_name": "b", "queue_id": queue} for queue in queues]
    return CLIENT | {"ts": at(seconds), "topic": topic, "mq_divided": divided, "strategy": "AVG"} | differs


def every_20_s(until: int, *queues: int, since: int = 0) -> list[Row]:
    return [share(seconds, *queues) for seconds in range(since, until + 1, 20)]


def shown(
    seconds: float, *queues: int, dropped: tuple[int, ...] = (), pulled: float | None = None, **of: object
) -> Row:
    held = [
        {"topic": "T", "broker_name": "b", "queue_id": queue, "dropped": queue in dropped}
        | {"last_pull_ts": at(seconds if pulled is None else pulled)}
        for queue in queues
    ]
    return CLIENT | {"ts": at(seconds), "queues": held} | of


def steps(tables: list[Row], shares: list[Row]) -> pl.DataFrame:
    return rebalance_step(rows("silver.assignment", {}, tables), rows("silver.rebalance", {}, shares), 20)


def verdict(tables: list[Row], shares: list[Row]) -> tuple[str, str]:
    row = steps(tables, shares).sort("ts").row(-1, named=True)
    return row["judgement"], row["reason"]


def test_a_client_that_holds_its_share_agrees_and_is_not_kept() -> None:
    found = steps([shown(30, 0, 1), shown(45, 0, 1)], every_20_s(40, 0, 1))
    assert found["judgement"].to_list() == ["agree", "agree"]
    assert stored_rows(found).is_empty()


def test_a_step_names_the_queues_that_came_and_went() -> None:
    shares = [*every_20_s(40, 0, 1), *every_20_s(100, 1, 2, since=50)]
    (row,) = stored_rows(steps([shown(45, 0, 1), shown(51, 1, 2), shown(95, 1, 2)], shares)).to_dicts()
    assert (row["judgement"], row["before_ts"], row["rebalance_ts"]) == ("agree", at(45), at(50))
    assert [[queue["queue_id"] for queue in row[name]] for name in ("added", "removed", "lacking")] == [[2], [0], []]


def test_a_queue_that_the_share_lost_is_held_for_one_step_at_most() -> None:
    shares = [*every_20_s(40, 0, 1), *every_20_s(100, 1, since=50)]
    assert verdict([shown(45, 0, 1), shown(70, 0, 1)], shares) == ("agree", judged.SAME_QUEUES)
    assert verdict([shown(45, 0, 1), shown(80, 0, 1)], shares) == ("differ", judged.EXTRA)
    row = steps([shown(45, 0, 1), shown(80, 0, 1)], shares).sort("ts").row(-1, named=True)
    assert [queue["queue_id"] for queue in row["extra"]] == [0]


def test_an_orderly_listener_may_keep_a_dropped_queue() -> None:
    shares = [*every_20_s(40, 0, 1), *every_20_s(100, 1, since=50)]
    tables = [shown(45, 0, 1), shown(80, 0, 1, dropped=(0,))]
    assert verdict(tables, shares) == ("agree", judged.SAME_QUEUES)
    row = steps(tables, shares).sort("ts").row(-1, named=True)
    assert [queue["queue_id"] for queue in row["kept_dropped"]] == [0]
    # A queue of the share is dropped during a reset of its offset.
    assert verdict([shown(45, 0, 1), shown(55, 0, 1, dropped=(1,))], every_20_s(60, 0, 1)) == (
        "undetermined",
        judged.DROPPING,
    )


def test_a_queue_that_is_not_taken_has_a_reason_that_no_evidence_shows() -> None:
    assert verdict([shown(45, 0)], every_20_s(40, 0, 1)) == ("undetermined", judged.LACKING)
    # In its first step a client takes one queue after the other.
    assert verdict([shown(1, 0)], [share(0, 0, 1)]) == ("agree", judged.SAME_QUEUES)


def test_a_queue_without_pulls_is_dropped_by_a_rebalance() -> None:
    shares = every_20_s(400, 0, 1)
    assert verdict([shown(200, 0, 1, pulled=70)], shares) == ("agree", judged.SAME_QUEUES)
    assert verdict([shown(200, 0, 1, pulled=50)], shares) == ("differ", judged.EXPIRED_QUEUE)
    assert verdict([shown(200, 0, 1, pulled=50)], NOTHING) == ("differ", judged.EXPIRED_QUEUE)


def test_an_old_share_does_not_tell_what_a_client_may_hold() -> None:
    assert verdict([shown(200, 0, 1, pulled=75)], every_20_s(100, 0)) == ("undetermined", judged.NO_SHARE)
    assert verdict([shown(200, 0, 1, pulled=50)], every_20_s(100, 0)) == ("differ", judged.EXPIRED_QUEUE)


def test_a_wrong_clock_of_a_polled_client_expires_nothing() -> None:
    behind = shown(400, 0, 1, pulled=50, source="running_info")
    assert verdict([behind], every_20_s(400, 0, 1)) == ("agree", judged.SAME_QUEUES)
    one_late = shown(400, 0, 1, source="running_info")
    one_late["queues"][0]["last_pull_ts"] = at(50)
    assert verdict([one_late], every_20_s(400, 0, 1)) == ("differ", judged.EXPIRED_QUEUE)


def test_queues_of_topics_without_subscription_are_dropped() -> None:
    of = {
        "source": "running_info",
        "consume_type": "CONSUME_PASSIVELY",
        "subscriptions": [{"topic": "U", "sub_string": "*"}],
    }
    assert verdict([shown(30, 0, **of), shown(60, 0, **of)], NOTHING) == ("differ", judged.FOREIGN)
    assert verdict([shown(30, 0, **of)], NOTHING) == ("undetermined", judged.NO_SHARE)
    pulls = of | {"consume_type": "CONSUME_ACTIVELY"}
    assert verdict([shown(30, 0, **pulls), shown(60, 0, **pulls)], NOTHING) == ("undetermined", judged.NO_SHARE)


@pytest.mark.parametrize(
    ("shares", "reason"),
    [
        (NOTHING, judged.NO_SHARE),
        ([share(0, 0, 1, strategy="CONFIG")], judged.NO_SHARE),
        ([share(0, 0, 1)], judged.OLD_SHARE),
    ],
)
def test_shares_that_no_log_has_judge_nothing(shares: list[Row], reason: str) -> None:
    assert verdict([shown(100, 0, 1, 2)], shares) == ("undetermined", reason)


def test_a_share_of_a_clients_log_lasts_until_the_next_one() -> None:
    logged = [share(0, 0, 1, source="client_log")]
    assert verdict([shown(100, 0, 1, source="client_log")], logged) == ("agree", judged.SAME_QUEUES)
    assert verdict([shown(100, 0, 1, 2, source="client_log")], logged) == ("differ", judged.EXTRA)
    # A client that stopped holds nothing.
    assert steps([shown(100, source="client_log")], logged).is_empty()


def test_clients_without_shares_are_one_row_a_topic() -> None:
    found = steps([shown(30, 0), shown(60, 0), shown(90, 0)], NOTHING)
    assert found.select("ts", "judgement").rows() == [(at(30), "undetermined")]
    assert steps([], NOTHING).is_empty()
