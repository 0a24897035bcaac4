"""Slaves that no longer copy offsets: just below the bound, above it, and all that must stay silent."""

from __future__ import annotations

import pytest

from mqreplay.lake.contract import load_contracts
from mqreplay.replay.by_queue.looks import of_look
from mqreplay.replay.findings.slaves import stale_slave_offsets
from mqreplay.replay.stale_copies import stale_copies
from silver_moments import at

BOUND_S = 150
END = 1_000
CHANGE = {"topic": "T", "consumer_group": "g", "queue_id": 0}
COPY = {"file_name": "consumerOffset.json", "entries": 1, "changed": 0}
OUTAGES = "cluster string, broker_name string, broker_id bigint, from_ts timestamp, to_ts timestamp"


class Files:
    """What was copied of masters and slaves; each scenario is a broker name of its own."""

    def __init__(self) -> None:
        self.changes: list[dict] = []
        self.copies: list[dict] = []
        self.outages: list[tuple] = []

    def hold(self, name: str, broker_id: int, values: dict[int, int | None], every: int = 5, **differs: object) -> None:
        """A file's value from each second on, copied so often; ``every`` 0: only when it changed, and at the end."""
        before = None
        for number, (second, offset) in enumerate(sorted(values.items())):
            since = None
            if number:
                since = at(second - every) if every else at(sorted(values)[number - 1])
            moved = {"from_ts": since, "to_ts": at(second), "previous_offset": before, "new_offset": offset}
            source = {"source_name": f"{name}-{broker_id}", "broker_name": name, "broker_id": broker_id}
            self.changes.append(source | moved | differs)
            before = offset

    def copy(self, name: str, broker_id: int, seconds) -> None:
        source = {"source_name": f"{name}-{broker_id}", "broker_name": name, "broker_id": broker_id}
        self.copies += [source | {"ts": at(s)} for s in seconds]

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
    files.pair("always late", climb(0, END), {s: max(0, s - 200) for s in range(0, END + 1, 5)})

    # Set back and grown again: what the slave holds, the master has held a moment ago.
    files.pair("set back", {0: 500, 400: 20, **climb(405, END)}, {0: 500, 410: 20, **climb(410, END, 10)})
    files.pair("never set back", {0: 500, 400: 20}, {0: 500})
    files.pair("up and down", {0: 10, **{s: 90 if s % 200 else 10 for s in range(100, END, 100)}}, {0: 10})
    files.pair("stuck before a reset", {0: 10, 100: 90, 400: 5}, {0: 10})

    files.pair("master gone", {0: 10, 500: 11}, {0: 10})
    files.outages.append(("c", "master gone", 0, at(520), at(900)))
    files.pair("slave gone", {0: 10, 500: 11}, {0: 10})
    files.outages.append(("c", "slave gone", 1, at(520), at(900)))
    files.pair("gone and stuck", {0: 10, 300: 11}, {0: 10})
    files.outages.append(("c", "gone and stuck", 0, at(600), at(END)))

    files.hold("slave not copied", 0, climb(0, END))
    files.hold("slave not copied", 1, {0: 0, 10: 10})
    files.copy("slave not copied", 0, range(0, END, 5))
    files.copy("slave not copied", 1, [0, 10])
    files.hold("master not copied", 0, {0: 10, 100: 11})
    files.hold("master not copied", 1, {0: 10})
    files.copy("master not copied", 0, [0, 100])
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


@pytest.fixture(scope="module")
def breaks(rows, look_at, spark):
    files = scenarios()
    changes, snapshot = rows("silver.offset_change", CHANGE, files.changes), rows("silver.snapshot", COPY, files.copies)
    looked = look_at(changes, rows("silver.offset_commit", {}, []), rows("silver.pull", {}, []), snapshot)
    outages = spark.createDataFrame(files.outages, OUTAGES)
    return stale_copies(of_look(looked, "slave"), snapshot, outages, "c", BOUND_S).localCheckpoint()


@pytest.fixture(scope="module")
def found(breaks):
    return {(row.broker_name, row.broker_id): row for row in stale_slave_offsets(breaks, BOUND_S).collect()}


def span(row) -> tuple[float, float]:
    began = at(0).replace(tzinfo=None)
    return (row.from_ts - began).total_seconds(), (row.to_ts - began).total_seconds()


@pytest.mark.parametrize(
    "name",
    [
        "fine",
        "a minute late",
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
def test_what_must_stay_silent(found, name):
    assert not [place for place in found if place[0] == name]


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
def test_a_slave_that_no_longer_copies(found, name, from_s, to_s):
    row = found[name, 1]
    began, ended = span(row)
    assert began == pytest.approx(from_s, abs=5)
    assert ended == pytest.approx(to_s, abs=5)
    assert (row.kind, row.severity, row.queue_id, row.topic) == ("stale_slave_offsets", "warning", None, None)


def test_one_that_copies_too_late_is_told_though_it_moves(found):
    assert span(found["always late", 1])[0] < 200


def test_all_its_queues_are_one_finding(found):
    row = found["stuck", 1]
    assert "2 queues of 2 groups" in row.summary
    assert f"up to {2 * (END - 300)} messages" in row.summary
    assert {e.table_name for e in row.evidence} == {"gold.offset_continuity"}
    ended = at(END).replace(tzinfo=None)
    assert [e.key for e in row.evidence] == [
        f"broker_name=stuck broker_id=1 topic=T consumer_group={group} queue_id={queue} kind=stale to_ts={ended}"
        for group, queue in (("g", 0), ("h", 7))
    ]


def test_each_stretch_is_a_break(breaks):
    (row,) = breaks.where("broker_name = 'just'").collect()
    assert (row.kind, row.cause, row.broker_id, row.consumer_group, row.queue_id) == ("stale", "not_copied", 1, "g", 0)
    assert row.size == row.redelivered_max == row.previous_offset - row.new_offset > 0
    assert row.day == row.to_ts.date()
    stretches = [r.to_ts for r in breaks.where("broker_name = 'always late'").collect()]
    assert len(stretches) == len(set(stretches)) > 1
    contract = load_contracts()["gold.offset_continuity"]
    assert {f.name: f.dataType for f in breaks.schema} == {f.name: f.dataType for f in contract.struct_type()}


def test_one_slave_of_two(found):
    assert [place for place in found if place[0] == "two slaves"] == [("two slaves", 2)]


def test_what_the_slave_dropped_was_stale_before_if_at_all(found):
    assert ("gone from the slave", 1) not in found
