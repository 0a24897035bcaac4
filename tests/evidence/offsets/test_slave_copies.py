"""Slaves that no longer copy offsets: just below and above the bound, and cases without an alarm."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from mqreplay.evidence.offsets.queue_events import queue_events
from mqreplay.evidence.offsets.slave_copies import both_files, stale_copies, stale_spans_of_shard
from mqreplay.lake.contract import arrow_schema, load_contracts
from silver_moments import at
from silver_rows import rows

BOUND_S = 150
END = 1_000
CHANGE = {"topic": "T", "consumer_group": "g", "queue_id": 0}
SNAPSHOT = {"file_name": "consumerOffset.json", "entries": 1, "changed": 0}
INSTANT = pl.Datetime("us", "UTC")
OUTAGE = {"broker_name": pl.String, "broker_id": pl.Int64, "from_ts": INSTANT, "to_ts": INSTANT}


class Files:
    """What was copied of masters and slaves; each scenario is a broker name of its own."""

    def __init__(self) -> None:
        self.changes: list[dict[str, Any]] = []
        self.copies: list[dict[str, Any]] = []
        self.outages: list[tuple[Any, ...]] = []

    def hold(self, name: str, broker_id: int, values: dict[int, int | None], every: int = 5, **differs: object) -> None:
        """A file's value from each second on, copied so often; ``every`` 0: only when it changed, and at the end."""
        before = None
        for number, (second, offset) in enumerate(sorted(values.items())):
            since = None
            if number:
                since = at(second - every) if every else at(sorted(values)[number - 1])
            moved = {"from_ts": since, "to_ts": at(second), "previous_offset": before, "new_offset": offset}
            self.changes.append(self._source(name, broker_id) | moved | differs)
            before = offset

    def copy(self, name: str, broker_id: int, seconds, **differs: object) -> None:
        source = self._source(name, broker_id) | differs
        self.copies += [source | {"ts": at(s), "source_digest": f"{name}-{broker_id}-{s}"} for s in seconds]

    def _source(self, name: str, broker_id: int) -> dict[str, Any]:
        return {"source_name": f"{name}-{broker_id}", "broker_name": name, "broker_id": broker_id}

    def pair(self, name: str, master: dict, slave: dict, until: int = END, **differs: object) -> None:
        """Both copied every 5 s to the end."""
        self.hold(name, 0, master, **differs)
        self.hold(name, 1, slave, **differs)
        for broker_id in (0, 1):
            self.copy(name, broker_id, range(0, until + 1, 5))


def climb(since: int, until: int, per: int = 5) -> dict[int, int]:
    return {s: s for s in range(since, until + 1, per)}


def scenarios() -> Files:
    files = Files()
    files.pair("fine", climb(0, END), {s: s for s in range(0, END + 1, 10)})
    files.pair("a minute late", climb(0, END), {s: max(0, s - 60) for s in range(0, END + 1, 60)})
    files.pair("stuck", climb(0, END), climb(0, 300, 10))
    files.hold("stuck", 0, climb(0, END), consumer_group="h", queue_id=7)
    files.hold("stuck", 1, climb(0, 300, 10), consumer_group="h", queue_id=7)
    files.pair("one queue", climb(0, END), climb(0, END, 10))
    files.hold("one queue", 0, {0: 10, 500: 11}, queue_id=3)
    files.hold("one queue", 1, {0: 10}, queue_id=3)
    files.pair("just not", {0: 10, 500: 11}, {0: 10}, until=645)
    files.pair("just", {0: 10, 500: 11}, {0: 10}, until=650)
    files.pair("caught up", {0: 10, 300: 20}, {0: 10, 440: 20})
    files.pair("caught up late", {0: 10, 300: 20}, {0: 10, 600: 20})
    # Each copy gets all of the master's offsets: one that changes was copied, whatever the master's file shows.
    files.pair("always late", climb(0, END), {s: max(0, s - 200) for s in range(0, END + 1, 5)})
    files.pair("copied every 400 s", climb(0, END), {0: 0, 400: 400, 800: 800})

    # Set back and grown again: what the slave holds, the master has held a moment ago.
    files.pair("set back", {0: 500, 400: 20, **climb(405, END)}, {0: 500, 410: 20, **climb(410, END, 10)})
    files.pair("never set back", {0: 500, 400: 20}, {0: 500})
    files.pair("up and down", {0: 10, **{s: 90 if s % 200 else 10 for s in range(100, END, 100)}}, {0: 10})
    files.pair("stuck before a reset", {0: 10, 100: 90, 400: 5}, {0: 10})

    files.pair("master gone", {0: 10, 500: 11}, {0: 10})
    files.outages.append(("master gone", 0, at(520), at(900)))
    files.pair("slave gone", {0: 10, 500: 11}, {0: 10})
    files.outages.append(("slave gone", 1, at(520), at(900)))
    files.pair("gone and stuck", {0: 10, 300: 11}, {0: 10})
    files.outages.append(("gone and stuck", 0, at(600), at(END)))

    files.hold("slave not copied", 0, climb(0, END))
    files.hold("slave not copied", 1, {0: 0, 10: 10})
    files.copy("slave not copied", 0, range(0, END, 5))
    files.copy("slave not copied", 1, [0, 10])
    files.hold("master not copied", 0, {0: 10, 100: 11})
    files.hold("master not copied", 1, {0: 10})
    files.copy("master not copied", 0, [0, 100])
    files.copy("master not copied", 0, range(0, END, 5), file_name="topics.json")
    files.copy("master not copied", 1, [0, *range(300, END, 5)])
    files.hold("only what changed", 0, {0: 10, 500: 11}, every=0)
    files.hold("only what changed", 1, {0: 10}, every=0)
    for broker_id in (0, 1):
        files.copy("only what changed", broker_id, [0, *([500] if not broker_id else []), END])
    files.hold("stuck in between", 0, climb(0, END), every=0)
    files.hold("stuck in between", 1, climb(0, 300, 10), every=0)
    files.copy("stuck in between", 0, range(0, END + 1, 5))
    files.copy("stuck in between", 1, [*range(0, 301, 10), END])
    # The slave's last change was copied late; what it held before is known until the copy before only.
    files.hold("seldom copied", 0, climb(0, END))
    files.hold("seldom copied", 1, {0: 0, 400: 390, 800: 790}, every=400)
    for broker_id, seconds in ((0, range(0, END, 5)), (1, [0, 400, 800])):
        files.copy("seldom copied", broker_id, seconds)

    files.pair("gone from the master", {0: 10, 300: None}, {0: 10})
    files.pair("gone from the slave", {0: 10, 300: 20}, {0: 10, 310: None})
    files.pair("late known", {900: 50}, {0: 10})
    files.hold("never on the slave", 0, climb(0, END))
    files.copy("never on the slave", 0, range(0, END, 5))
    files.copy("never on the slave", 1, range(0, END, 5))
    files.hold("two slaves", 0, climb(0, END))
    for broker_id, until in ((1, END), (2, 300)):
        files.hold("two slaves", broker_id, climb(0, until, 10))
    for broker_id in (0, 1, 2):
        files.copy("two slaves", broker_id, range(0, END + 1, 5))
    files.changes.append(
        {"source_name": "client-c", "broker_name": "fine", "client_id": "c", "to_ts": at(1), "new_offset": 1}
    )
    return files


Night = tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]


@pytest.fixture(scope="module")
def night() -> Night:
    """The spans of stale copies, silver.snapshot, and outages."""
    files = scenarios()
    changes = rows("silver.offset_change", CHANGE, files.changes)
    snapshot = rows("silver.snapshot", SNAPSHOT, files.copies)
    others = (rows(f"silver.{name}", {}, []) for name in ("offset_commit", "pull", "topic_stats"))
    slaves: dict[str, dict[int, int]] = {}
    for copy in files.copies:
        of_name = slaves.setdefault(copy["broker_name"], {})
        if copy["broker_id"]:
            copied = int(copy["ts"].timestamp() * 1_000_000)
            of_name[copy["broker_id"]] = max(copied, of_name.get(copy["broker_id"], 0))
    copies = both_files(queue_events(changes, *others, set()), slaves)
    return stale_spans_of_shard(copies, BOUND_S * 1000), snapshot, pl.DataFrame(files.outages, OUTAGE, orient="row")


@pytest.fixture(scope="module")
def breaks(night: Night) -> pl.DataFrame:
    spans, snapshot, outages = night
    return stale_copies(spans, snapshot, outages, BOUND_S)


@pytest.fixture(scope="module")
def slaves(breaks: pl.DataFrame) -> dict[tuple[str, int], tuple[float, float]]:
    """Of each slave with stale offsets: from when and until when, in seconds."""
    found = breaks.group_by("broker_name", "broker_id").agg(pl.col("from_ts").min(), pl.col("to_ts").max())
    return {
        (name, broker_id): tuple((ts - at(0)).total_seconds() for ts in span) for name, broker_id, *span in found.rows()
    }


@pytest.mark.parametrize(
    "name",
    [
        "fine",
        "a minute late",
        "always late",
        "just not",
        "caught up",
        "set back",
        "never set back",
        "up and down",
        "master gone",
        "slave not copied",
        "master not copied",
        "seldom copied",
        "gone from the master",
        "late known",
        "never on the slave",
    ],
)
def test_what_must_stay_silent(slaves, name):
    assert not [place for place in slaves if place[0] == name]


@pytest.mark.parametrize(
    ("name", "from_s", "to_s"),
    [
        ("stuck", 305, END),
        ("one queue", 500, END),
        ("just", 500, 650),
        ("caught up late", 300, 595),
        ("stuck before a reset", 100, 400),
        ("slave gone", 500, END),
        ("gone and stuck", 300, 595),
        ("only what changed", 500, END),
        ("stuck in between", 305, END),
    ],
)
def test_a_slave_that_no_longer_copies(slaves, name, from_s, to_s):
    assert slaves[name, 1] == (pytest.approx(from_s, abs=5), pytest.approx(to_s, abs=5))


def test_each_of_its_queues_is_stale(breaks):
    stuck = breaks.filter(pl.col("broker_name") == "stuck").sort("consumer_group")
    columns = ["consumer_group", "queue_id", "previous_offset", "new_offset", "size", "to_ts", "source_digest"]
    # Until the end the master held the offset of five seconds before.
    held = (END, 300, END - 300, at(END), f"stuck-1-{END}")
    assert stuck.select(columns).rows() == [("g", 0, *held), ("h", 7, *held)]


def test_each_period_is_a_break(breaks):
    (row,) = breaks.filter(pl.col("broker_name") == "just").rows(named=True)
    key = ("kind", "cause", "broker_id", "consumer_group", "queue_id")
    assert tuple(row[name] for name in key) == ("stale", "not_copied", 1, "g", 0)
    assert row["size"] == row["redelivered_max"] == row["previous_offset"] - row["new_offset"] > 0
    assert row["day"] == row["to_ts"].date()
    spans = breaks.filter(pl.col("broker_name") == "copied every 400 s").sort("to_ts").select("from_ts", "to_ts")
    assert spans.rows() == [(at(5), at(395)), (at(405), at(795)), (at(805), at(1000))]


def test_the_columns_are_the_tables(breaks, night):
    columns = [(c.name, c.type) for c in load_contracts()["gold.offset_continuity"].columns if c.name != "cluster"]
    expected = pl.DataFrame(pl.from_arrow(arrow_schema(columns).empty_table())).schema
    assert breaks.schema == expected
    spans, snapshot, outages = night
    assert stale_copies(spans.clear(), snapshot, outages, BOUND_S).schema == expected
    nothing = stale_copies(spans, snapshot.clear(), outages.clear(), BOUND_S)
    assert nothing.is_empty()
    assert nothing.schema == expected


def test_one_slave_of_two(slaves):
    assert [place for place in slaves if place[0] == "two slaves"] == [("two slaves", 2)]


def test_what_the_slave_dropped_was_stale_before_if_at_all(slaves):
    assert ("gone from the slave", 1) not in slaves


@pytest.mark.parametrize("count", [1, 7])
def test_shards_together_are_the_whole(night, breaks, count):
    whole, snapshot, outages = night
    part = pl.struct("broker_name", "topic", "queue_id").hash(1) % count
    spans = [whole.filter(part == i) for i in range(count)]
    assert_frame_equal(stale_copies(pl.concat(spans), snapshot, outages, BOUND_S), breaks, check_row_order=False)
    parts = pl.concat([stale_copies(one, snapshot, outages, BOUND_S) for one in spans])
    assert_frame_equal(parts, breaks, check_row_order=False)
