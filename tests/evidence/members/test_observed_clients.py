"""Clients without hooks: facts from polls, and their precision."""

from __future__ import annotations

from typing import Any

import polars as pl

from mqreplay.decisions.queue_owner import queue_owner, source_gaps
from mqreplay.evidence.members.conflicts import strategy_conflicts, subscription_conflicts
from mqreplay.evidence.members.membership import membership, subscriptions
from mqreplay.evidence.members.observed_clients import (
    BY_POP,
    observed_heartbeats,
    polled_signs,
    strategy_sides,
    unwatched,
)
from mqreplay.evidence.recorder_holes import HOLES
from silver_moments import BEGAN, at
from silver_rows import rows

Row = dict[str, Any]
SUBSCRIBED = [("T", "*", "TAG", 1), ("%RETRY%g", "*", "TAG", 1)]
NO_SPANS = pl.DataFrame(
    schema={
        **dict.fromkeys(("consumer_group", "client_id", "broker_name", "topic"), pl.String),
        "queue_id": pl.Int32,
        "from_ts": pl.Datetime("us", "UTC"),
        "to_ts": pl.Datetime("us", "UTC"),
    }
)
NO_GROUPS = pl.DataFrame(schema={"consumer_group": pl.String})


def answer(client: str, seconds: float, *queues: int, before: float | None = None, **differs: Any) -> Row:
    held = [("T", "b", q, False, True, *[None] * 6) for q in queues]
    row = {"client_id": client, "consumer_group": "g", "ts": at(seconds), "queues": held, "source": "running_info"}
    row |= {"strategy": "AVG", "message_model": "CLUSTERING", "subscriptions": SUBSCRIBED, "response_code": 0}
    return row | {"previous_ts": None if before is None else at(before)} | differs


def silent(client: str, seconds: float, before: float, **differs: object) -> Row:
    row = answer(client, seconds, before=before, queues=None, error="no answer", response_code=207)
    return row | {"subscriptions": None, "strategy": None} | differs


def assignments(*listed: Row) -> pl.DataFrame:
    return rows("silver.assignment", {}, listed)


def sessions(*spans: tuple[str, float, float]) -> pl.DataFrame:
    signs = [("g", client, at(since), at(until), "listed") for client, since, until in spans]
    names = {"consumer_group": pl.String, "client_id": pl.String}
    instant = pl.Datetime("us", "UTC")
    schema = names | {"from_ts": instant, "to_ts": instant, "sign": pl.String}
    return membership(pl.DataFrame(signs, schema, orient="row"), 90)


def owned_frame(assignment: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    return queue_owner(assignment, rows("silver.rebalance", {}, []), NO_SPANS, NO_SPANS, members, NO_GROUPS)


def owned(assignment: pl.DataFrame, members: pl.DataFrame) -> list[tuple[str, int, float, float, str]]:
    found = owned_frame(assignment, members)
    seconds = [((pl.col(name) - BEGAN).dt.total_milliseconds() / 1000).alias(name) for name in ("from_ts", "to_ts")]
    return found.sort("client_id", "queue_id", "from_ts").select("client_id", "queue_id", *seconds, "source").rows()


def test_a_change_lies_in_the_middle_between_two_polls() -> None:
    held = assignments(answer("c1", 4, 0, 1), answer("c1", 64, 0, before=44), answer("c2", 70, 1))
    found = owned(held, sessions(("c1", 0, 100), ("c2", 60, 90)))
    assert found == [
        ("c1", 0, 2, 100, "running_info"),
        ("c1", 1, 2, 54, "running_info"),
        ("c2", 1, 65, 90, "running_info"),
    ]


def test_between_polls_far_from_each_other_nothing_is_known() -> None:
    held = assignments(answer("c1", 0, 0), answer("c1", 300, 1, before=40))
    members = sessions(("c1", 0, 400))
    assert owned(held, members) == [("c1", 0, 0, 40, "running_info"), ("c1", 1, 300, 400, "running_info")]
    gap = unwatched(members, held, pl.DataFrame(schema=HOLES)).sort("from_ts")
    assert gap.select("from_ts", "to_ts").rows() == [(at(40), at(300))]


def test_an_answer_by_another_broker_shows_a_change_since_the_last_poll() -> None:
    held = assignments(answer("c1", 0, 0, 1), answer("c1", 60, 0, before=None))
    assert owned(held, sessions(("c1", 0, 100)))[1][:4] == ("c1", 1, 0, 50)


def test_what_a_client_held_ends_with_its_session() -> None:
    held = assignments(answer("c1", 0, 0), silent("c1", 30, 20), silent("c1", 90, 85))
    assert owned(held, sessions(("c1", 0, 27))) == [("c1", 0, 0, 27, "running_info")]


def test_a_client_that_does_not_say_what_it_holds_owns_nothing_and_is_not_watched() -> None:
    held = assignments(answer("pull", 5, queues=None))
    members = sessions(("pull", 0, 100))
    assert owned(held, members) == []
    assert polled_signs(held)["sign"].to_list() == ["listed"]
    gap = unwatched(members, held, pl.DataFrame(schema=HOLES))
    assert gap.select("client_id", "from_ts", "to_ts").rows() == [("pull", at(0), at(100))]


SHARED = {"pop_queues": [("T", "b", -1, False, 0, None)], "properties": {"clientRebalance": "false"}}
RETRY_QUEUE = [("%RETRY%g", "b", 0, False, True, *[None] * 6)]


def test_the_queues_of_a_client_that_consumes_by_pop_are_not_known() -> None:
    pop, retry = answer("pop", 5, queues=None, **SHARED), answer("retry", 5, queues=RETRY_QUEUE, **SHARED)
    held, members = assignments(pop, retry), sessions(("pop", 0, 100), ("retry", 0, 100))
    assert [row[0] for row in owned(held, members)] == ["retry"]
    gap = unwatched(members, held, pl.DataFrame(schema=HOLES)).sort("client_id")
    assert gap.drop("consumer_group").rows() == [(client, at(0), at(100), BY_POP) for client in ("pop", "retry")]


def test_a_client_is_known_until_its_group_changes_to_pop() -> None:
    held = assignments(
        answer("c1", 4, 0), answer("c1", 44, before=24, queues=None, **SHARED), answer("c1", 84, 0, before=64)
    )
    members = sessions(("c1", 0, 100))
    assert owned(held, members) == [("c1", 0, 2, 34, "running_info"), ("c1", 0, 74, 100, "running_info")]
    gap = unwatched(members, held, pl.DataFrame(schema=HOLES)).sort("from_ts")
    assert gap.select("from_ts", "to_ts").rows() == [(at(0), at(2)), (at(34), at(74))]


def test_a_client_without_queues_consumes_by_pop_if_its_group_does() -> None:
    assigned = {"pop_queues": [], "properties": {"clientRebalance": "false"}}
    waits, by_itself = answer("waits", 5, **assigned), answer("by itself", 5, pop_queues=[])
    members = sessions(("waits", 0, 100), ("by itself", 0, 100), ("pop", 0, 100))

    def unknown(*others: Row) -> set[str]:
        gap = unwatched(members, assignments(waits, by_itself, *others), pl.DataFrame(schema=HOLES))
        return set(gap.filter(pl.col("to_ts") > at(50))["client_id"])

    assert unknown(answer("pop", 5, queues=None, **SHARED)) == {"pop", "waits"}
    # In mode PULL a broker gave it no queue.
    assert unknown(answer("pop", 5, 0, **assigned)) == set()


def test_rows_of_hooks_come_before_polls() -> None:
    hook = answer("c1", 0, 0) | {"source": "assignment"}
    found = owned(assignments(hook, answer("c1", 10, 0, 1)), sessions(("c1", 0, 60)))
    assert found == [("c1", 0, 0, 60, "assignment")]


def test_two_sources_that_disagree_beyond_their_precision_are_a_gap() -> None:
    hooks = [answer("c1", s, 0) | {"source": "assignment"} for s in range(0, 121, 15)]
    none = rows("silver.rebalance", {}, [])
    members = sessions(("c1", 0, 130))
    wrong = assignments(*hooks, answer("c1", 0, 0, 1), answer("c1", 60, 0, before=40), answer("c1", 110, 0, before=100))
    (gap,) = source_gaps(wrong, none, members).to_dicts()
    assert (gap["decision"], gap["topic"], gap["from_ts"], gap["to_ts"]) == ("gold.queue_owner", "T", at(0), at(50))
    assert gap["reason"] == "assignment and running_info disagree about the owner of a queue; assignment counts"
    right = assignments(*hooks, answer("c1", 0, 0, 1), answer("c1", 20, 0, before=0), answer("c1", 110, 0, before=100))
    assert source_gaps(right, none, members).is_empty()


CONNECTED = {"consumer_group": "g", "broker_name": "b", "broker_id": 0, "ts": at(0), "message_model": "CLUSTERING"}
CONNECTED |= {"connections": [("c1", "h:1", "JAVA", 407), ("go", "h:2", "GO", 0)], "subscriptions": SUBSCRIBED}


def test_a_client_says_in_running_info_what_it_would_say_in_a_heartbeat() -> None:
    heartbeat = rows("silver.heartbeat", {}, [])
    connection = rows("silver.consumer_connection", {}, [CONNECTED])
    found = observed_heartbeats(heartbeat, assignments(answer("c1", 0, 0), silent("c1", 60, 40)), connection)
    assert found.select("client_id", "source").rows() == [("c1", "running_info"), ("go", "consumer_connection")]
    assert subscriptions(found)["subscribed"].to_list() == ["T TAG *", "T TAG *"]
    assert found.schema == heartbeat.schema


def test_a_client_that_sent_heartbeats_says_nothing_else() -> None:
    data = ("g", "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET", False, SUBSCRIBED)
    beats = [{"client_id": c, "ts": at(0), "kind": "HEART_BEAT", "consumer_data_set": [data]} for c in ("c1", "go")]
    heartbeat = rows("silver.heartbeat", {"source": "heartbeat"}, beats)
    connection = rows("silver.consumer_connection", {}, [CONNECTED])
    assert observed_heartbeats(heartbeat, assignments(answer("c1", 0, 0)), connection).is_empty()


def minutes(client: str, **differs: object) -> list[Row]:
    return [answer(client, s, 0, before=s - 20 if s else None, **differs) for s in (0, 60, 120, 180)]


def test_different_strategies_are_a_conflict_though_answers_are_written_once_a_minute() -> None:
    held = assignments(*minutes("c1"), *minutes("c2", strategy="AVG_BY_CIRCLE"))
    none, members = rows("silver.rebalance", {}, []), sessions(("c1", 0, 200), ("c2", 0, 200))
    (conflict,) = strategy_conflicts(none, members, 20, strategy_sides(held)).to_dicts()
    assert (conflict["from_ts"], conflict["to_ts"]) == (at(0), at(200))
    assert (conflict["sides"], conflict["topics"]) == (["AVG", "AVG_BY_CIRCLE"], ["T"])
    assert conflict["record_ids"] == ["silver.assignment r0", "silver.assignment r4"]
    assert strategy_conflicts(none, members, 20, strategy_sides(assignments(*minutes("c1")))).is_empty()


def test_different_subscriptions_are_a_conflict() -> None:
    other = [("U", "*", "TAG", 1)]
    held = assignments(*minutes("c1"), *minutes("c2", subscriptions=other))
    beats = observed_heartbeats(rows("silver.heartbeat", {}, []), held, rows("silver.consumer_connection", {}, []))
    (conflict,) = subscription_conflicts(beats, sessions(("c1", 0, 200), ("c2", 0, 200)), 30).to_dicts()
    assert (conflict["from_ts"], conflict["to_ts"]) == (at(0), at(210))
    assert conflict["sides"] == ["T TAG *", "U TAG *"]


def test_a_night_without_polls_has_nothing_of_them() -> None:
    none = assignments()
    assert polled_signs(none).is_empty()
    assert strategy_sides(none).is_empty()
    assert source_gaps(none, rows("silver.rebalance", {}, []), sessions()).is_empty()
