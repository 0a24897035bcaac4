"""State from before the rows of a replay: as if its recording had begun there."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from mqreplay.evidence.offsets.carried import carried_configs, carried_offsets
from silver_moments import at
from silver_rows import rows

KEY = {"source_name": "b-0", "broker_name": "b", "broker_id": 0, "topic": "T", "consumer_group": "g"}
COPY = {"source_name": "b-0", "broker_name": "b", "broker_id": 0, "file_name": "consumerOffset.json"}
COPY |= {"entries": 1, "changed": 0}
SECOND_FILE = {"source_name": "c-0", "broker_name": "c"}


def change(queue: int, seconds: int, new: int | None, old: int | None = None, **differs: object) -> dict:
    changed = {"queue_id": queue, "to_ts": at(seconds), "new_offset": new, "previous_offset": old}
    return changed | {"from_ts": None if old is None else at(seconds - 5)} | differs


EARLIER = [
    change(0, 20, 7, 5),  # no change after it
    change(0, 10, 5),
    change(1, 10, 3),  # changed later on
    change(2, 10, 3),  # changed at once
    change(3, 10, 3),
    change(3, 20, None, 3),  # was gone
    change(4, 10, 3, **SECOND_FILE),  # of a file that is copied no more
    change(5, 10, 3, broker_id=None, client_id="x"),
]
LATER = [change(1, 110, 4, 3), change(2, 100, 4, 3)]
COPIES = [{"ts": at(s), "source_digest": f"d{s}"} for s in (105, 100)]
COPIES += [{"ts": at(90), "file_name": "topics.json"}]


@pytest.fixture
def frames():
    earlier, changes = (rows("silver.offset_change", KEY, listed) for listed in (EARLIER, LATER))
    return earlier, changes, rows("silver.snapshot", COPY, COPIES)


def test_offsets_from_before_are_shown_by_the_first_copy_of_their_file(frames):
    carried = carried_offsets(*frames)
    assert carried.schema == frames[1].schema
    columns = ["queue_id", "previous_offset", "new_offset", "from_ts", "to_ts", "source_digest", "day"]
    first = at(100)
    assert sorted(carried.select(columns).rows()) == [
        (0, None, 7, None, first, "d100", first.date()),
        (1, None, 3, None, first, "d100", first.date()),
    ]


def test_each_file_has_a_first_copy_of_its_own(frames):
    earlier, changes, snapshot = frames
    # Where two backups were copied at once, the digest that sorts first counts.
    also = [{"ts": at(200), "file_name": "consumerOffset.json.bak", "source_digest": d} for d in ("e2", "e1")]
    snapshot = pl.concat([snapshot, rows("silver.snapshot", COPY | SECOND_FILE, also)])
    carried = carried_offsets(earlier, changes, snapshot).sort("queue_id")
    assert carried.select("queue_id", "to_ts", "source_digest").rows()[-1] == (4, at(200), "e1")


def test_shards_together_are_the_whole(frames):
    earlier, changes, snapshot = frames
    parts = [
        carried_offsets(*(f.filter(pl.col("queue_id") % 3 == i) for f in (earlier, changes)), snapshot)
        for i in range(3)
    ]
    assert_frame_equal(pl.concat(parts), carried_offsets(earlier, changes, snapshot), check_row_order=False)


def test_without_a_copy_nothing_is_carried(frames):
    earlier, changes, snapshot = frames
    for other in (snapshot.filter(pl.col("file_name") == "topics.json"), snapshot.clear()):
        carried = carried_offsets(earlier, changes, other)
        assert carried.is_empty()
        assert carried.schema == changes.schema
    assert carried_offsets(earlier.clear(), changes.clear(), snapshot).schema == changes.schema


def test_settings_that_were_not_removed_still_hold():
    base = {"source_name": "b-0", "broker_name": "b", "broker_id": 0}
    configs = [
        {"topic": "T", "ts": at(20), "change": "changed", "read_queue_nums": 8},
        {"topic": "T", "ts": at(10), "change": "first", "read_queue_nums": 4},
        {"topic": "T", "ts": at(5), "change": "first", "read_queue_nums": 2, "source_name": "b-1"},
        {"topic": "gone", "ts": at(10), "change": "first"},
        {"topic": "gone", "ts": at(20), "change": "removed"},
    ]
    earlier = rows("silver.topic_config", base, configs)
    held = carried_configs(earlier, "topic")
    assert held.schema == earlier.schema
    expected = [("b-0", "T", 8), ("b-1", "T", 2)]
    assert sorted(held.select("source_name", "topic", "read_queue_nums").rows()) == expected
    assert carried_configs(earlier.clear(), "topic").schema == earlier.schema
