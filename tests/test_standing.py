"""What stood when a day began is the same whichever days are kept, and those before it are not asked again."""

from __future__ import annotations

import datetime as dt
from random import Random

import pytest

from mqreplay.lake.warehouse import Warehouse
from mqreplay.standing import CHAIN, CHANGES, TABLE, Standing

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


@pytest.fixture(params=[1])
def lake(spark, tmp_path, request):
    """A warehouse of changes, and they themselves."""
    warehouse = Warehouse(spark, str(tmp_path))
    same = {"cluster": "c", "broker_name": "b", "topic": "T", "consumer_group": "g", "source_digest": "0" * 32}
    told = changes(request.param)
    columns = [c.name for c in warehouse.contracts[CHANGES].columns]
    other = {**told[0], **same, "cluster": "other"}
    rows = [tuple((row | same).get(c) for c in columns) for row in told] + [tuple(other.get(c) for c in columns)]
    warehouse.replace(CHANGES, warehouse.frame(CHANGES, rows), "true")
    return warehouse, told


def stood(told: list[dict[str, object]], at: dt.datetime) -> dict[int, int]:
    """The offset of each queue that had one."""
    known: dict[int, int] = {}
    for row in sorted((r for r in told if r["to_ts"] < at), key=lambda r: r["to_ts"]):
        known.pop(row["queue_id"], None)
        if row["new_offset"] is not None:
            known[row["queue_id"]] = row["new_offset"]
    return known


def said(standing: Standing, at: dt.datetime) -> dict[int, int]:
    last: dict[int, tuple] = {}
    for row in standing.at(at).collect():
        last[row.queue_id] = max(last.get(row.queue_id, ()), (str(row.to_ts or ""), row.new_offset))
    return {queue: offset for queue, (_, offset) in last.items() if offset is not None}


def test_any_instant_is_known_whatever_is_kept(lake):
    warehouse, told = lake
    standing = Standing(warehouse, "c")
    hours = (24, 47.9, 71, 95.5)
    assert [said(standing, instant(h)) for h in hours] == [stood(told, instant(h)) for h in hours]
    without = [sorted(map(str, standing.last_before(day).collect())) for day in DAYS]
    for day in (DAYS[2], DAYS[3]):
        standing.keep(day)
        assert [said(Standing(warehouse, "c"), instant(h)) for h in hours] == [stood(told, instant(h)) for h in hours]
    assert [sorted(map(str, Standing(warehouse, "c").last_before(day).collect())) for day in DAYS] == without
    kept = warehouse.read(TABLE).where(f"day = '{DAYS[3]}'").collect()
    assert len(kept) == len({tuple(row[name] for name in CHAIN) for row in kept}) > 0


def test_days_before_one_that_is_kept_are_not_asked(lake):
    warehouse, told = lake
    for day in (DAYS[2], DAYS[3]):
        Standing(warehouse, "c").keep(day)
    warehouse.replace(CHANGES, warehouse.frame(CHANGES, []), f"day < '{DAYS[2]}'")
    standing = Standing(warehouse, "c")
    hours = (48, 71, 95.5, 100)
    assert [said(standing, instant(h)) for h in hours] == [stood(told, instant(h)) for h in hours]
    lookback = Standing(warehouse, "c").at(instant(71)).select("queue_id", "to_ts").collect()
    assert len(lookback) == len({row.queue_id for row in lookback}), "the day before is undone, not read"


def test_what_is_about_to_change_is_forgotten_and_nothing_else(lake):
    warehouse, _ = lake
    standing = Standing(warehouse, "c")
    for day in DAYS[1:]:
        standing.keep(day)
    size = warehouse.read(TABLE).count()
    standing.keep(DAYS[1])
    assert warehouse.read(TABLE).count() == size, "kept twice"
    standing.forget(DAYS[1], DAYS[3])
    days = {row.day for row in warehouse.read(TABLE).select("day").distinct().collect()}
    assert days <= {DAYS[1], DAYS[4]}
    assert DAYS[4] in days


def test_before_the_first_day_nothing_stood(lake):
    warehouse, _ = lake
    Standing(warehouse, "c").keep(FIRST)
    assert not warehouse.exists(TABLE)
    assert Standing(warehouse, "nobody").last_before(DAYS[4]).collect() == []
