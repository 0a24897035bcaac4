"""The suggestion that a client kept, against a search through all its earlier answers."""

from __future__ import annotations

import datetime as dt

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.evidence.brokers.routes import route_changes
from mqreplay.evidence.intervals import with_epoch
from mqreplay.evidence.members.client_memory import (
    SUBSCRIPTION,
    UNKNOWN_SUGGESTION,
    first_subscriptions_of_shard,
    new_clients,
    with_memory,
)
from silver_moments import BEGAN, at
from silver_rows import rows

PULL = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_offset": 0, "broker_id": 0}
NO_ROUTES = rows("silver.route", {}, [])
SECOND = at(2)
MOMENTS = st.integers(0, 4).map(float)
PULLS = st.lists(
    st.fixed_dictionaries(
        {
            "client_id": st.sampled_from(["c1", "c2"]),
            "queue_id": st.integers(0, 1),
            "suggest_which_broker_id": st.none() | st.integers(0, 2),
            "sub_version": st.sampled_from([None, int(BEGAN.timestamp() * 1000), 0]),
            "asked_s": MOMENTS,
            "answered_s": st.none() | MOMENTS,
            "error": st.sampled_from([None, "timeout"]),
        }
    ),
    max_size=15,
)


def test_epoch_is_the_last_start_at_or_before_the_instant() -> None:
    frame = pl.DataFrame({"ts": [at(-1), at(0), at(1), at(2), at(3)]}).cast({"ts": pl.Datetime("us", "UTC")})
    naive = BEGAN.replace(tzinfo=None)
    assert with_epoch(frame, "ts", [SECOND, naive])["epoch"].to_list() == [BEGAN, BEGAN, BEGAN, SECOND, SECOND]
    assert with_epoch(frame, "ts", [])["epoch"].to_list() == [None] * 5


def test_client_is_born_if_none_of_its_pulls_shows_an_older_subscription() -> None:
    sure = BEGAN + dt.timedelta(milliseconds=1, microseconds=500)
    sure_ms = int(BEGAN.timestamp() * 1000) + 1
    versions = [("new", sure_ms), ("older", sure_ms - 1), ("both", sure_ms + 9), ("both", sure_ms - 9), ("none", None)]
    pulls = [
        {"client_id": client, "sub_version": version, "request_ts": at(n), "queue_id": n}
        for n, (client, version) in enumerate(versions)
    ]
    frame = rows("silver.pull", PULL, pulls)
    starts = {BEGAN.replace(tzinfo=None): sure.replace(tzinfo=None)}
    for shards in ([frame], [frame.filter(pl.col("queue_id") == n) for n in range(5)]):
        new = new_clients([first_subscriptions_of_shard(shard, starts) for shard in shards], starts)
        assert new.rows() == [(BEGAN, "new")]
    assert new_clients([], starts).is_empty()
    empty = first_subscriptions_of_shard(frame.clear(), starts)
    assert dict(empty.schema) == SUBSCRIPTION


def test_of_two_answers_at_one_instant_an_unseen_one_counts_else_the_greatest():
    def kept(*answers):
        base = {"client_id": "c1", "queue_id": 0, "request_ts": at(0), "response_ts": at(0)}
        pulls = [base | answer for answer in answers]
        pulls.append(base | {"request_ts": at(1), "response_ts": at(1)})
        frame = rows("silver.pull", PULL, pulls)
        starts = {BEGAN: BEGAN}
        return with_memory(frame, route_changes(NO_ROUTES, starts), new_clients([], starts), starts)[
            "suggestion"
        ].to_list()[-1]

    one, two = {"suggest_which_broker_id": 1}, {"suggest_which_broker_id": 2}
    unseen = {"response_ts": None}
    assert [kept(one, two), kept(two, one)] == [2, 2]
    assert [kept(one, unseen), kept(unseen, one)] == [UNKNOWN_SUGGESTION, UNKNOWN_SUGGESTION]


@given(PULLS)
def test_kept_suggestion_is_that_of_the_last_answer_before(pulls) -> None:
    for n, p in enumerate(pulls):
        p["opaque"] = n  # request ids order what happens in one instant
        p["request_ts"] = at(p["asked_s"])
        p["response_ts"] = None if p["answered_s"] is None else at(p["asked_s"] + p["answered_s"])
    frame = rows("silver.pull", PULL, pulls)
    starts = {BEGAN: BEGAN, SECOND: at(9)}
    new = new_clients([first_subscriptions_of_shard(frame, starts)], starts)
    kept = with_memory(frame, route_changes(NO_ROUTES, starts), new, starts)
    assert kept["suggestion"].to_list() == [_kept(p, pulls) for p in pulls]


def _kept(asked, pulls):
    """Search all answers: the slow way to the same result."""
    in_second = asked["asked_s"] >= 2
    of_client = [p for p in pulls if p["client_id"] == asked["client_id"] and (p["asked_s"] >= 2) == in_second]
    best = None
    for p in of_client:
        may_be_unseen = p["response_ts"] is None and p["error"] is None
        if p["queue_id"] != asked["queue_id"] or not (may_be_unseen or p["suggest_which_broker_id"] is not None):
            continue
        came = (p["response_ts"] or p["request_ts"], p["opaque"])
        if came < (asked["request_ts"], asked["opaque"]) and (best is None or came > best[0]):
            best = came, UNKNOWN_SUGGESTION if may_be_unseen else p["suggest_which_broker_id"]
    if best is not None:
        return best[1]
    versions = [p["sub_version"] for p in of_client if p["sub_version"] is not None]
    sure = at(9) if in_second else BEGAN
    return None if versions and min(versions) >= sure.timestamp() * 1000 else UNKNOWN_SUGGESTION
