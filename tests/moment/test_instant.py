"""The instants that a user names."""

from __future__ import annotations

import datetime as dt

import pytest

from made_warehouse import made_warehouse
from mqreplay.answers.findings import instant, last_recorded
from mqreplay.moment.instant import Recorded, recorded
from mqreplay.words.errors import InputError

FIRST = dt.datetime(2026, 11, 20, 22, 0, tzinfo=dt.UTC)
LAST = dt.datetime(2026, 11, 21, 3, 0, tzinfo=dt.UTC)


@pytest.fixture
def night() -> Recorded:
    return Recorded(None, "c", FIRST, LAST)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("02:51:30", "2026-11-21T02:51:30"),
        ("2:51", "2026-11-21T02:51:00"),
        ("23:10", "2026-11-20T23:10:00"),  # the last time that it was ten past eleven
        ("02:51:30.250", "2026-11-21T02:51:30.250000"),
        ("2026-11-20T22:30", "2026-11-20T22:30:00"),
        ("2026-11-21T10:51:30+08:00", "2026-11-21T02:51:30"),
    ],
)
def test_a_time_without_a_day_is_the_last_one(night, text, found):
    assert night.instant(text, "TIME") == dt.datetime.fromisoformat(found).replace(tzinfo=dt.UTC)


@pytest.mark.parametrize("text", ["02:50", "2:50:00", "2026-11-21T02:50", "2026-11-21 02:50:00Z"])
def test_findings_take_times_alike(text, tmp_path):
    warehouse = made_warehouse(tmp_path, files("a", "b"))
    expected = dt.datetime(2026, 11, 21, 2, 50, tzinfo=dt.UTC)
    assert instant(text, "--since", last_recorded(warehouse)) == expected
    assert instant(text, "--since", last_recorded(warehouse, ["b*"])) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("04:00", "outside of the recording of c, which goes from 2026-11-20 22:00:00 to 2026-11-21 03:00:00 UTC"),
        ("2026-11-21T04:00", "outside of the recording"),
        ("25:00", "no time of day"),
        ("yesterday", "no instant"),
    ],
)
def test_other_instants_are_refused(night, text, says):
    with pytest.raises(InputError, match=says):
        night.instant(text, "TIME")


def files(*clusters: str) -> dict:
    row = {"recording": "r", "path": "p", "kind": "pulls", "status": "read", "first_ts": FIRST, "last_ts": LAST}
    counts = {"rows_in": 0, "rows_out": 0, "rows_quarantined": 0, "rows_duplicate": 0}
    return {"bronze.source_file": [row | counts | {"cluster": name} for name in clusters]}


def test_the_cluster_is_named_where_there_are_several(tmp_path):
    warehouse = made_warehouse(tmp_path, files("a", "b"))
    with pytest.raises(InputError, match="give --cluster: a, b"):
        recorded(warehouse, None)
    with pytest.raises(InputError, match="has no cluster z; it has a, b"):
        recorded(warehouse, "z")
    assert recorded(warehouse, "b").cluster == "b"


def test_a_warehouse_without_a_recording_is_refused(tmp_path):
    with pytest.raises(InputError, match="run `mqreplay nightly` first"):
        recorded(made_warehouse(tmp_path, {}), None)
