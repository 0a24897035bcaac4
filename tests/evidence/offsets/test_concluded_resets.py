"""Resets that nothing recorded: several offsets of a group fall between two polls of a broker that ran."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.evidence.intervals import INSTANT
from mqreplay.evidence.offsets.break_causes import with_concluded_resets
from silver_moments import at

Row = dict[str, Any]
PLACE = {"broker_name": "b", "topic": "T", "consumer_group": "g"}
OF_QUEUE = {"broker_name": pl.String, "topic": pl.String, "consumer_group": pl.String, "queue_id": pl.Int32}
SPAN = {"from_ts": INSTANT, "to_ts": INSTANT}
BREAKS = OF_QUEUE | SPAN | {"broker_id": pl.Int64, "kind": pl.String, "cause": pl.String}
OWNERS = OF_QUEUE | SPAN | {"client_id": pl.String}
POLLS = {"broker_name": pl.String, "broker_id": pl.Int64, "ts": INSTANT, "boot_ts": INSTANT}


def fell(queue: int, **differs: object) -> Row:
    span = {"from_ts": at(100), "to_ts": at(105)}
    return PLACE | span | {"broker_id": 0, "queue_id": queue, "kind": "rewind", "cause": "unknown"} | differs


def held(queue: int, client: str = "c", since: float = 0, until: float = 200) -> Row:
    return PLACE | {"queue_id": queue, "client_id": client, "from_ts": at(since), "to_ts": at(until)}


def polled(*boots: tuple[float, float]) -> list[Row]:
    return [{"broker_name": "b", "broker_id": 0, "ts": at(ts), "boot_ts": at(boot)} for ts, boot in boots]


RAN = polled((99, -50), (104, -50), (109, -50))


def causes(
    breaks: list[Row], owners: list[Row], polls: list[Row], has_pushes: bool = False, by_pop: tuple[str, ...] = ()
) -> list[str]:
    frames = (pl.DataFrame(rows, schema) for rows, schema in ((breaks, BREAKS), (polls, POLLS), (owners, OWNERS)))
    shared = pl.DataFrame({"consumer_group": by_pop}, {"consumer_group": pl.String})
    return with_concluded_resets(*frames, has_pushes, shared)["cause"].to_list()


def test_several_offsets_that_fall_at_once_were_reset():
    assert causes([fell(0), fell(1)], [held(0), held(1)], RAN) == ["reset", "reset"]


@pytest.mark.parametrize("has_pushes", [False, True])
def test_several_offsets_of_a_group_that_consumes_by_pop_were_reset(has_pushes):
    # Its members hold queues of their retry topic alone, or none.
    for owners in ([], [held(0) | {"topic": "%RETRY%g"}]):
        assert causes([fell(0), fell(1)], owners, RAN, has_pushes, ("g",)) == ["reset", "reset"]
        assert causes([fell(0)], owners, RAN, has_pushes, ("g",)) == ["unknown"]
    assert causes([fell(0), fell(1)], [], RAN, has_pushes) == ["unknown", "unknown"]


def test_a_client_may_drop_its_queue_for_the_reset():
    dropped = [held(0, until=95), held(0, since=115), held(1)]
    assert causes([fell(0), fell(1)], dropped, RAN) == ["reset", "reset"]


def test_a_queue_that_changed_hands_falls_with_the_others():
    owners = [held(0), held(1), held(2, "a", until=98), held(2, "c", since=98)]
    assert causes([fell(0), fell(1), fell(2)], owners, RAN) == ["reset"] * 3


@pytest.mark.parametrize("has_pushes", [False, True])
@pytest.mark.parametrize(("until", "cause"), [(79, "reset"), (85, "unknown")], ids=["down", "just left"])
def test_an_offset_that_falls_while_nobody_holds_its_queue_was_reset(has_pushes, until, cause):
    # No broker pushes a reset to a group that is down.
    owners = [held(0, until=until), held(0, since=130), held(1)]
    assert causes([fell(0)], owners, RAN, has_pushes) == [cause]
    assert causes([fell(0)], owners, polled((99, -50), (109, 102)), has_pushes) == ["unknown"]


def test_where_pushes_are_recorded_and_there_was_none_members_did_not_reset():
    assert causes([fell(0), fell(1)], [held(0), held(1)], RAN, has_pushes=True) == ["unknown", "unknown"]


def test_one_known_cause_stays():
    breaks = [fell(0), fell(1), fell(2, cause="client_commit"), fell(3, kind="vanished", cause="removed")]
    assert causes(breaks, [held(0), held(1)], RAN) == ["reset", "reset", "client_commit", "removed"]


@pytest.mark.parametrize(
    ("breaks", "owners", "polls"),
    [
        ([fell(0)], [held(0)], RAN),
        ([fell(0), fell(1, from_ts=at(50), to_ts=at(55))], [held(0)], RAN),
        ([fell(0), fell(1)], [held(0)], polled((99, -50), (109, 102))),
        ([fell(0), fell(1)], [held(0)], polled((99, -50))),
        ([fell(0), fell(1)], [], RAN),
        ([fell(q) for q in (0, 1)], [held(q, c, s, s + 100) for q in (0, 1) for c, s in (("a", 0), ("c", 99))], RAN),
        ([fell(0, broker_id=1), fell(1, broker_id=1)], [held(0)], RAN),
    ],
    ids=["one queue", "at two times", "restarted", "not polled later", "owners unknown", "handed over", "slave"],
)
def test_what_proves_no_reset(breaks, owners, polls):
    assert set(causes(breaks, owners, polls)) == {"unknown"}
