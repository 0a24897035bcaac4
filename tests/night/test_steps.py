"""The inputs of a day's replay: only its own files."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from mqreplay.lake.result_cache import ResultCache
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.steps import (
    Span,
    Steps,
    days_of,
    digests,
    empty_clusters,
    gapless_starts,
    kinds_of,
    reach_of,
    recorded_until,
    spans,
    steps,
    sure_starts,
)
from quality_rows import filled

FIRST, SECOND = dt.date(2026, 11, 21), dt.date(2026, 11, 22)


def at(day: dt.date, hour: int) -> dt.datetime:
    return dt.datetime.combine(day, dt.time(hour), dt.UTC)


def night(name: str, day: dt.date, hour: int = 12) -> list[Span]:
    """A recording of an hour, with a brokers.json, which has no instants."""
    told = Span(name, "pull_log", f"{name}-p", at(day, hour), at(day, hour))
    return [told, Span(name, "brokers", "the same", None, None)]


def test_a_night_that_is_added_changes_no_day_before() -> None:
    alone = digests(night("a", FIRST), "s", 60)
    both = digests(night("a", FIRST) + night("b", SECOND), "s", 60)
    assert sorted(both) == [FIRST, SECOND]
    assert both[FIRST] == alone[FIRST]


def test_a_day_rests_on_the_lookback_before_it() -> None:
    late, early = (digests(night("a", FIRST, hour) + night("b", SECOND), "s", 60) for hour in (23, 22))
    other = digests(night("c", FIRST, 23) + night("b", SECOND), "s", 60)
    assert late[SECOND] != early[SECOND]
    assert late[SECOND] != other[SECOND]


def test_what_has_no_instant_speaks_of_its_recording_and_of_later_days() -> None:
    both = night("a", FIRST) + night("b", SECOND)
    assert kinds_of(both, FIRST) == {"pull_log", "brokers"}
    later = [night("a", FIRST)[0], *night("b", SECOND)]
    assert kinds_of(later, FIRST) == {"pull_log"}
    assert digests(both, "s", 60)[SECOND] != digests(later, "s", 60)[SECOND]
    refused = [*night("a", FIRST), Span("b", "routes", "r", None, None)]
    assert kinds_of(refused, FIRST) == {"pull_log", "brokers", "routes"}, "nobody knows when that one was recorded"


def test_the_recordings_of_a_day_reach_as_far_as_they_tell() -> None:
    over = [
        Span("over", kind, kind, at(FIRST, 20), at(last, hour))
        for kind, last, hour in (("a", FIRST, 22), ("b", SECOND, 6))
    ]
    found = [*over, *night("b", SECOND, 9)]
    assert reach_of(found, FIRST) == (at(FIRST, 20), at(SECOND, 6))
    assert reach_of(found, SECOND) == (at(FIRST, 20), at(SECOND, 9))
    assert reach_of(night("a", FIRST) + night("b", SECOND), SECOND) == (at(SECOND, 12), at(SECOND, 12))


def test_a_day_of_which_nothing_is_told_parts_a_recording() -> None:
    """As where a client's clock was never set: what it says is of another stretch, and days between are none."""
    long_ago = dt.date(2001, 1, 1)
    found = [
        Span("a", "pull_log", "p", at(long_ago, 1), at(long_ago, 2)),
        *night("a", FIRST, 12),
        *night("a", SECOND, 3),
    ]
    assert days_of(found) == [long_ago, FIRST, SECOND]
    assert reach_of(found, FIRST) == (at(FIRST, 12), at(SECOND, 3))
    assert gapless_starts(found) == [at(long_ago, 1), at(FIRST, 12)]
    assert kinds_of(found, FIRST) == {"pull_log", "brokers"}


def test_a_clock_that_is_behind_does_not_make_a_recording_begin_earlier() -> None:
    behind = dt.timedelta(hours=2)
    found = night("a", FIRST, 12)
    assert sure_starts(found, dt.timedelta()) == {at(FIRST, 12): at(FIRST, 12)}
    assert sure_starts(found, behind) == {at(FIRST, 12): at(FIRST, 14)}
    own = Span("a", "broker_runtime", "r", at(FIRST, 13), at(FIRST, 15))
    assert sure_starts([*found, own], behind) == {at(FIRST, 12): at(FIRST, 13)}
    assert sure_starts([*found, own], dt.timedelta()) == {at(FIRST, 12): at(FIRST, 12)}
    both = [*found, own, *night("b", SECOND, 3)]
    assert sure_starts(both, behind) == {at(FIRST, 12): at(FIRST, 13), at(SECOND, 3): at(SECOND, 5)}


def test_the_recorder_tells_until_its_last_instant() -> None:
    own = [Span("a", kind, "r", at(FIRST, 1), at(FIRST, last)) for kind, last in (("topics", 3), ("broker_runtime", 5))]
    assert recorded_until([*own, *night("a", SECOND)]) == at(FIRST, 5)
    assert recorded_until(night("a", SECOND)) is None


FILES = "bronze.source_file"
TABLES = {"pull_log": ("silver.pull", "request_ts")}


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(str(tmp_path))


def put(warehouse: Warehouse, name: str, *rows: dict[str, Any]) -> None:
    warehouse.replace_rows(name, [filled(warehouse.contracts[name], {"cluster": "c"} | row) for row in rows], None)


def file(path: str, first: dt.datetime | None, last: dt.datetime | None = None, **differs: Any) -> dict[str, Any]:
    times = {"first_ts": first, "last_ts": last or first}
    told = {"recording": "r", "path": path, "kind": "pull_log", "status": "read", "sha256": path * 64, "rows_in": 3}
    return told | times | differs


def found(warehouse: Warehouse, lookback_minutes: int = 60) -> list[Span]:
    rows = spans("c", lookback_minutes, TABLES).read(warehouse)
    return sorted((Span(*row) for row in rows), key=str)


def test_files_that_cover_the_same_days_are_one_span(warehouse: Warehouse) -> None:
    assert found(warehouse) == []
    put(
        warehouse,
        FILES,
        file("a", at(FIRST, 1), at(FIRST, 2)),
        file("b", at(FIRST, 3)),
        file("c", at(FIRST, 23)),  # within the lookback before the next day
        file("d", None, kind="brokers"),
        file("e", None, kind="brokers", status="refused"),
        file("f", at(FIRST, 9), status="not_read"),
        file("g", at(FIRST, 9), cluster="other"),
        file("h", at(FIRST, 9), kind="topics"),
        file("i", at(FIRST, 22), at(SECOND, 1)),
    )
    made = {(s.kind, s.first_ts, s.last_ts, s.digest.split()[0]) for s in found(warehouse)}
    assert made == {
        ("pull_log", at(FIRST, 1), at(FIRST, 3), "2"),
        ("pull_log", at(FIRST, 23), at(FIRST, 23), "1"),
        ("pull_log", at(FIRST, 22), at(SECOND, 1), "1"),
        ("brokers", None, None, "2"),
        ("topics", at(FIRST, 9), at(FIRST, 9), "1"),
    }
    assert {span.first_ts.tzinfo for span in found(warehouse) if span.first_ts} == {dt.UTC}


def test_the_digest_of_a_span_rests_on_paths_and_contents_and_on_no_order(tmp_path: Path) -> None:
    def digest(*files: tuple[str, str]) -> str:
        warehouse = Warehouse(str(tmp_path / str(len(list(tmp_path.iterdir())))))
        for path, content in files:
            put(warehouse, FILES, file(path, at(FIRST, 1), sha256=content * 64))
        (span,) = found(warehouse)
        return span.digest

    # Kept in bronze.step: another digest would have all nights replayed.
    assert digest(("a", "1"), ("b", "2")) == "2 0b181b386cd82b48eed166920735b7cd"
    assert digest(("b", "2"), ("a", "1")) == digest(("a", "1"), ("b", "2"))
    others = [(("a", "2"), ("b", "1")), (("a", "1"), ("c", "2")), (("a", "1"), ("b", "3")), (("a", "1"),)]
    assert len({digest(*files) for files in [(("a", "1"), ("b", "2")), *others]}) == 5


def test_a_file_of_many_days_covers_those_of_its_rows(warehouse: Warehouse) -> None:
    long_ago = dt.date(2001, 1, 1)
    put(
        warehouse,
        FILES,
        file("a", at(long_ago, 1), at(SECOND, 3)),
        file("b", at(long_ago, 1), at(SECOND, 3), kind="topics"),  # rows of this kind have no table
    )
    for name, day, hour in (
        ("a", long_ago, 1),
        ("a", long_ago, 2),
        ("a", FIRST, 23),
        ("a", SECOND, 3),
        ("x", FIRST, 1),
    ):
        row = {"record_id": f"{name}{day}{hour}", "request_ts": at(day, hour), "day": day, "source_digest": name * 32}
        put(warehouse, "silver.pull", row)
    made = {(s.kind, s.digest, s.first_ts, s.last_ts) for s in found(warehouse) if s.kind == "pull_log"}
    assert made == {
        ("pull_log", "a" * 64, at(long_ago, 1), at(long_ago, 2)),
        ("pull_log", "a" * 64, at(FIRST, 23), at(SECOND, 3)),
    }
    assert [(s.first_ts, s.last_ts) for s in found(warehouse) if s.kind == "topics"] == [
        (at(long_ago, 1), at(SECOND, 3))
    ]


def test_remembered_spans_are_those_that_were_read(warehouse: Warehouse) -> None:
    """Digests rest on their text."""
    put(warehouse, FILES, file("a", at(FIRST, 1), at(FIRST, 2)), file("b", None, kind="brokers"))
    asked = spans("c", 60, TABLES)
    read = ResultCache(warehouse).rows(asked)
    ResultCache(warehouse).keep([asked])
    assert sorted(map(str, ResultCache(warehouse).rows(asked))) == sorted(map(str, read))


def test_a_step_is_done_until_its_digest_changes_or_it_is_forgotten(warehouse: Warehouse) -> None:
    other = Steps(warehouse, "other")
    other.done("replay", {"1": "x"})
    noted = Steps(warehouse, "c")
    assert noted.todo("replay", {"1": "x", "2": "y"}) == ["1", "2"]
    noted.done("replay", {"1": "x", "2": "y"})
    noted.done("validate", {"1": "v"})
    noted.done("replay", {"2": "z"})
    for known in (noted, Steps(warehouse, "c")):
        assert known.todo("replay", {"1": "x", "2": "y", "3": "z"}) == ["2", "3"]
        assert known.not_among("replay", ["1"]) == ["2"]
        assert known.any_done("replay", ["0", "1"])
        assert not known.any_done("validate", ["2"])
    assert sorted(steps("c").read(warehouse)) == [("replay", "1", "x"), ("replay", "2", "z"), ("validate", "1", "v")]
    noted.forget(["1"])
    assert steps("c").read(warehouse) == [("replay", "2", "z")]
    noted.forget()
    assert steps("c").read(warehouse) == []
    assert steps("other").read(warehouse) == [("replay", "1", "x")]


def test_clusters_whose_files_are_gone_are_found(warehouse: Warehouse) -> None:
    assert empty_clusters().read(warehouse) == []
    for cluster in ("c", "d"):
        Steps(warehouse, cluster).done("replay", {"1": "x"})
        put(warehouse, FILES, file("a", at(FIRST, 1), cluster=cluster))
    assert empty_clusters().read(warehouse) == []
    warehouse.replace_rows(FILES, [], RowFilter("d"))
    assert empty_clusters().read(warehouse) == [("d",)]
