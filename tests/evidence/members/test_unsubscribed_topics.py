"""Topics that members of a group listed once and none lists any more, by what each of them stated."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.evidence.members.conflicts import unsubscribed_topics
from mqreplay.evidence.members.observed_clients import CONNECTION, RUNNING_INFO
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]


def states(client: str, seconds: float, *topics: str, source: str | None = None) -> Row:
    subscribed = [(topic, "*", "TAG", 1) for topic in (*topics, "%RETRY%g")] if topics else None
    data = ("g", "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET", False, subscribed)
    row = {"client_id": client, "kind": "HEART_BEAT", "consumer_data_set": [data], "source": source}
    return row | {"ts": at(seconds)}


def unsubscribed(heartbeats: list[Row], **sessions: tuple[float, float]) -> list[tuple[str, float, float]]:
    members = pl.DataFrame(
        [("g", client, at(began), at(ended)) for client, (began, ended) in sessions.items()],
        ["consumer_group", "client_id", "from_ts", "to_ts"],
        orient="row",
    ).cast({"from_ts": pl.Datetime("us", "UTC"), "to_ts": pl.Datetime("us", "UTC")})
    found = unsubscribed_topics(rows("silver.heartbeat", {}, heartbeats), members)
    spans = [(row["topic"], row["from_ts"], row["to_ts"]) for row in found.sort("topic", "from_ts").to_dicts()]
    return [(topic, *((ts - at(0)).total_seconds() for ts in span)) for topic, *span in spans]


BOTH = [states("c1", 0, "T", "U"), states("c2", 5, "T", "U")]


@pytest.mark.parametrize(
    ("later", "found"),
    [
        pytest.param([], [], id="nothing changes"),
        pytest.param([states("c1", 60, "T")], [], id="the other one still lists it"),
        pytest.param([states("c1", 60, "T"), states("c2", 70, "T")], [("U", 70, 300)], id="both drop it"),
        pytest.param(
            [states("c1", 60, "T"), states("c2", 70, "T"), states("c2", 200, "T", "U")],
            [("U", 70, 200)],
            id="one takes it back",
        ),
        pytest.param(
            [states("c1", 60, "T"), states("c2", 70, "T"), states("c2", 100)],
            [("U", 70, 300)],
            id="a heartbeat without subscriptions changes nothing",
        ),
        pytest.param(
            [states("c1", 60, "T"), states("c2", 70, "T", source=CONNECTION)],
            [],
            id="what a broker knows is no statement",
        ),
        pytest.param(
            [states("c1", 60, "T", source=RUNNING_INFO), states("c2", 70, "T", source=RUNNING_INFO)],
            [("U", 70, 300)],
            id="clients that were asked",
        ),
    ],
)
def test_when_nobody_lists_a_topic_any_more(later, found):
    assert unsubscribed([*BOTH, *later], c1=(0, 300), c2=(0, 300)) == found


def test_a_member_that_has_stated_nothing_yet_may_subscribe():
    """It came at 100 s and was heard at 160 s."""
    heard = [states("c1", 0, "T", "U"), states("c1", 60, "T"), states("c3", 160, "T")]
    assert unsubscribed(heard, c1=(0, 300), c3=(100, 300)) == [("U", 60, 100), ("U", 160, 300)]


def test_a_topic_that_nobody_listed_before_is_not_missed():
    later = [states("c1", 0, "T"), states("c1", 100, "T", "U")]
    assert unsubscribed(later, c1=(0, 300)) == []


def test_a_group_without_members_subscribes_to_nothing():
    assert unsubscribed([states("c1", 0, "T", "U"), states("c1", 60, "T")], c1=(0, 120)) == [("U", 60, 120)]
