"""Breaks in offsets: each kind with its proof, and no alarm where there is none."""

from __future__ import annotations

import pytest

from mqreplay.replay.by_queue.looks import of_look
from mqreplay.replay.offset_continuity import offset_continuity
from mqreplay.replay.offset_resets import offset_resets
from mqreplay.replay.queue_ends import queue_ends
from silver_moments import at

PLACE = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0}
CHANGE = PLACE | {"source_name": "b-0", "broker_id": 0}
PULL = PLACE | {"client_id": "c1", "broker_id": 0, "response_code": 0, "min_offset": 0}
COMMIT = PLACE | {"kind": "UPDATE", "client_id": "c1"}


def change(seconds: float, old: int | None, new: int | None) -> dict[str, object]:
    return {"from_ts": at(seconds - 5), "to_ts": at(seconds), "previous_offset": old, "new_offset": new}


def pull(seconds: float, offset: int, after: int, end: int, **differs: object) -> dict[str, object]:
    return {
        "request_ts": at(seconds),
        "response_ts": at(seconds),
        "queue_offset": offset,
        "next_begin_offset": after,
        "max_offset": end,
    } | differs


@pytest.fixture
def breaks(rows, look_at):
    def find(changes, pulls=(), commits=(), resets=(), by_queue=False):
        pulled = rows("silver.pull", PULL, list(pulls))
        ends = queue_ends(pulled, rows("silver.topic_stats", {}, []))
        pushed = [
            {
                "ts": at(s),
                "client_id": "c1",
                "request_code": 220,
                "consumer_group": "g",
                "reset_offsets": [("T", "b", queue[0] if queue else 0, o)],
            }
            for s, o, *queue in resets
        ]
        changed = rows("silver.offset_change", CHANGE, list(changes))
        committed = rows("silver.offset_commit", COMMIT, list(commits))
        looked = look_at(changed, committed, pulled)
        found = offset_continuity(
            changed,
            ends,
            of_look(looked, "suspect"),
            offset_resets(rows("silver.server_request", {}, pushed), pulled),
            of_look(looked, "skip"),
            committed,
            pulled,
            60,
        )
        told = [(r.queue_id, (r.kind, r.cause, r.redelivered_max)) for r in found.orderBy("to_ts").collect()]
        return dict(told) if by_queue else [broken for _, broken in told]

    return find


def test_moving_forwards_is_no_break(breaks):
    assert breaks([change(10, None, 5), change(20, 5, 9), change(30, 9, 500)], [pull(40, 9, 500, 500)]) == []


def test_a_rewind_by_a_client_and_one_from_outside(breaks):
    commits = [{"ts": at(8), "commit_offset": 3}, {"ts": at(1), "commit_offset": 9}]
    assert breaks([change(10, 9, 3), change(20, 9, 1)], commits=commits) == [
        ("rewind", "client_commit", 6),
        ("rewind", "set_from_outside", 8),
    ]


def at_once(breaks, cases):
    """What each case (a change, pulls, pushed resets) comes to, in a queue of its own."""
    changes, pulls, resets, commits = [], [], [], [{"ts": at(1), "commit_offset": 9}]
    for queue, (changed, pulled, *pushed) in enumerate(cases):
        changes.append(changed | {"queue_id": queue})
        pulls += [one | {"queue_id": queue} for one in pulled]
        resets += [(*one, queue) for one in pushed]
    found = breaks(changes, pulls, commits, resets, by_queue=True)
    return [found.get(queue) for queue in range(len(cases))]


def test_a_commit_that_a_pull_carried(breaks):
    carried = {"sys_flag": 3, "commit_offset": 3}
    cases = [
        (change(10, 9, 3), [pull(8, 20, 21, 30, **carried)]),
        (change(10, 9, 3), [pull(8, 20, 21, 30, **carried | {"sys_flag": 2})]),
        # Whoever went back to it afterwards, when the group had passed it.
        (change(10, 9, 3), [pull(3, 20, 21, 30, **carried)]),
    ]
    assert at_once(breaks, cases) == [("rewind", c, 6) for c in ("client_commit", *["set_from_outside"] * 2)]


def moved(seconds, to):
    """How a 5.x broker tells a client of a reset, which it was asked for ten seconds before."""
    return pull(seconds - 10, 9, to, 30, response_ts=at(seconds), response_code=21, next_begin_offset=to)


def test_resets_that_the_broker_sets_itself(breaks):
    cases = [
        # The pull that waited was answered just after the copy; a client with enough to do asks half a minute later.
        (change(10, 9, 3), [moved(11, 3)]),
        (change(10, 9, 3), [moved(45, 3)]),
        (change(10, 9, 3), [moved(11, 2)]),
        (change(10, 9, 3), [moved(90, 3)]),
        # An offset that rose to where a later reset leads did not jump.
        (change(10, 5, 9), [moved(45, 9)]),
        # The group goes on from there before the next copy; long after it, something else moved it.
        (change(10, 9, 6), [moved(9, 3)]),
        (change(30, 9, 6), [moved(9, 3)]),
        (change(10, 9, 6), [], (8, 3)),
        (change(10, 9, 6), [], (11, 3)),
    ]
    back, other = ("rewind", "reset"), ("rewind", "set_from_outside")
    assert at_once(breaks, cases) == [
        *[(*back, 6), (*back, 6), (*other, 6), (*other, 6), None],
        *[(*back, 3), (*other, 3), (*back, 3), (*other, 3)],
    ]


def test_without_commits_the_cause_is_unknown(breaks):
    assert breaks([change(10, 9, 3)]) == [("rewind", "unknown", 6)]


def test_an_offset_past_the_end_and_its_correction(breaks):
    pulls = [pull(2, 5, 5, 8), pull(12, 999, 8, 8, response_code=21)]
    found = breaks([change(10, 5, 999), change(20, 999, 8)], pulls)
    assert [(kind, again) for kind, _, again in found] == [("beyond_max", 0), ("rewind", 0)]
    assert found[1][1] == "corrected"


def test_a_slave_that_lags_makes_no_good_offset_look_wrong(breaks):
    assert breaks([change(10, 5, 9)], [pull(12, 5, 8, 8, broker_id=1)]) == []


def test_a_jump_by_reset_and_by_a_pull_that_skips(breaks):
    assert breaks([change(10, 5, 90)], resets=[(6, 90)]) == [("jump", "reset", 0)]
    pulls = [pull(2, 0, 5, 100), pull(14, 90, 92, 100)]
    assert breaks([change(10, 5, 90)], pulls) == [("jump", "unknown", 0)]


def test_one_slow_message_let_go_is_no_jump(breaks):
    assert breaks([change(10, 5, 90)], [pull(2, 0, 5, 100), pull(3, 5, 90, 100), pull(12, 90, 91, 100)]) == []


def test_an_entry_that_is_gone(breaks):
    assert [kind for kind, _, _ in breaks([change(10, 5, None)])] == ["vanished"]
