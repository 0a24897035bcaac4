"""Assignments by a broker against its rule, with the members and queues then known."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

from mqreplay.decisions.pop_assignments import pop_assignments
from mqreplay.evidence.members.agreed_lists import MEMBERS, QUEUES, ROUTES

T0 = dt.datetime(2026, 11, 25, 1, tzinfo=dt.UTC)
MINUTE = dt.timedelta(minutes=1)
INSTANT = pl.Datetime("us", "UTC")
ASKED = {
    "day": pl.Date,
    "ts": INSTANT,
    "response_ts": INSTANT,
    "broker_name": pl.String,
    "response_code": pl.Int32,
    "client_id": pl.String,
    "consumer_group": pl.String,
    "topic": pl.String,
    "strategy": pl.String,
    "message_model": pl.String,
    "mode": pl.String,
    "queues": QUEUES,
    "record_id": pl.String,
}


def judged(queues, client="c1", mode="POP", cids=("c1", "c2", "c3"), ts=T0, code=0, strategy="AVG", queue_count=4):
    structs = None if queues is None else [{"broker_name": "b", "queue_id": n} for n in queues]
    asked = (T0.date(), ts, ts, "b", code, client, "g", "t", strategy, "CLUSTERING", mode, structs, "r")
    members = pl.DataFrame([("g", T0 - MINUTE, T0 + MINUTE, list(cids))], schema=MEMBERS, orient="row")
    mq_all = [{"broker_name": "b", "queue_id": n} for n in range(queue_count)]
    routes = pl.DataFrame([("t", T0 - MINUTE, T0 + MINUTE, mq_all)], schema=ROUTES, orient="row")
    (row,) = pop_assignments(pl.DataFrame([asked], schema=ASKED, orient="row"), members, routes).rows(named=True)
    return row["judgement"], row["pop_share_queue_num"]


@pytest.mark.parametrize(
    ("queues", "more", "verdict"),
    [
        ([-1], {}, ("agree", 0)),
        ([0, 1, 2], {}, ("agree", 1)),  # its own two queues and those of the next client
        ([0, 1], {}, ("differ", None)),  # without a share, in mode POP
        ([0, 1], {"mode": "PULL"}, ("agree", None)),
        ([-1], {"mode": "PULL"}, ("differ", None)),
        ([0, 1], {"cids": ("c1", "c2"), "mode": "PULL"}, ("agree", None)),
        ([0, 2], {"cids": ("c1", "c2"), "mode": "PULL", "strategy": "AVG_BY_CIRCLE"}, ("agree", None)),
        ([0], {"queue_count": 1, "client": "c2", "mode": "PULL"}, ("differ", None)),
    ],
)
def test_the_queues_against_the_brokers_rule(queues, more, verdict):
    assert judged(queues, **more) == verdict


@pytest.mark.parametrize(
    "more",
    [{"ts": T0 + 2 * MINUTE}, {"client": "c9"}, {"code": 1}, {"queues": None}],
)
def test_without_members_queues_or_an_answer_nothing_is_judged(more):
    assert judged(**{"queues": [7], **more}) == ("undetermined", None)
