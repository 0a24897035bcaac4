"""Evidence of polls that stands in for other evidence."""

from __future__ import annotations

from mqreplay.evidence.members.polled_night import changes_of_groups
from silver_moments import at
from silver_rows import rows


def test_answers_show_offsets_as_copies_do() -> None:
    offset = {"topic": "t", "broker_name": "b", "queue_id": 0, "broker_offset": 9}
    answers = [
        {"ts": at(s), "consumer_group": group, "broker_id": broker, "offsets": [offset | {"consumer_offset": number}]}
        for s, group, broker, number in (
            *((0, "g", 0, 5), (60, "g", 0, 5), (120, "g", 0, 8), (180, "g", 0, -1)),
            *((0, "copied", 0, 5), (0, "of a slave", 1, 5)),
        )
    ]
    like = rows("silver.offset_change", {}, [])
    changes = changes_of_groups(rows("silver.consume_stats", {}, answers), {"copied"}, like)
    assert changes.select("consumer_group", "from_ts", "to_ts", "previous_offset", "new_offset").rows() == [
        ("g", None, at(0), None, 5),
        ("g", at(0), at(60), 5, 5),
        ("g", at(60), at(120), 5, 8),
    ]
    assert changes.schema == like.schema
