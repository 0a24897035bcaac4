"""The ends of queues at an instant: a plug-in of the store may state another end of its own."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from made_warehouse import made_warehouse
from mqreplay.moment.instant import Recorded
from mqreplay.moment.offsets import ends_at

AT = dt.datetime(2026, 11, 20, 2, 30, tzinfo=dt.UTC)
PULL = {"topic": "t", "broker_name": "b", "broker_id": 0, "day": AT.date(), "min_offset": 0, "max_offset": 50}
PULL |= {"client_id": "c1", "consumer_group": "g", "request_ts": AT - dt.timedelta(seconds=9), "response_code": 0}
BROKER = {"broker_name": "b", "broker_id": 0, "ts": AT - dt.timedelta(minutes=9)}


def test_a_late_answer_is_as_old_as_its_request(tmp_path: Path) -> None:
    """A pull of 9 s ago and a poll of 5 s ago are answered now: the higher end is the newer one."""
    stated = {"broker_name": "b", "topic": "t", "min_offset": 0}
    polled = {"ts": AT - dt.timedelta(seconds=5), "broker_name": "b", "broker_id": 0, "topic": "t", "day": AT.date()}
    ends = [stated | {"queue_id": n, "max_offset": end} for n, end in ((0, 70), (1, 40))]
    late = [PULL | {"queue_id": n, "queue_offset": 50, "response_ts": AT, "record_id": f"r{n}"} for n in (0, 1)]
    tables = {"silver.pull": late, "silver.broker": [], "silver.topic_stats": [polled | {"offsets": ends}]}
    recorded = Recorded(made_warehouse(tmp_path, tables), "c", AT - dt.timedelta(hours=1), AT)
    assert dict(ends_at(recorded, AT).select("queue_id", "end_offset").rows()) == {0: 70, 1: 50}


@pytest.mark.parametrize(("plug_in", "ends"), [("", {0: 50, 1: 50}), ("a.TieredMessageStore", {1: 50})])
def test_a_cold_read_states_no_end(tmp_path: Path, plug_in: str, ends: dict[int, int]) -> None:
    cold, last = ({"queue_id": n, "queue_offset": asked, "response_ts": AT} for n, asked in ((0, 20), (1, 50)))
    tables = {
        "silver.pull": [PULL | cold | {"record_id": "r0"}, PULL | last | {"record_id": "r1"}],
        "silver.broker": [BROKER | {"properties": {"messageStorePlugIn": plug_in}}],
        "silver.topic_stats": [],
    }
    recorded = Recorded(made_warehouse(tmp_path, tables), "c", AT - dt.timedelta(hours=1), AT)
    found = ends_at(recorded, AT)
    assert dict(found.select("queue_id", "end_offset").rows()) == ends


def test_a_poll_of_a_group_states_ends_too(tmp_path: Path) -> None:
    """`mqadmin consumerProgress` has them; findings read them, so `mqreplay at` does."""
    polled = {"ts": AT - dt.timedelta(seconds=5), "broker_name": "b", "broker_id": 0, "consumer_group": "g"}
    offsets = [{"broker_name": "b", "topic": "t", "queue_id": 3, "broker_offset": 70, "consumer_offset": 60}]
    tables = {"silver.consume_stats": [polled | {"day": AT.date(), "record_id": "r", "offsets": offsets}]}
    recorded = Recorded(made_warehouse(tmp_path, tables), "c", AT - dt.timedelta(hours=1), AT)
    assert ends_at(recorded, AT).select("queue_id", "end_offset").rows() == [(3, 70)]
