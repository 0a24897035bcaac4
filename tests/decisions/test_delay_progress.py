"""Delayed messages of a master: whether those that were due are delivered."""

from __future__ import annotations

from typing import Any

import polars as pl

from mqreplay.core.delay_level import SCHEDULE_TOPIC
from mqreplay.decisions.delay_progress import (
    AFTER_END,
    DELIVERED,
    NO_COPY,
    NO_ENDS,
    NO_SETTINGS,
    NOT_CONFIRMED,
    NOT_DELIVERED,
    STARTED,
    delay_progress,
    stored_rows,
)
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
MASTER = {"broker_name": "b", "broker_id": 0}
COPY = MASTER | {"source_name": "b-0", "delay_level": 3, "change": "changed"}
FILE = MASTER | {"source_name": "b-0", "file_name": "delayOffset.json"}
RECORDER = [{"ts": at(-60), "kind": "start"}]
LEVEL_3 = 10  # s


def ends(s: float, end: int, level: int = 3) -> Row:
    """A reading of the end of a level's queue."""
    return {"ts": at(s), "offsets": [{"queue_id": level - 1, "min_offset": 0, "max_offset": end}]}


def judged(
    readings: list[Row],
    copies: list[tuple[float, int]],
    *,
    properties: dict[str, str] | None = None,
    described: list[Row] | None = None,
    events: list[Row] | None = None,
    boot: float = -9999,
) -> pl.DataFrame:
    """Judge readings with copies of level 3: second and offset."""
    settings = {"brokerName": "b"} | (properties or {})
    return delay_progress(
        rows("silver.topic_stats", MASTER | {"topic": SCHEDULE_TOPIC}, readings),
        rows("silver.delay_offset", COPY, [{"ts": at(s), "offset": offset} for s, offset in copies]),
        rows("silver.snapshot", FILE, [{"ts": at(s)} for s, _ in copies]),
        rows("silver.broker", MASTER, described or [{"ts": at(-99), "properties": settings}]),
        rows("silver.broker_runtime", MASTER, [{"ts": at(0), "boot_ts": at(boot)}]),
        rows("silver.recorder_event", {}, RECORDER if events is None else events),
        60,
    )


def verdicts(*args: Any, **more: Any) -> list[tuple[Any, int, str, str]]:
    return judged(*args, **more).select("ts", "due_offset", "judgement", "reason").rows()


def test_what_is_due_is_what_was_there_before_the_delay() -> None:
    readings = [ends(s, 10 + s) for s in (0, 60, 120, 180)]
    # 120: those of 0 s are due, with 10 s and 60 s for the broker.
    found = verdicts(readings, [(1, 5), (110, 10), (170, 69)])
    assert found == [(at(120), 10, "agree", DELIVERED), (at(180), 70, "undetermined", NOT_CONFIRMED)]
    assert verdicts(readings, [(1, 5), (110, 10), (170, 70)])[1][2:] == ("agree", DELIVERED)
    at_once = [(1, 5), (59, 70), (119, 130), (179, 190)]
    assert stored_rows(judged(readings, at_once)).is_empty(), "readings that agree are only counted"


def test_a_later_copy_that_still_lacks_them_is_certain_without_a_recorder() -> None:
    readings = [ends(0, 10), ends(120, 10)]
    assert verdicts(readings, [(1, 5), (400, 9)], events=[]) == [(at(120), 10, "differ", NOT_DELIVERED)]
    assert verdicts(readings, [(1, 5), (400, 10)], events=[])[0][2:] == ("undetermined", NOT_CONFIRMED)
    assert verdicts(readings, [(1, 5)], events=[])[0][2:] == ("undetermined", NOT_CONFIRMED)


def test_polls_without_a_new_copy_confirm_the_last_one() -> None:
    readings = [ends(s, 10) for s in (0, 120, 180, 240)]
    found = verdicts(readings, [(1, 5)])
    # After the last reading nothing shows that the recorder asked again.
    assert [row[2:] for row in found] == [*[("differ", NOT_DELIVERED)] * 2, ("undetermined", NOT_CONFIRMED)]
    missed = {"ts": at(200), "kind": "skipped", "broker_name": "b", "from_ts": at(185), "to_ts": at(200)}
    asked = [*RECORDER, missed | {"request": "GET_ALL_DELAY_OFFSET"}]
    assert {row[2:] for row in verdicts(readings, [(1, 5)], events=asked)} == {("undetermined", NOT_CONFIRMED)}
    for other in ({"request": "GET_ALL_TOPIC_CONFIG"}, {"broker_name": "c", "request": "GET_ALL_DELAY_OFFSET"}):
        assert verdicts(readings, [(1, 5)], events=[*RECORDER, missed | other]) == found


def test_a_broker_that_has_just_started_may_be_late() -> None:
    readings = [ends(s, 10) for s in (0, 120, 180, 240)]
    found = verdicts(readings, [(1, 5)], boot=100)
    assert [row[3] for row in found] == [STARTED, NOT_DELIVERED, NOT_CONFIRMED]


def test_the_delay_is_that_of_the_settings_at_the_time() -> None:
    readings = [ends(s, 10) for s in (0, 120, 180, 240)]
    longer = {"messageDelayLevel": "1s 5s 2m"}
    assert [row[0] for row in verdicts(readings, [(1, 10)], properties=longer)] == [at(180), at(240)]
    # A level that the settings lack is due after a second, and never delivered.
    found = judged(readings, [(1, 5)], properties={"messageDelayLevel": "1s 5s"})
    assert found.select("delay_ms", "judgement").rows()[:2] == [(1000, "differ")] * 2
    changed = [{"ts": at(-99), "properties": longer}, {"ts": at(150), "properties": {"brokerName": "b"}}]
    assert judged(readings, [(1, 10)], described=changed)["delay_ms"].to_list() == [10_000, 10_000]


def test_what_is_not_known_is_undetermined() -> None:
    readings = [ends(0, 10), ends(120, 10)]
    other = [{"broker_name": "other", "ts": at(-99), "properties": {"brokerName": "other"}}]
    assert {row[3] for row in verdicts(readings, [(1, 5)], described=other)} == {NO_SETTINGS}
    assert [row[3] for row in verdicts(readings, [])] == [NO_COPY]
    assert verdicts(readings, [(400, 5)])[0][2] == "differ", "offsets only grow"
    (row,) = judged([], [(1, 5), (60, 9)]).rows(named=True)
    assert (row["ts"], row["queue_id"], row["delivered_offset"], row["reason"]) == (at(60), 2, 9, NO_ENDS)
    assert (row["judgement"], row["record_id"]) == ("undetermined", "d")


def test_a_real_broker_that_was_restarted_without_the_level() -> None:
    # 5.3.3: level 4 (30 s) was no longer in messageDelayLevel after a restart at 7 to 19 s.
    level_4 = [ends(s, end, level=4) for s, end in ((0, 126), (60, 154), (120, 154), (180, 154), (240, 154))]
    copies = [COPY | {"ts": at(31), "delay_level": 4, "offset": 54}]
    found = delay_progress(
        rows("silver.topic_stats", MASTER | {"topic": SCHEDULE_TOPIC}, level_4),
        rows("silver.delay_offset", {}, copies),
        rows("silver.snapshot", FILE, [{"ts": at(-42)}, {"ts": at(31)}]),
        rows("silver.broker", MASTER, [{"ts": at(-42), "properties": {"brokerName": "b"}}]),
        rows("silver.broker_runtime", MASTER, [{"ts": at(20), "boot_ts": at(16)}]),
        rows("silver.recorder_event", {}, RECORDER),
        60,
    )
    assert found.select("ts", "due_offset", "delivered_offset", "judgement").rows() == [
        (at(120), 126, 54, "differ"),
        (at(180), 154, 54, "differ"),
        (at(240), 154, 54, "undetermined"),
    ]


def test_messages_that_the_broker_deleted_are_not_waited_for() -> None:
    deleted = [{"queue_id": 2, "min_offset": 10, "max_offset": 10}]
    readings = [ends(s, 10) | {"offsets": deleted} for s in (0, 120, 180)]
    assert {row[2] for row in verdicts(readings, [(1, 5), (400, 6)])} == {"agree"}


def test_a_level_without_an_entry_has_delivered_nothing() -> None:
    readings = [ends(s, 4, level=5) for s in (0, 240, 300, 360)]
    found = verdicts(readings, [(1, 5)])
    assert [row[1:3] for row in found] == [(4, "differ"), (4, "differ"), (4, "undetermined")]


def test_slaves_and_other_topics_do_not_count() -> None:
    readings = [ends(0, 10) | {"broker_id": 1}, ends(120, 10) | {"topic": "t"}, ends(180, 0)]
    assert judged(readings, []).is_empty()


def test_an_offset_after_the_end_of_its_queue() -> None:
    assert [(row[2], row[3]) for row in verdicts([ends(0, 74)], [(-5, 77)])] == [("differ", AFTER_END)]
    assert verdicts([ends(0, 74)], [(5, 77)]) == [], "the queue may have grown since"


def test_the_levels_that_a_master_states() -> None:
    polls = [{"ts": at(s), "runtime": {"scheduleMessageOffset_3": text}} for s, text in ((0, "5,12"), (80, "5,30"))]
    runtime = rows("silver.broker_runtime", MASTER, polls)
    empty = [rows(f"silver.{name}", {}, []) for name in ("topic_stats", "delay_offset", "snapshot", "broker")]
    judged = delay_progress(*empty, runtime, rows("silver.recorder_event", {}, []), 60)
    assert judged.select("ts", "due_offset", "delivered_offset", "judgement", "reason").rows() == [
        (at(80), 12, 5, "differ", NOT_DELIVERED)
    ]
