"""Rounds of rebalances: what moved, what had to move, and what it cost."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl
import pytest

from mqreplay.decisions import rebalance_round as judged
from mqreplay.decisions.rebalance_round import rebalance_round
from mqreplay.evidence.recorder_holes import HOLES
from silver_moments import at
from silver_rows import rows

START = at(-1000)
SPAN = {"from_ts": pl.Datetime("us", "UTC"), "to_ts": pl.Datetime("us", "UTC")}
MEMBERS = {"consumer_group": pl.String, "client_id": pl.String, **SPAN, "left": pl.Boolean, "dropped": pl.String}
REPEATED = {"consumer_group": pl.String, "client_id": pl.String, "previous_client_id": pl.String}
REPEATED |= {"ts": pl.Datetime("us", "UTC")}
NO_HOLES = pl.DataFrame(schema=HOLES)
GROUP = pl.DataFrame(schema={"consumer_group": pl.String})
A, B = "10.0.0.1@1", "10.0.0.2@2"
Row = dict[str, Any]


def session(client: str, begin: float, end: float) -> Row:
    """Return a session; a client that is there to the end of the recording does not leave."""
    left = end < 1000
    span = {"from_ts": at(begin), "to_ts": at(end)}
    return {"consumer_group": "g", "client_id": client, "left": left, "dropped": None} | span


def held(queue_id: int, client: str, begin: float, end: float, **differs: Any) -> Row:
    queue = {"consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": queue_id}
    return queue | {"client_id": client, "from_ts": at(begin), "to_ts": at(end), "source": "assignment"} | differs


def shares(client: str, begin: int, end: int, *queues: int) -> list[Row]:
    row = {"consumer_group": "g", "client_id": client, "topic": "t", "mq_divided": [("b", q) for q in queues]}
    return [row | {"ts": at(s)} for s in range(begin, end, 20)]


def rounds(
    members: list[Row], owners: list[Row], computed: list[Row] | None = None, **differs: Any
) -> list[dict[str, Any]]:
    known: Row = {
        "repeated": None,
        "unshared": GROUP,
        "orderly": GROUP,
        "holes": NO_HOLES,
        "starts": [START],
        "since": START,
    }
    known |= {"interval_s": 20, "silent_s": 90} | differs
    made = rebalance_round(
        rows("gold.queue_owner", {}, owners),
        pl.DataFrame(members, MEMBERS),
        rows("silver.rebalance", {}, computed or []),
        **known,
    )
    return made.sort("from_ts").rows(named=True)


# b takes over queue 1 of a's two queues at 300 s, 2 s after a released it.
JOINED = [session(A, -1000, 1000), session(B, 299, 1000)]
TAKEN = [held(0, A, -1000, 1000), held(1, A, -1000, 300), held(1, B, 302, 1000)]
COMPUTED = [*shares(A, -1000, 290, 0, 1), *shares(A, 300, 1000, 0), *shares(B, 300, 1000, 1)]


def test_a_member_that_joins_takes_its_share() -> None:
    (row,) = rounds(JOINED, TAKEN, COMPUTED)
    assert (row["from_ts"], row["to_ts"], row["settled_ts"]) == (at(299), at(302), at(302))
    assert (row["joins"], row["leaves"], row["members_before"], row["members_after"]) == (1, 0, 1, 2)
    assert (row["queues"], row["moved"], row["moved_by_strategy"], row["of_leavers"]) == (2, 1, 1, 0)
    assert (row["idle_s"], row["overlap_s"], row["duplicates"]) == (2.0, 0.0, None)
    assert (row["judgement"], row["reason"]) == ("agree", "each member holds the queues that it computed")


def test_a_queue_that_its_member_did_not_take_differs() -> None:
    (row,) = rounds(JOINED, TAKEN[:2], COMPUTED)
    assert (row["judgement"], row["moved"]) == ("differ", 0)
    assert row["reason"] == "1 queue is not held by the member that computed it for itself"
    kept = [held(0, A, -1000, 1000), held(1, A, -1000, 1000)]
    assert rounds(JOINED, kept, COMPUTED)[0]["judgement"] == "differ", "the first owner kept it"


def test_queues_of_a_member_that_leaves_must_move() -> None:
    members = [session(A, -1000, 1000), session(B, -1000, 300)]
    owners = [held(0, A, -1000, 1000), held(1, B, -1000, 300), held(1, A, 310, 1000)]
    computed = [*shares(A, -1000, 300, 0), *shares(B, -1000, 300, 1), *shares(A, 300, 1000, 0, 1)]
    (row,) = rounds(members, owners, computed)
    assert (row["leaves"], row["of_leavers"], row["moved"], row["moved_by_strategy"]) == (1, 1, 1, 1)
    assert (row["idle_s"], row["judgement"]) == (10.0, "agree")


def test_an_owner_within_the_interval_of_another_one_overlaps() -> None:
    # outages-5.3.3: a broker that started again listed one member only, who took all queues for a second.
    members = [session(A, -1000, 1000), session(B, -1000, 1000)]
    owners = [held(0, A, -1000, 1000), held(1, B, -1000, 1000), held(1, A, 300, 301)]
    computed = [*shares(A, -1000, 1000, 0), *shares(B, -1000, 1000, 1)]
    (row,) = rounds(members, owners, computed)
    assert (row["joins"], row["leaves"], row["moved"], row["overlap_s"]) == (0, 0, 0, 1.0)
    assert (row["judgement"], row["cycles"]) == ("agree", 1)


def test_changes_that_follow_each_other_are_one_round() -> None:
    members = [session(A, -1000, 1000), session(B, 200, 250), session(B, 320, 1000)]
    assert [row["joins"] for row in rounds(members, [])] == [1, 0, 1]
    # The lock of a client that died blocks a queue for 60 s.
    orderly = pl.DataFrame({"consumer_group": ["g"]})
    assert [row["joins"] for row in rounds(members, [], orderly=orderly)] == [2]
    later = [session(A, -1000, 1000), session(B, 200, 1000), session("10.0.0.3@3", 400, 1000)]
    assert [row["members_before"] for row in rounds(later, [])] == [1, 2]


def test_messages_that_another_client_received_again_are_counted() -> None:
    again = {"consumer_group": "g", "client_id": B, "previous_client_id": A}
    repeated = pl.DataFrame([again | {"ts": at(s)} for s in (303, 310, 900)], REPEATED)
    (row,) = rounds(JOINED, TAKEN, COMPUTED, repeated=repeated)
    assert row["duplicates"] == 2
    assert rounds(JOINED, TAKEN, COMPUTED, repeated=repeated.clear())[0]["duplicates"] == 0


@pytest.mark.parametrize(
    ("owners", "computed", "reason"),
    [
        ([], COMPUTED, judged.NO_OWNERS),
        ([row | {"source": "rebalance"} for row in TAKEN], COMPUTED, judged.NO_OWNERS),
        (TAKEN, [], judged.NO_SHARES),
    ],
)
def test_what_is_not_known_is_undetermined(owners: list[Row], computed: list[Row], reason: str) -> None:
    (row,) = rounds(JOINED, owners, computed)
    assert (row["judgement"], row["reason"]) == ("undetermined", reason)
    assert (row["queues"] is None) == (not owners)
    assert (row["moved_by_strategy"] is None) == (not computed or not owners)


def test_polls_do_not_show_for_how_long_a_queue_had_no_owner() -> None:
    (row,) = rounds(JOINED, [row | {"source": "running_info"} for row in TAKEN], COMPUTED)
    assert (row["idle_s"], row["overlap_s"], row["moved"]) == (None, None, 1)


def test_a_round_at_the_end_of_the_recording_is_undetermined() -> None:
    row = rounds([session(A, -1000, 320), session(B, 299, 320)], [], COMPUTED)[0]
    assert row["reason"] == judged.ENDED


def test_a_group_that_stops_has_no_owners() -> None:
    other = session(A, -1000, 1000) | {"consumer_group": "other"}
    (row,) = rounds([session(A, -1000, 300), other], [held(0, A, -1000, 300)])
    assert (row["judgement"], row["members_after"]) == ("agree", 0)
    assert row["reason"] == "no member was left, and no queue was held"


def test_the_start_and_the_end_of_a_recording_change_nothing() -> None:
    silent = session(B, -910, 950) | {"left": False}
    assert rounds([session(A, -980, 1000), silent], []) == []
    assert rounds([session(A, -1000, 1000), session(B, 320, 1000)], [], starts=[START, at(300)]) == []
    assert rounds([], []) == []


def test_clients_are_not_seen_in_a_hole_of_the_recorder() -> None:
    members = [session(A, -1000, 1000), session(B, -1000, 190), session(B, 310, 1000)]
    assert len(rounds(members, [])) == 2
    hole = {"from_ts": at(200), "to_ts": at(300), "reason": "stopped"}
    assert rounds(members, [], holes=pl.DataFrame([hole], HOLES)) == []


def test_pulls_alone_are_no_round() -> None:
    owners = [held(0, A, -1000, 300, source="pull"), held(0, B, 300, 1000, source="pull")]
    assert rounds([session(A, -1000, 1000), session(B, -1000, 1000)], owners) == []


def test_broadcasting_groups_share_no_queues() -> None:
    unshared = pl.DataFrame({"consumer_group": ["g"]})
    assert rounds(JOINED, TAKEN, COMPUTED, unshared=unshared) == []


def test_retry_topics_are_left_out() -> None:
    retry = [held(0, A, -1000, 300, topic="%RETRY%g"), held(0, B, 300, 1000, topic="%RETRY%g")]
    members = [session(A, -1000, 1000), session(B, -1000, 1000)]
    assert rounds(members, retry) == []


def test_a_host_that_joins_again_and_again_is_counted() -> None:
    flaps = [session(B, s, s + 170) for s in range(0, 900, 200)]
    made = rounds([session(A, -1000, 1200), *flaps], [])
    assert [(row["joins"], row["cycles"]) for row in made] == [(1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (0, 0)]
    # The last of them may still be there: nothing shows that it left.
    late = [session(B, s, s + 20) for s in range(1050, 1200, 30)]
    assert max(row["cycles"] for row in rounds([session(A, -1000, 1200), *late], [])) == 5
    # A deployment restarts three processes of a host, one after the other.
    old = [session(f"10.0.0.2@{n}", -1000, 100 * n) for n in range(1, 4)]
    new = [session(f"10.0.0.2@{n}0", 100 * n + 5, 1000) for n in range(1, 4)]
    assert max(row["cycles"] for row in rounds([*old, *new], [])) == 1


def test_an_hour_later_it_counts_anew() -> None:
    flaps = [session(B, s, s + 100) for s in range(0, 4 * 4000, 4000)]
    steady = session(A, -1000, 20_000)
    assert {row["cycles"] for row in rounds([steady, *flaps], []) if row["joins"]} == {1}


def test_days_are_those_of_the_first_change() -> None:
    (row,) = rounds(JOINED, TAKEN, COMPUTED)
    assert row["day"] == dt.date(2026, 11, 21)
