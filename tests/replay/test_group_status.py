"""A group's status in each window: by what it committed, what queues held then, and never by a guess."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest

from mqreplay.core.burrow import STATUSES
from mqreplay.core.burrow import group_status as law
from mqreplay.replay.by_queue.looks import of_look
from mqreplay.replay.group_status import group_status
from silver_moments import at

COMMIT = {
    "kind": "UPDATE",
    "client_id": "c1",
    "consumer_group": "g",
    "topic": "T",
    "broker_name": "b",
    "broker_id": 0,
    "queue_id": 0,
}
CHANGE = {"source_name": "b-0", "broker_name": "b", "broker_id": 0, "topic": "T", "consumer_group": "g", "queue_id": 0}
PULL = {
    "client_id": "c1",
    "consumer_group": "g",
    "topic": "T",
    "broker_name": "b",
    "queue_id": 0,
    "broker_id": 0,
    "queue_offset": 0,
    "opaque": 0,
}
WINDOW = 60


def commit(seconds: float, offset: int, **differs: object) -> dict[str, object]:
    return {"ts": at(seconds), "commit_offset": offset} | differs


def end(seconds: float, offset: int, **differs: object) -> dict[str, object]:
    return {"request_ts": at(seconds), "response_ts": at(seconds), "max_offset": offset} | differs


def saved(seconds: float, offset: int | None, **differs: object) -> dict[str, object]:
    return {"to_ts": at(seconds), "new_offset": offset} | differs


@pytest.fixture
def told(rows, look_at):
    def tell(commits, ends, changes=()):
        found = look_at(
            rows("silver.offset_change", CHANGE, list(changes)),
            rows("silver.offset_commit", COMMIT, commits),
            rows("silver.pull", PULL, ends),
        )
        frame = group_status(of_look(found, "status"), "c", WINDOW)
        return frame.orderBy("consumer_group", "topic", "from_ts").collect()

    return tell


def keeps_up(**differs):
    commits = [commit(t, t, **differs) for t in range(5, 60, 5)]
    return commits, [end(t, t, **differs) for t in range(1, 60)]


def test_a_group_that_keeps_up(told):
    commits, ends = keeps_up()
    (row,) = told(commits, ends)
    assert (row.status, row.lag, row.queues, row.queues_unknown, row.commits) == ("OK", 4, 1, 0, 11)
    assert (row.time_lag_ms, row.source) == (4_000.0, "offset_commit")
    assert (row.from_ts.minute, row.to_ts.minute) == (0, 1)


def test_lags_add_up_over_queues_and_the_one_behind_in_time_counts(told):
    other = {"broker_name": "z"}
    commits, ends = keeps_up()
    slow = [commit(t, 3, **other) for t in range(5, 60, 5)]
    (row,) = told(commits + slow, ends + [end(t, 10 + t, **other) for t in range(1, 60)])
    assert (row.status, row.worst_broker_name, row.worst_queue_id) == ("STALL", "z", 0)
    assert (row.lag, row.queues, row.commits) == (4 + 66, 2, 22)
    assert row.time_lag_ms == 66_000.0, "3 stood at -7 s, on the line of the ends that were seen"


def test_when_all_groups_stop_and_messages_go_on_it_shows(told):
    commits, ends = keeps_up()
    found = told(commits, ends + [end(t, t) for t in range(60, 200)])
    assert [r.status for r in found] == ["OK", "STOP", "STOP", "STOP"]
    assert [r.commits for r in found] == [11, 0, 0, 0]
    assert found[-1].lag == 199 - 55


def test_a_commit_that_reached_no_broker_is_none(told):
    commits, ends = keeps_up()
    failed = [commit(t, t, error="connect failed") for t in range(60, 118, 5)]
    found = told(commits + failed, ends + [end(t, t) for t in range(60, 118)])
    assert [(r.status, r.commits) for r in found] == [("OK", 11), ("STOP", 0)]


def test_questions_are_no_commits(told):
    commits, ends = keeps_up()
    asked = [commit(50, 999, kind="QUERY"), commit(51, None)]
    assert [r.commits for r in told(commits + asked, ends)] == [11]


def test_where_an_end_is_not_known_nothing_is_made_up(told):
    commits, ends = keeps_up()
    dark = [commit(t, t, queue_id=1) for t in range(5, 60, 5)]
    (row,) = told(commits + dark, ends)
    assert (row.status, row.lag, row.time_lag_ms, row.queues_unknown) == ("undetermined", None, None, 1)
    assert "not known" in row.reason


def test_a_trouble_that_is_known_stands_beside_what_is_not(told):
    ends = [end(t, 10 + t) for t in range(1, 60)]
    dark = [commit(t, t, queue_id=1) for t in range(5, 60, 5)]
    (row,) = told([commit(t, 3) for t in range(5, 60, 5)] + dark, ends)
    assert (row.status, row.lag, row.queues_unknown, row.worst_queue_id) == ("STALL", None, 1, 0)


def test_a_slaves_end_is_not_taken_for_the_queues(told):
    commits, _ = keeps_up()
    (row,) = told(commits, [end(t, 5, broker_id=1) for t in range(1, 60)])
    assert row.queues_unknown == 1


def test_snapshots_of_the_master_stand_in_for_a_group_without_commits(told):
    commits, ends = keeps_up()
    other = {"consumer_group": "h"}
    changes = [saved(t, t, **other) for t in range(5, 60, 5)]
    changes += [saved(t, 1, broker_id=1, **other) for t in range(5, 60, 5)]
    changes += [saved(7, None, **other), saved(8, 99)]
    found = told(commits, ends, changes)
    assert [(r.consumer_group, r.source, r.commits, r.lag) for r in found] == [
        ("g", "offset_commit", 11, 4),
        ("h", "offset_change", 11, 4),
    ]


def test_retry_topics_are_rows_of_their_own(told):
    commits, ends = keeps_up()
    more, more_ends = keeps_up(topic="%RETRY%g")
    assert [r.topic for r in told(commits + more, ends + more_ends)] == ["%RETRY%g", "T"]


def test_an_offset_set_back_and_not_made_up_for_is_rewind(told):
    commits = [commit(t, 100 + t) for t in range(5, 40, 5)] + [commit(t, t) for t in range(40, 60, 5)]
    (row,) = told(commits, [end(t, 300 + t) for t in range(1, 60)])
    assert row.status == "REWIND"


QUEUES = "consumer_group string, topic string, broker_name string, queue_id int, source string"
WINDOWS = "array<struct<window_end_ms: bigint, status: string, lag: bigint, time_lag_ms: double, commits: int>>"


def test_the_worst_of_queues_is_the_laws(spark):
    every = [given for size in (1, 2, 3) for given in combinations_with_replacement([*STATUSES, None], size)]
    rows = [
        (str(number), "T", "b", queue, "offset_commit", [(60_000, status, 1, 1.0, 1)])
        for number, statuses in enumerate(every)
        for queue, status in enumerate(statuses)
    ]
    found = group_status(spark.createDataFrame(rows, f"{QUEUES}, w {WINDOWS}"), "c", WINDOW).collect()
    assert {r.consumer_group: r.status for r in found} == {
        str(number): law(statuses) or "undetermined" for number, statuses in enumerate(every)
    }


@pytest.mark.parametrize(
    ("queues", "worst"),
    [
        # broker name, queue id, status, lag: the status first, then the lag, the name and the id
        ([("a", 7, "OK", 9), ("b", 0, "STALL", 1)], ("b", 0)),
        ([("a", 7, "STALL", 9), ("b", 0, "STALL", 1)], ("a", 7)),
        ([("a", 7, "OK", None), ("b", 0, "OK", -5)], ("a", 7)),
        ([("a", 7, None, 2**63 - 1), ("b", 0, "OK", 0)], ("b", 0)),
        ([("a", 7, None, -(2**63)), ("a", 0, None, -(2**63))], ("a", 7)),
        ([("a", 7, "OK", 2**63 - 1), ("b", 0, "OK", 2**63 - 2)], ("a", 7)),
        ([("a", 7, "OK", 1), ("a", 2**31 - 1, "OK", 1), ("B", 2**31 - 1, "OK", 1)], ("a", 2**31 - 1)),
        ([("a", -1, "REWIND", 1), ("a", -(2**31), "REWIND", 1)], ("a", -1)),
    ],
)
def test_which_queue_is_the_worst(spark, queues, worst):
    rows = [
        ("g", "T", name, queue, "offset_commit", [(60_000, status, lag, 1.0, 1)]) for name, queue, status, lag in queues
    ]
    (row,) = group_status(spark.createDataFrame(rows, f"{QUEUES}, w {WINDOWS}"), "c", WINDOW).collect()
    assert (row.worst_broker_name, row.worst_queue_id) == worst
