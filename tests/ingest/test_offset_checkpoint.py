"""Offsets at the start of a day do not depend on the stored days, and earlier days are not read again."""

from __future__ import annotations

import datetime as dt
from random import Random

import pytest

from mqreplay.ingest.offset_checkpoint import CHAIN, CHECKPOINT, OFFSET_CHANGES, OffsetCheckpoint
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse

FIRST = dt.date(2026, 11, 20)
DAYS = [FIRST + dt.timedelta(days=n) for n in range(5)]
HOURS = 24 * len(DAYS)


def instant(hour: float) -> dt.datetime:
    return dt.datetime.combine(FIRST, dt.time(), dt.UTC) + dt.timedelta(hours=hour)


def changes(seed: int) -> list[dict[str, object]]:
    """Of five queues; some stand still for days, some are gone and come again."""
    random, rows = Random(seed), []
    for queue in range(5):
        source, offset, before = f"broker-{queue % 2}-0", None, None
        for hour in sorted(random.sample(range(HOURS), random.choice((1, 3, 40)))):
            new = None if offset is not None and random.random() < 0.2 else random.randrange(10**6)
            if new != offset:
                told = {"previous_offset": offset, "new_offset": new, "from_ts": before, "to_ts": instant(hour)}
                rows.append({"source_name": source, "queue_id": queue, "day": instant(hour).date()} | told)
            offset, before = new, instant(hour)
    return rows


@pytest.fixture
def lake(tmp_path):
    """A warehouse of changes, and they themselves."""
    warehouse = Warehouse(str(tmp_path))
    same = {"cluster": "c", "broker_name": "b", "topic": "T", "consumer_group": "g", "source_digest": "0" * 32}
    told = changes(1)
    columns = [c.name for c in warehouse.contracts[OFFSET_CHANGES].columns]
    other = {**told[0], **same, "cluster": "other"}
    rows = [tuple((row | same).get(c) for c in columns) for row in told] + [tuple(other.get(c) for c in columns)]
    for day in DAYS:  # each night has files of its own
        at = columns.index("day")
        warehouse.replace_rows(OFFSET_CHANGES, [row for row in rows if row[at] == day], None)
    return warehouse, told


def ends(told: list[dict[str, object]], day: dt.date) -> set[tuple[object, ...]]:
    """Of each queue the last change before the day."""
    last = {row["queue_id"]: row for row in sorted(told, key=lambda r: r["to_ts"]) if row["day"] < day}
    return {(q, row["previous_offset"], row["new_offset"], row["from_ts"], row["to_ts"]) for q, row in last.items()}


def said(standing: OffsetCheckpoint, day: dt.date) -> set[tuple[object, ...]]:
    rows = standing.last_before(day).select("queue_id", "previous_offset", "new_offset", "from_ts", "to_ts").collect()
    assert len(rows) == rows["queue_id"].n_unique()
    return set(rows.rows())


def test_the_last_changes_are_the_same_whatever_is_kept(lake):
    warehouse, told = lake
    standing = OffsetCheckpoint(warehouse, "c")
    wanted = [ends(told, day) for day in DAYS]
    assert [said(standing, day) for day in DAYS] == wanted
    for day in (DAYS[2], DAYS[3]):
        standing.keep(day)
        assert [said(standing, day) for day in DAYS] == wanted
        assert [said(OffsetCheckpoint(warehouse, "c"), day) for day in DAYS] == wanted
    kept = warehouse.read(CHECKPOINT, RowFilter("c", frozenset([DAYS[3]]))).collect()
    assert kept.height == kept.select(CHAIN).n_unique() > 0
    assert warehouse.read(CHECKPOINT).filter(cluster="other").collect().is_empty()


def test_rows_from_a_day_on_are_all_later_changes_and_the_last_ones_before(lake):
    warehouse, told = lake
    standing = OffsetCheckpoint(warehouse, "c")
    assert standing.from_day(DAYS[3]).collect().height == len(told), "nothing is kept"
    standing.keep(DAYS[2])
    found = standing.from_day(DAYS[3]).collect()
    assert found.columns == [c.name for c in warehouse.contracts[OFFSET_CHANGES].columns]
    later = {(row["queue_id"], row["to_ts"]) for row in told if row["day"] >= DAYS[2]}
    before = {(queue, to_ts) for queue, *_, to_ts in ends(told, DAYS[2])}
    assert set(found.select("queue_id", "to_ts").rows()) == later | before
    assert found.height == len(later) + len(before)


def test_days_before_one_that_is_kept_are_not_asked(lake):
    warehouse, told = lake
    for day in (DAYS[2], DAYS[3]):
        OffsetCheckpoint(warehouse, "c").keep(day)
    warehouse.replace_rows(OFFSET_CHANGES, [], RowFilter("c", between=(dt.date.min, DAYS[1])))
    standing = OffsetCheckpoint(warehouse, "c")
    assert [said(standing, day) for day in DAYS[2:]] == [ends(told, day) for day in DAYS[2:]]


def test_what_is_about_to_change_is_forgotten_and_nothing_else(lake):
    warehouse, _ = lake
    standing = OffsetCheckpoint(warehouse, "c")
    for day in DAYS[1:]:
        standing.keep(day)
    size = warehouse.read(CHECKPOINT).collect().height
    standing.keep(DAYS[1])
    assert warehouse.read(CHECKPOINT).collect().height == size, "kept twice"
    standing.forget(DAYS[1], DAYS[3])
    days = set(warehouse.read(CHECKPOINT).collect()["day"])
    assert days <= {DAYS[1], DAYS[4]}
    assert DAYS[4] in days
    standing.keep(DAYS[2])
    assert DAYS[2] in set(warehouse.read(CHECKPOINT).collect()["day"])


def test_before_the_first_day_nothing_stood(lake):
    warehouse, _ = lake
    OffsetCheckpoint(warehouse, "c").keep(FIRST)
    assert not warehouse.exists(CHECKPOINT)
    assert OffsetCheckpoint(warehouse, "nobody").last_before(DAYS[4]).collect().is_empty()
