"""What is said of how far reading has come."""

from __future__ import annotations

from types import SimpleNamespace

from mqreplay.ingest.pace import Pace


def watch(pace, told, sizes):
    pace.reading(sum(sizes.values())).watch(told, sizes)


def test_it_tells_bytes_rate_and_what_is_left():
    pace = Pace(lambda _: None, 40_000_000)
    told = SimpleNamespace(value={})
    watch(pace, told, {"a": 10_000_000, "b": 30_000_000})
    assert pace.line(1) == "read 0 of 40 MB"
    assert pace.line(2) is None
    told.value["a"] = object()
    assert pace.line(4) == "read 10 of 40 MB, 2.5 MB/s, about 12 s left"
    told.value["b"] = told.value["read again, of no size"] = object()
    assert pace.line(8) == "read 40 of 40 MB, 5.0 MB/s, about 0 s left"


def test_what_is_left_is_told_before_all_has_begun():
    pace = Pace(lambda _: None, 100_000_000)
    lines, snapshots = SimpleNamespace(value={"a": object()}), SimpleNamespace(value={})
    pace.reading(40_000_000).watch(lines, {"a": 20_000_000, "b": 20_000_000})
    pace.reading(60_000_000, cost=1 / 3).watch(snapshots, {"c": 60_000_000})
    assert pace.line(10) == "read 20 of 100 MB, 2.0 MB/s, about 20 s left"
    lines.value["b"] = object()
    assert pace.line(20) == "read 40 of 100 MB, 2.0 MB/s, about 10 s left"


def test_what_is_read_in_rounds_is_watched_as_one():
    pace = Pace(lambda _: None, 100_000_000)
    reading = pace.reading(100_000_000)
    reading.watch(SimpleNamespace(value={"a": None}), {"a": 20_000_000})
    assert pace.line(10) == "read 20 of 100 MB, 2.0 MB/s, about 40 s left"
    reading.watch(SimpleNamespace(value={"b": None}), {"b": 30_000_000, "c": 50_000_000})
    assert pace.line(20) == "read 50 of 100 MB, 2.5 MB/s, about 20 s left"


def test_a_short_reading_says_nothing():
    said = []
    with Pace(said.append, 1, every_s=60):
        pass
    assert said == []


def test_it_speaks_while_it_is_open():
    said = []
    told = SimpleNamespace(value={"a": object()})
    pace = Pace(said.append, 2_000_000, every_s=0.01)
    watch(pace, told, {"a": 1_000_000})
    with pace:
        while not said:
            pass
    assert said[0].startswith("read 1 of 2 MB")
