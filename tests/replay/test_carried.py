"""What stood before the rows of a replay: as if its recording had begun there."""

from __future__ import annotations

from mqreplay.replay.carried import carried_configs, carried_offsets
from silver_moments import at

KEY = {"source_name": "b-0", "broker_name": "b", "broker_id": 0, "topic": "T", "consumer_group": "g"}
COPY = {"source_name": "b-0", "broker_name": "b", "broker_id": 0, "file_name": "consumerOffset.json"}
COPY |= {"entries": 1, "changed": 0}


def change(queue: int, seconds: int, new: int | None, old: int | None = None, **differs: object) -> dict:
    told = {"queue_id": queue, "to_ts": at(seconds), "new_offset": new, "previous_offset": old}
    return told | {"from_ts": None if old is None else at(seconds - 5)} | differs


def test_offsets_that_stood_are_shown_by_the_first_copy_of_their_file(rows):
    earlier = [
        change(0, 10, 5),
        change(0, 20, 7, 5),  # stood still
        change(1, 10, 3),  # moves later on
        change(2, 10, 3),  # moved at once
        change(3, 10, 3),
        change(3, 20, None, 3),  # was gone
        change(4, 10, 3, source_name="c-0", broker_name="c"),  # of a file that is copied no more
        change(5, 10, 3, source_name="client-x", broker_id=None, client_id="x"),
    ]
    later = [change(1, 110, 4, 3), change(2, 100, 4, 3)]
    copies = [{"ts": at(s), "source_digest": f"d{s}"} for s in (105, 100)]
    changes = rows("silver.offset_change", KEY, later)
    found = carried_offsets(rows("silver.offset_change", KEY, earlier), changes, rows("silver.snapshot", COPY, copies))
    assert found.schema.simpleString() == changes.schema.simpleString()
    told = {r.queue_id: (r.previous_offset, r.new_offset, r.from_ts, r.to_ts, r.source_digest) for r in found.collect()}
    first = at(100).replace(tzinfo=None)
    assert told == {0: (None, 7, None, first, "d100"), 1: (None, 3, None, first, "d100")}


def test_without_a_copy_nothing_is_known_to_stand(rows):
    changes = rows("silver.offset_change", KEY, [])
    earlier = rows("silver.offset_change", KEY, [change(0, 10, 5)])
    backup = rows("silver.snapshot", COPY, [{"ts": at(100), "file_name": "topics.json"}])
    assert carried_offsets(earlier, changes, backup).collect() == []


def test_settings_that_were_not_removed_still_hold(rows):
    base = {"source_name": "b-0", "broker_name": "b", "broker_id": 0}
    told = [
        {"topic": "T", "ts": at(10), "change": "first", "read_queue_nums": 4},
        {"topic": "T", "ts": at(20), "change": "changed", "read_queue_nums": 8},
        {"topic": "gone", "ts": at(10), "change": "first"},
        {"topic": "gone", "ts": at(20), "change": "removed"},
    ]
    earlier = rows("silver.topic_config", base, told)
    found = carried_configs(earlier, "topic")
    assert found.schema.simpleString() == earlier.schema.simpleString()
    assert [(r.topic, r.read_queue_nums) for r in found.collect()] == [("T", 8)]
