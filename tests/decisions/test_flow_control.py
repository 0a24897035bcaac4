"""What clients cached, judged by flow control; and who stalls a queue."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mqreplay.core.flow_control import flow_control
from mqreplay.core.process_queue import ProcessQueue, PulledMessage
from mqreplay.decisions.flow_control import COLUMNS, client_flow, logged_flow, stored_rows
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
SETTINGS = {
    "pullThresholdForQueue": "1000",
    "pullThresholdSizeForQueue": "100",
    "consumeConcurrentlyMaxSpan": "2000",
    "pullThresholdForTopic": "-1",
    "pullBatchSize": "32",
    "PROP_CONSUMEORDERLY": "false",
}
ORDERLY = SETTINGS | {"PROP_CONSUMEORDERLY": "true"}
QUEUE = {"topic": "t", "broker_name": "b", "queue_id": 0}
ANSWER = {"client_id": "c1", "consumer_group": "g", "source": "running_info", "consume_type": "CONSUME_PASSIVELY"}


def seen(
    seconds: float, cached: int = 0, first: int | None = None, last: int | None = None, pulled: float = 1, **more: Any
) -> Row:
    """An answer about one queue; the last pull was ``pulled`` seconds before."""
    state = {"locked": True, "dropped": False, "memory_offset": first, "cached_msgs": cached}
    state |= {"cached_first": first, "cached_last": last, "last_pull_ts": at(seconds - pulled)}
    listener = {"cached_mib": 0, "taken_msgs": 0} | {k: more.pop(k) for k in LISTENER if k in more}
    state |= {k: more.pop(k) for k in ("locked", "memory_offset", "dropped") if k in more}
    answer = ANSWER | {"ts": at(seconds), "queues": [QUEUE | state], "listeners": [QUEUE | listener]}
    return answer | {"properties": SETTINGS} | more


LISTENER = ("cached_mib", "taken_msgs", "taken_first", "last_consume_ts")


def judged(*answers: Row, ends: list[tuple[float, int]] | None = None, lines: list[Row] | None = None) -> list[Row]:
    stats = [{"ts": at(s), "offsets": [QUEUE | {"min_offset": 0, "max_offset": end}]} for s, end in ends or []]
    topic_stats = rows("silver.topic_stats", {"broker_name": "b", "broker_id": 0}, stats)
    logs = rows("silver.flow_control", LINE, lines or [])
    return client_flow(rows("silver.assignment", {}, answers), topic_stats, logs, 60).rows(named=True)


def verdict(*answers: Row) -> tuple[str, str | None]:
    row = judged(*answers)[0]
    return row["judgement"], row["flow_control"]


@pytest.mark.parametrize(
    ("now", "later", "expected"),
    [
        # Above the number of messages: at most one pull more than the threshold.
        ((1001, 0, 1000), (1001, 0, 1000), ("agree", "count")),
        ((1032, 0, 1031), (1032, 9, 1040), ("agree", "count")),
        ((1033, 0, 1032), (1033, 0, 1032), ("differ", "count")),
        ((1000, 0, 999), (900, 0, 999), ("agree", None)),
        # The span: the head is the same, so nothing may be added.
        ((2, 0, 2001), (2, 0, 2001), ("agree", "span")),
        ((2, 0, 2001), (3, 0, 2002), ("differ", "span")),
        ((2, 0, 2001), (2, 5, 2040), ("undetermined", "span")),
        ((2, 0, 2000), (3, 0, 2002), ("agree", None)),
    ],
)
def test_a_full_cache_gets_no_more(now: Any, later: Any, expected: tuple[str, str | None]) -> None:
    assert verdict(seen(0, *now), seen(20, *later)) == expected


def test_the_size_and_what_an_orderly_listener_took_count() -> None:
    assert verdict(seen(0, 9, 0, 8, cached_mib=101), seen(20, 9, 0, 8)) == ("agree", "size")
    assert verdict(seen(0, 9, 0, 8, cached_mib=101), seen(20, 9, 5, 13)) == ("undetermined", "size")
    assert verdict(seen(0, 9, 0, 8, cached_mib=101)) == ("undetermined", "size")
    taken = {"taken_msgs": 999, "taken_first": 0, "properties": ORDERLY}
    assert verdict(seen(0, 2, 999, 1000, **taken)) == ("agree", "count")
    assert verdict(seen(0, 2, 0, 3000, properties=ORDERLY)) == ("agree", None)


def test_a_threshold_for_the_topic_may_have_been_higher() -> None:
    settings = SETTINGS | {"pullThresholdForTopic": "500", "pullThresholdForQueue": "100"}
    assert verdict(seen(0, 400, 0, 399, properties=settings)) == ("undetermined", "count")


def test_without_thresholds_only_an_empty_cache_is_judged() -> None:
    hook = {"source": None, "properties": None, "listeners": None}
    rows_of_hook = judged(seen(0, **hook), seen(20, 1, 7, 7, **hook), seen(40, **hook))
    assert [row["judgement"] for row in rows_of_hook] == ["agree", "undetermined", "agree"]
    assert {row["source"] for row in rows_of_hook} == {"assignment"}
    assert "running info" in rows_of_hook[1]["reason"]


def test_below_the_thresholds_the_client_pulls() -> None:
    assert [row["judgement"] for row in judged(seen(0), seen(20))] == ["agree", "agree"]
    # One pull waits at the broker for up to 30 s.
    assert [row["judgement"] for row in judged(seen(0, pulled=1), seen(20, pulled=21))] == ["agree", "agree"]
    found = judged(seen(0, pulled=1), seen(50, pulled=51))
    assert [row["judgement"] for row in found] == ["undetermined", "undetermined"]
    # A clock that is behind makes no pull old.
    assert [row["judgement"] for row in judged(seen(0, pulled=100), seen(20, pulled=100))] == ["agree", "agree"]


def test_only_rows_that_show_something_are_stored() -> None:
    answers = rows("silver.assignment", {}, [seen(0), seen(20, 3, 1, 3), seen(40)])
    flow = client_flow(answers, rows("silver.topic_stats", {}, []), rows("silver.flow_control", {}, []), 60)
    assert (len(flow), stored_rows(flow)["cached_msgs"].to_list()) == (3, [3])


def stalled(*answers: Row, ends: list[tuple[float, int]] | None = None) -> list[str | None]:
    return [row["stalled_by"] for row in judged(*answers, ends=ends)]


def test_a_head_that_stays_is_the_listeners() -> None:
    blocked = [seen(s, 1 + s, 7, 7 + s) for s in (0, 40, 80)]
    assert stalled(*blocked) == ["listener"] * 3
    assert {row["stalled_since_ts"] for row in judged(*blocked)} == {at(0)}
    assert stalled(*blocked[:2]) == [None, None], "shorter than a minute"
    assert stalled(seen(0, 1, 7, 7), seen(40, 1, 7, 7), seen(80, 1, 8, 8)) == [None] * 3
    # The client did not hold the queue in between.
    gone = seen(40) | {"queues": [], "listeners": []}
    assert stalled(blocked[0], gone, blocked[2]) == [None, None]
    # An answer that is missing hides nothing: the head only grows.
    assert stalled(blocked[0], ANSWER | {"ts": at(40), "error": "no answer"}, blocked[2]) == ["listener"] * 2


def test_a_message_that_an_orderly_listener_took_is_the_head() -> None:
    taken = {"taken_msgs": 1, "taken_first": 7, "memory_offset": 7, "properties": ORDERLY}
    assert stalled(*(seen(s, **taken) for s in (0, 40, 80)), ends=[(0, 9)]) == ["listener"] * 3
    # Without the lock of the queue it must not consume.
    assert stalled(*(seen(s, 3, 7, 9, locked=False, properties=ORDERLY) for s in (0, 40, 80))) == [None] * 3


def test_a_client_that_may_be_orderly_needs_the_lock() -> None:
    hook = {"source": None, "properties": None, "listeners": None}
    assert stalled(*(seen(s, 3, 7, 9, locked=False, **hook) for s in (0, 40, 80))) == [None] * 3
    assert stalled(*(seen(s, 3, 7, 9, locked=True, **hook) for s in (0, 40, 80))) == ["listener"] * 3
    assert stalled(*(seen(s, 3, 7, 9, locked=False) for s in (0, 40, 80))) == ["listener"] * 3


def test_a_cache_that_stays_full_is_the_listeners_too() -> None:
    assert stalled(*(seen(s, 1010, s, s + 1009) for s in (0, 40, 80))) == ["listener"] * 3
    assert stalled(*(seen(s, 990, s, s + 989) for s in (0, 40, 80))) == [None] * 3
    # A listener that finished all that was cached is busy: its cache may have been empty in between.
    assert stalled(*(seen(s, 1010, s * 1000, s * 1000 + 1009) for s in (0, 40, 80))) == [None] * 3


FULL_LINE: Row = {"min_offset": 2, "max_offset": 1011, "cached_msgs": 1010}


def together(lines: list[Row], *answers: Row) -> list[tuple[str, str | None]]:
    found = sorted(judged(*answers, lines=[FULL_LINE | line for line in lines]), key=lambda row: row["ts"])
    return [(row["source"], row["stalled_by"]) for row in found]


def test_running_info_and_the_clients_log_show_one_full_cache() -> None:
    full = [seen(s, 1010, s // 10, s // 10 + 1009) for s in (20, 60)]
    lines = [{"ts": at(5), "min_offset": 0}, {"ts": at(70), "min_offset": 6}]
    of_log, of_polls = ("client_log", "listener"), ("running_info", "listener")
    assert together(lines, *full) == [of_log, of_polls, of_polls, of_log]
    assert {row["stalled_since_ts"] for row in judged(*full, lines=[FULL_LINE | line for line in lines])} == {at(5)}
    assert {by for _, by in together(lines[:1], *full)} == {None}, "shorter than a minute"
    for other in ({"client_id": "c2"}, {"queue_id": 1}):
        assert {by for _, by in together([lines[0] | other, lines[1]], *full)} == {None}


def test_what_was_below_the_thresholds_between_breaks_a_full_cache() -> None:
    lines = [{"ts": at(s), "min_offset": s} for s in (5, 30, 70, 90)]
    assert {by for _, by in together(lines)} == {"listener"}
    assert {by for _, by in together(lines, seen(50, 20, 50, 69))} == {None}
    assert {by for _, by in together(lines, seen(50))} == {None}
    # The client did not hold the queue at 40 s.
    assert {by for _, by in together(lines, seen(40) | {"queues": [], "listeners": []}, seen(50, 1010, 50, 1059))} == {
        None
    }
    # All that was cached was finished.
    assert {by for _, by in together([{"ts": at(5)}, {"ts": at(70), "min_offset": 1012, "max_offset": 2030}])} == {None}


def test_a_cache_with_unknown_thresholds_breaks_nothing() -> None:
    lines = [{"ts": at(5), "min_offset": 0}, {"ts": at(70), "min_offset": 6}]
    hook = {"source": None, "properties": None, "listeners": None}
    assert together(lines, seen(50, 20, 5, 24, **hook))[0] == ("client_log", "listener")
    assert together(lines, seen(50, **hook))[0] == ("client_log", None)


def test_pulls_without_an_answer_are_the_brokers() -> None:
    waits = [seen(s, memory_offset=5, pulled=p) for s, p in ((0, 12), (40, 25), (80, 9))]
    other = seen(90, memory_offset=9, pulled=0.1) | {"consumer_group": "g2"}
    assert stalled(*waits, other, ends=[(0, 9)]) == ["broker"] * 3 + [None]
    assert stalled(*waits, other, ends=[(0, 5)]) == [None] * 4, "nothing waits"
    assert stalled(*waits, other) == [None] * 4, "not known whether messages wait"


@pytest.mark.parametrize("differs", [{"consume_type": "CONSUME_ACTIVELY"}, {"listeners": None}, {"pulled": 2}])
def test_what_may_be_the_clients_is_not_the_brokers(differs: Row) -> None:
    waits = [seen(s, **({"memory_offset": 5, "pulled": 12} | differs)) for s in (0, 40, 80)]
    other = seen(90, memory_offset=9, pulled=0.1) | {"consumer_group": "g2"}
    assert stalled(*waits, other, ends=[(0, 9)]) == [None] * 4


def test_a_dropped_queue_is_not_held() -> None:
    assert judged(seen(0, 1, 7, 7, dropped=True)) == []
    assert judged() == []


LINE = QUEUE | {"client_id": "c1", "consumer_group": "g", "flow_control": "count", "threshold": 1000}
LINE |= {"min_offset": 30, "max_offset": 1030, "cached_msgs": 1001, "cached_mib": 3, "source": "client_log"}
SIZE_LINE = {"flow_control": "size", "threshold": 100}
SPAN_LINE = {"flow_control": "span", "threshold": None, "cached_msgs": None, "cached_mib": None}


def logged(*differs: Row) -> list[Row]:
    return logged_flow(rows("silver.flow_control", LINE, differs), 60).rows(named=True)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({}, "agree"),
        ({"cached_msgs": 1000}, "differ"),
        (SIZE_LINE | {"cached_mib": 101}, "agree"),
        (SIZE_LINE | {"cached_mib": 100}, "differ"),
        (SPAN_LINE, "undetermined"),
    ],
)
def test_a_line_of_a_log_has_the_numbers_that_decided(line: Row, expected: str) -> None:
    (row,) = logged({"ts": at(0)} | line)
    assert (row["judgement"], row["source"], row["head_offset"]) == (expected, "client_log", 30)
    assert tuple(row) == COLUMNS


def test_lines_with_one_smallest_offset_show_a_message_that_is_not_finished() -> None:
    found = logged({"ts": at(0)}, {"ts": at(50)}, {"ts": at(100)}, {"ts": at(150), "min_offset": 31})
    assert [row["stalled_by"] for row in found] == ["listener"] * 3 + [None]
    assert found[2]["stalled_since_ts"] == at(0)
    assert [row["stalled_by"] for row in logged({"ts": at(0)}, {"ts": at(50)})] == [None, None]
    other = logged({"ts": at(0)}, {"ts": at(100), "queue_id": 1})
    assert [row["stalled_by"] for row in other] == [None, None]


@pytest.mark.parametrize("seed", range(20))
def test_a_cache_is_counted_as_by_core(seed: int) -> None:
    """A random cache of an orderly or a concurrent client: its messages, its span, and what it has not finished."""
    chance, cache = random.Random(seed), ProcessQueue()
    offsets = sorted(chance.sample(range(chance.choice([1500, 3000])), chance.randint(10, 1400)))
    cache.put_message([PulledMessage(offset, 1) for offset in offsets])
    is_orderly = chance.random() < 0.5
    if is_orderly:
        cache.take_messages(chance.randint(1, 5))
    waiting, taken = cache.tree(), cache.consuming_tree()
    answer = seen(0, len(waiting), waiting[0], waiting[-1], taken_msgs=len(taken), taken_first=min(taken, default=None))
    row = judged(answer | {"properties": ORDERLY if is_orderly else SETTINGS})[0]
    assert (row["cached_msgs"], row["head_offset"]) == (cache.msg_count, offsets[0])
    assert row["flow_control"] == flow_control(cache.msg_count, 0, cache.max_span(), is_orderly, 1000, 100, 2000)


def test_one_answer_is_judged_as_mqadmin_judges_it() -> None:
    one = seen(100, 5, 0, 4, last_consume_ts=at(30))
    assert [(row["stalled_by"], row["stalled_since_ts"]) for row in judged(one)] == [("listener", at(30))]
    empty, lately = seen(100, last_consume_ts=at(30)), seen(100, 5, 0, 4, last_consume_ts=at(41))
    orderly = seen(100, 5, 0, 4, last_consume_ts=at(30), properties=ORDERLY)
    for other in (empty, lately, orderly):
        assert [row["stalled_by"] for row in judged(other)] == [None]
    # An idle queue that just got messages: several answers show that the listener works.
    assert [row["stalled_by"] for row in judged(seen(80, last_consume_ts=at(0)), one)] == [None, None]
