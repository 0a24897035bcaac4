"""Rebalances of client logs with the lists of polls: one row for both, none judged by a list that is not certain.

The rows are those of group keepers in a night with 4.9.7: a second member joins, holds its share, and leaves.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl

from mqreplay.decisions.allocation import VERDICT, allocation
from mqreplay.evidence.members.agreed_lists import member_lists, queue_lists
from mqreplay.evidence.members.observed_rebalances import observed_rebalances, polled_members, with_logged
from silver_rows import rows

Row = dict[str, Any]
FIRST, SECOND = "10.48.2.1@16603#62547294715849", "10.48.2.2@16702#62547378525256"
SKEW_S = 60
JOINED, POLLED, LEFT = 1795674713134, 1795674715979, 1795675289576
QUEUES = 4


def at(ms: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC)


def logged(ms: int, client: str, members: int, *queues: int, **differs: Any) -> Row:
    row = {"ts": at(ms), "client_id": client, "consumer_group": "keepers", "topic": "ledger", "strategy": "AVG"}
    row |= {"mq_divided": [("pier-b", queue) for queue in queues], "mq_all_size": QUEUES, "cid_all_size": members}
    return row | {"source": "client_log", "record_id": f"log-{ms}-{client}"} | differs


LOG = [
    logged(1795674713047, FIRST, 1, 0, 1, 2, 3),
    logged(JOINED, FIRST, 2, 0, 1),
    logged(1795674713151, SECOND, 2, 2, 3),
    logged(LEFT, SECOND, 1, 0, 1, 2, 3),
]


def each_minute(row: Row, until: int = LEFT, since: int = POLLED) -> list[Row]:
    times = range(since, until, 60_000)
    return [row | {"ts": at(ms), "previous_ts": at(ms - 5_000)} for ms in times]


def answers(client: str, *queues: int, until: int = LEFT, since: int = POLLED) -> list[Row]:
    held = [("ledger", "pier-b", queue, False, True, *[None] * 6) for queue in queues]
    row: Row = {"client_id": client, "consumer_group": "keepers", "queues": held, "source": "running_info"}
    row |= {"strategy": "AVG", "message_model": "CLUSTERING", "subscriptions": [("ledger", "*", "TAG", 1)]}
    return each_minute(row | {"properties": {"PROP_CONSUMEORDERLY": "false"}}, until, since)


def members(*clients: str, until: int = LEFT, since: int = POLLED) -> list[Row]:
    row = {"consumer_group": "keepers", "broker_name": "pier-b", "broker_id": 0, "response_code": 0}
    return each_minute(row | {"cid_all": list(clients)}, until, since)


ROUTE = {"queue_datas": [("pier-b", QUEUES, QUEUES, 6, 0)], "namesrv_addr": "127.0.0.1:18300", "topic": "ledger"}
ROUTES = each_minute(ROUTE, LEFT + 120_000)
LISTS = members(FIRST, SECOND)
ANSWERS = answers(FIRST, 0, 1) + answers(SECOND, 2, 3)


def judged(log: list[Row], polls: list[Row], of_group: list[Row], routes: list[Row] = ROUTES) -> list[Row]:
    """Return all rebalances, in order, as replay/group_pass.py combines them."""
    assignment, rebalance = rows("silver.assignment", {}, polls), rows("silver.rebalance", {}, log)
    listed = member_lists(rows("silver.consumer_list", {}, of_group))
    of_topic = queue_lists(rows("silver.route", {}, routes), rows("silver.topic_config", {}, []))
    clients = polled_members(assignment, rebalance)
    observed = observed_rebalances(assignment, listed, of_topic, clients, 20, rebalance)
    by_polls, completed = with_logged(observed, rebalance, listed, of_topic, SKEW_S)
    rest = allocation(rebalance.filter(~pl.col("record_id").is_in(completed)))
    found = pl.concat([rest, allocation(by_polls)]).sort("rebalance_ts", "client_id")
    assert set(VERDICT) <= set(found.columns)
    return found.to_dicts()


def verdicts(found: list[Row]) -> list[tuple[str, str]]:
    return [(row["client_id"], row["judgement"]) for row in found]


def test_polls_give_a_logged_rebalance_its_lists_and_are_no_second_row() -> None:
    found = judged(LOG, ANSWERS, LISTS)
    assert verdicts(found) == [(FIRST, "undetermined"), (FIRST, "agree"), (SECOND, "agree"), (SECOND, "agree")]
    shared, alone = found[1], found[3]
    assert (shared["rebalance_ts"], shared["record_id"]) == (LOG[1]["ts"], LOG[1]["record_id"])
    assert (sorted(shared["cid_all"]), len(shared["mq_all"])) == ([FIRST, SECOND], QUEUES)
    assert alone["cid_all"] == [SECOND]


def test_a_hole_in_the_lists_does_not_double_a_logged_rebalance() -> None:
    resumed = POLLED + 400_000
    later = [row | {"previous_ts": None} for row in members(FIRST, SECOND, since=resumed)]
    holed = members(FIRST, SECOND, until=POLLED + 200_000) + later
    polled_alone = judged([], ANSWERS, holed)
    assert verdicts(polled_alone).count((FIRST, "agree")) == 2
    assert verdicts(judged(LOG, ANSWERS, holed)).count((FIRST, "agree")) == 1


def test_a_client_that_holds_other_queues_than_its_strategy_gives_differs_once() -> None:
    log = [logged(JOINED, FIRST, 2, 0, 3)]
    assert verdicts(judged(log, answers(FIRST, 0, 3), LISTS)) == [(FIRST, "differ")]


def test_other_lists_that_left_the_client_its_queues_are_a_rebalance_of_their_own() -> None:
    third = "10.48.2.3@16800#1"
    joined = POLLED + 300_000
    of_group = members(FIRST, SECOND, until=joined) + members(FIRST, SECOND, third, since=joined)
    found = judged([logged(JOINED, FIRST, 2, 0, 1)], answers(FIRST, 0, 1), of_group)
    assert [(row["judgement"], len(row["cid_all"])) for row in found] == [("agree", 2), ("agree", 3)]


def test_sizes_or_queues_other_than_the_log_has_do_not_judge_the_logged_rebalance() -> None:
    for log in ([logged(JOINED, FIRST, 3, 0, 1)], [logged(JOINED, FIRST, 2, 0)]):
        found = judged(log, answers(FIRST, 0, 1), LISTS)
        assert verdicts(found) == [(FIRST, "undetermined"), (FIRST, "agree")]


def test_lists_that_hold_around_the_rebalance_judge_it_without_answers_of_the_client() -> None:
    log = [logged(POLLED + 200_000, FIRST, 2, 0, 1)]
    assert verdicts(judged(log, [], LISTS)) == [(FIRST, "agree")]
    assert verdicts(judged([log[0] | {"mq_divided": [("pier-b", 3)]}], [], LISTS)) == [(FIRST, "differ")]


def test_a_list_that_changed_around_the_rebalance_does_not_judge_it() -> None:
    swapped = POLLED + 240_000
    of_group = members(FIRST, SECOND, until=swapped) + members("10.0.0.1@1", FIRST, since=swapped)
    for ms in (swapped - 30_000, swapped + 30_000):
        assert verdicts(judged([logged(ms, FIRST, 2, 2, 3)], [], of_group)) == [(FIRST, "undetermined")]


def test_a_route_that_is_younger_than_a_client_asks_for_does_not_judge_it() -> None:
    log = [logged(POLLED + 80_000, FIRST, 2, 0, 1)]
    assert verdicts(judged(log, [], LISTS)) == [(FIRST, "undetermined")]


def test_a_log_without_polls_of_the_queues_stays_undetermined_once() -> None:
    found = judged(LOG, ANSWERS, LISTS, routes=[])
    assert verdicts(found) == [(row["client_id"], "undetermined") for row in LOG]
    assert {row["reason"] for row in found} == {"the recording lacks the lists that the client saw"}


def test_polls_of_a_client_with_a_hook_are_not_judged_again() -> None:
    whole = {"cid_all": [FIRST, SECOND], "mq_all": [("pier-b", queue) for queue in range(QUEUES)]}
    hook = [logged(JOINED, FIRST, 2, 0, 1, source="rebalance_log", **whole)]
    assert verdicts(judged(hook, answers(FIRST, 0, 1), LISTS)) == [(FIRST, "agree")]
