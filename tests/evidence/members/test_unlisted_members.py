"""Groups that consume although no broker lists a member: each is a gap, unless a proxy lists its members."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

from mqreplay.evidence.gap_rows import GAP
from mqreplay.evidence.members.member_gaps import NOWHERE, PERHAPS, PROXY_GROUP, UNLISTED_MEMBERS, unlisted_member_gaps

T0 = dt.datetime(2026, 11, 25, 4, 50, tzinfo=dt.UTC)
INSTANT = pl.Datetime("us", "UTC")
STATUS = {
    "day": pl.Date,
    "consumer_group": pl.String,
    "topic": pl.String,
    "from_ts": INSTANT,
    "to_ts": INSTANT,
    "queues": pl.Int64,
    "commits": pl.Int64,
}
LISTS = {"consumer_group": pl.String, "response_ts": INSTANT}
CONNECTIONS = {"consumer_group": pl.String, "error": pl.String, "connections": pl.List(pl.String)}


def gaps(
    commits: int = 100,
    group: str = "g",
    listed: tuple[str, ...] = (),
    polled: bool = True,
    answers: tuple[tuple[str, str | None, list[str] | None], ...] = (),
) -> pl.DataFrame:
    status = [(T0.date(), group, "t", T0, T0 + dt.timedelta(minutes=5), 8, commits)]
    lists = [(group, T0)] if polled else []
    members = pl.DataFrame({"consumer_group": list(listed)}, {"consumer_group": pl.String})
    return unlisted_member_gaps(
        pl.DataFrame(status, STATUS, orient="row"),
        pl.DataFrame(lists, LISTS, orient="row"),
        pl.DataFrame(list(answers), CONNECTIONS, orient="row"),
        [members],
    )


def test_a_group_that_consumes_without_a_listed_member_is_a_gap() -> None:
    found = gaps()
    assert dict(found.schema) == GAP
    assert found.select("consumer_group", "decision", "reason", "decisions").rows() == [
        ("g", "gold.queue_owner", PERHAPS, 8)
    ]
    assert gaps(listed=(PROXY_GROUP,))["reason"].to_list() == [UNLISTED_MEMBERS]
    assert gaps(answers=(("other", "no connection", None),))["reason"].to_list() == [UNLISTED_MEMBERS]
    assert gaps(answers=(("g", None, None),))["reason"].to_list() == [NOWHERE]


@pytest.mark.parametrize(
    "known",
    [
        {"listed": ("g",)},
        {"answers": (("g", None, ["vm@1@1@x"]),)},
        {"commits": 8},  # only the first offset of each queue
        {"polled": False},
        {"group": "CID_RMQ_SYS_REVIVE_GROUP"},
    ],
)
def test_what_is_known_or_idle_is_no_gap(known: dict) -> None:
    assert gaps(**known).is_empty()
