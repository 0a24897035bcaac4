"""What a master's loss would cost: by the copies as they stood, and unknown is never nothing."""

from __future__ import annotations

import pytest

from mqreplay.replay.by_queue.looks import of_look
from mqreplay.replay.failover_exposure import failover_exposure, lacked_by_minute
from silver_moments import at

CHANGE = {"source_name": "x", "broker_name": "b", "topic": "T", "consumer_group": "g", "queue_id": 0}
COPY = {"source_name": "x", "file_name": "consumerOffset.json", "entries": 1, "changed": 0}
POLL = {"broker_name": "b", "full_table": False}


def copied(seconds: float, broker_id: int | None, offset: int | None, **differs: object) -> dict[str, object]:
    return {"to_ts": at(seconds), "broker_id": broker_id, "new_offset": offset} | differs


def polled(seconds: float, broker_id: int, end: int | None, error: str | None = None) -> dict[str, object]:
    return {"ts": at(seconds), "broker_id": broker_id, "commit_log_max_offset": end, "error": error}


@pytest.fixture
def exposed(rows, look_at):
    def expose(polls, changes):
        files = {(change.get("broker_name", "b"), change["broker_id"]) for change in changes}
        copies = [{"broker_name": name, "broker_id": broker_id, "ts": at(999)} for name, broker_id in files]
        looked = look_at(
            rows("silver.offset_change", CHANGE, changes),
            rows("silver.offset_commit", {}, []),
            rows("silver.pull", {}, []),
            rows("silver.snapshot", COPY, copies),
        )
        lacked = lacked_by_minute(of_look(looked, "slave"), "c")
        return failover_exposure(rows("silver.broker_runtime", POLL, polls), lacked)

    return expose


@pytest.fixture
def told(exposed):
    def tell(polls, changes):
        frame = exposed(polls, changes)
        return {int((r.minute_ts - at(0).replace(tzinfo=None)).total_seconds() // 60): r for r in frame.collect()}

    return tell


def test_bytes_are_of_the_last_polls_of_the_minute_and_of_the_furthest_slave(told):
    polls = [polled(1, 0, 900), polled(50, 0, 1000), polled(51, 1, 400), polled(52, 2, 700)]
    row = told(polls, [])[0]
    assert (row.master_up, row.master_end, row.slave_end, row.bytes_behind) == (True, 1000, 700, 300)


def test_bytes_are_unknown_where_an_end_is(told):
    dead = "connect failed"
    found = told(
        [polled(1, 0, 100), polled(61, 0, None, dead), polled(2, 1, 90), polled(62, 1, 100), polled(121, 0, 5)], []
    )
    assert [(found[m].master_up, found[m].bytes_behind) for m in range(3)] == [(True, 10), (False, None), (True, None)]


def test_a_slave_polled_after_its_master_is_not_behind(told):
    assert told([polled(1, 0, 100), polled(30, 1, 120)], [])[0].bytes_behind == 0


def test_a_master_that_answers_once_in_a_minute_is_up_in_it(told):
    assert told([polled(1, 0, None, "e"), polled(59, 0, 7)], [])[0].master_up is True


def test_messages_again_as_the_files_stood_at_the_minutes_end(told):
    changes = [copied(1, 0, 10), copied(2, 1, 10), copied(55, 0, 17), copied(61, 1, 17), copied(130, 0, 20)]
    found = told([], changes)
    assert [found[m].redelivered for m in range(3)] == [7, 0, 3]
    assert [found[m].redelivered_by_group for m in range(3)] == [{"g": 7}, {}, {"g": 3}]


def test_minutes_without_a_change_keep_what_stood(told):
    changes = [copied(1, 0, 10), copied(2, 1, 4)]
    found = told([polled(185, 0, 1)], changes)
    assert (found[3].redelivered, found[3].redelivered_by_group, found[3].unknown_queues) == (6, {"g": 6}, 0)


def test_queues_and_groups_add_up_and_a_slave_ahead_takes_nothing_off(told):
    other, ahead = {"consumer_group": "h"}, {"queue_id": 1}
    changes = [
        *[copied(1, 0, 10), copied(2, 1, 8)],
        *[copied(1, 0, 10, **ahead), copied(2, 1, 90, **ahead)],
        *[copied(1, 0, 5, **other), copied(2, 1, 2, **other)],
    ]
    row = told([], changes)[0]
    assert (row.redelivered_by_group, row.redelivered) == ({"g": 2, "h": 3}, 5)


def test_a_group_that_changes_later_does_not_forget_the_others(told):
    other = {"consumer_group": "h"}
    changes = [copied(1, 0, 10), copied(2, 1, 8), copied(61, 0, 5, **other), copied(62, 1, 4, **other)]
    assert told([], changes)[1].redelivered_by_group == {"g": 2, "h": 1}


def test_queues_of_one_file_only_are_unknown_and_not_counted(told):
    only = {"queue_id": 1}
    changes = [copied(1, 0, 10), copied(2, 1, 8), copied(3, 0, 500, **only), copied(70, 1, 500, **only)]
    found = told([], changes)
    assert [(found[m].redelivered, found[m].unknown_queues) for m in range(2)] == [(2, 1), (2, 0)]


def test_a_queue_gone_from_both_files_is_no_longer_unknown(told):
    gone = {"queue_id": 1}
    changes = [copied(1, 0, 10), copied(2, 1, 10), copied(3, 0, 50, **gone), copied(4, 1, 20, **gone)]
    changes += [copied(61, 0, None, **gone), copied(121, 1, None, **gone)]
    found = told([], changes)
    assert [(found[m].redelivered, found[m].unknown_queues) for m in range(3)] == [(30, 0), (0, 1), (0, 0)]


def test_before_the_slaves_first_copy_nothing_is_known(told):
    polls = [polled(5, 0, 1), polled(65, 0, 2), polled(125, 0, 3)]
    found = told(polls, [copied(1, 0, 10), copied(61, 0, 12), copied(121, 1, 9)])
    assert [(found[m].redelivered, found[m].unknown_queues) for m in range(3)] == [(None, None), (None, None), (3, 0)]


def test_a_master_without_a_slave_or_a_client_of_its_own_is_not_judged(told):
    found = told([polled(1, 0, 5)], [copied(1, 0, 10), copied(2, None, 3, client_id="c")])
    assert (found[0].redelivered, found[0].redelivered_by_group, found[0].unknown_queues) == (None, None, None)


def test_of_two_slaves_the_furthest_copy_counts_whichever_came_last(told):
    changes = [copied(1, 0, 100), copied(2, 1, 95), copied(3, 2, 40), copied(61, 0, 110), copied(63, 2, 109)]
    assert [told([], changes)[m].redelivered for m in range(2)] == [5, 1]


def test_masters_are_apart(exposed):
    changes = [copied(1, 0, 10), copied(2, 1, 8), copied(1, 0, 9, broker_name="z"), copied(2, 1, 9, broker_name="z")]
    assert sorted((r.broker_name, r.redelivered) for r in exposed([], changes).collect()) == [("b", 2), ("z", 0)]
