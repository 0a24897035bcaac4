"""Clocks that are off or jump, and lines in any order, doubled or split: the same answers, or a clock_skew.

Three levels, for a whole replay takes seconds:

- Kernels: mqreplay's decoders read the files, and the kernels of judge/ judge them (500 seeds).
- Ingest: the silver tables of shuffled, doubled and split files are those of the files as they were recorded.
- Nights: ingest and replay, and what is compared are the findings and judgements (a few cases).

A line twice in one file is two records (ADR 1), so that doubled lines stand in two files here.
"""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqreplay.core.clock_span import LEAST, SURE_MS, ClockSample, ClockSpan, clock_spans
from mqreplay.decisions import offset_continuity, queue_progress, status_windows
from mqreplay.evidence.client_clocks import clock_samples
from mqreplay.evidence.offsets import standstills
from mqreplay.evidence.offsets.queue_events import QueueEvents
from mqreplay.lake.warehouse import Warehouse
from mqreplay.settings import load_settings
from mqreplay.words.keys import GROUP_QUEUE
from night.cut import INSTANTS, cut, jsonl_files
from queue_answers import slave_copies
from reliability.queue_evidence import TOLD_OF_QUEUES, Row, changes, queue_events
from reliability.told_lines import Clock, Lines, changed_by, lines_of, parts, read, told_by
from tests_shared import SAMPLE, run, table_rows, tables

NIGHT = SAMPLE / "bulk-5.3.3"
SHORT, LONG = 6, 500
COPY_MS = 5_000  # from one copy of a broker's file to the next
MINUTE, HOUR = 60_000, 3_600_000  # ms
LIMITS = load_settings().findings
WINDOW_S = load_settings().replay.status_window_s


@dataclasses.dataclass(frozen=True)
class Recorded:
    """The night as it was recorded: lines by kind, offsets that changed, and the instants of each client's commits."""

    lines: Lines
    changed: list[Row]
    clients: dict[str, list[int]]
    end_ms: int
    answers: dict[str, Counter[str]]
    samples: dict[str, list[ClockSample]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    lines = {kind: lines_of(NIGHT / f"{kind}.jsonl.gz") for kind in TOLD_OF_QUEUES}
    changed = changes(NIGHT)
    folder = tmp_path_factory.mktemp("recorded")
    rows = read(lines, folder)
    said: dict[str, list[int]] = {}
    for row in rows["offset_commits"]:
        said.setdefault(row["client_id"], []).append(row["ts"])
    end_ms = max(row["request_ts"] for row in rows["pull_log"])
    events = queue_events(rows, changed)
    clients = {client: sorted(all_ts) for client, all_ts in said.items()}
    return Recorded(lines, changed, clients, end_ms, answers(events, end_ms), samples(events))


def answers(events: QueueEvents, end_ms: int) -> dict[str, Counter[str]]:
    """What the kernels find, without instants and what is read off at them.

    Suspects are left out: offset_continuity judges them.
    """
    rows = {
        "skips": offset_continuity.skips(events).to_pylist(),
        "progress": queue_progress.hourly_progress(events).to_pylist(),
        "slaves": slave_copies(events, {}, LIMITS.stale_slave_s * 1000).to_pylist(),
        "standing": [
            _named(row) | {"offset": span["offset"]}
            for row in standstills.standstill_spans(events, LIMITS.stuck_s, {}).to_pylist()
            for span in row["spans"]
        ],
        "status": [
            _named(row) | {"ok": all(window["status"] == "OK" for window in row["w"])}
            for row in status_windows.windows(events, WINDOW_S, end_ms).to_pylist()
        ],
    }
    instants = ("ts", "hour", "queue_max_offset")
    return {
        name: Counter(str({k: v for k, v in row.items() if k not in instants}) for row in of_kind)
        for name, of_kind in rows.items()
    }


def _named(row: Row) -> Row:
    return {name: row[name] for name in GROUP_QUEUE}


def samples(events: QueueEvents) -> dict[str, list[ClockSample]]:
    """The samples of each client's clock, in order."""
    found: dict[str, list[ClockSample]] = {}
    for client, *sample in zip(*(column.to_pylist() for column in clock_samples(events).columns), strict=True):
        found.setdefault(client, []).append(ClockSample(*sample))
    return {client: sorted(of_client) for client, of_client in found.items()}


def skewed(events: QueueEvents) -> dict[str, list[ClockSpan]]:
    """The time spans of each client with a clock_skew."""
    most_ms = LIMITS.clock_skew_s * 1000
    found = {client: clock_spans(of_client, most_ms) for client, of_client in samples(events).items()}
    return {client: of_client for client, of_client in found.items() if of_client}


def put_right(rows: dict[str, list[Row]], client: str, found: list[ClockSpan]) -> None:
    """As client_clocks.by_recorders_clock does."""
    for row in [row for of_kind in rows.values() for row in of_kind if row.get("client_id") == client]:
        stated = next(row[name] for name in INSTANTS if row.get(name))
        off = next(s.skew_ms for s in found if s.stated_until_ms is None or stated < s.stated_until_ms)
        row |= {name: row[name] - off for name in INSTANTS if row.get(name)}


def seeds(short: int, long: int) -> list[Any]:
    return [pytest.param(n, id=f"seed-{n}", marks=[pytest.mark.long] if n >= short else []) for n in range(long)]


@pytest.mark.first_case
@pytest.mark.parametrize("seed", seeds(SHORT, LONG))
def test_kernels_do_not_ask_in_what_order_lines_came(recorded: Recorded, tmp_path: Path, seed: int) -> None:
    rows = read(recorded.lines, tmp_path, random.Random(seed))
    assert {kind: len(of_kind) for kind, of_kind in rows.items()} == {k: len(v) for k, v in recorded.lines.items()}
    events = queue_events(rows, recorded.changed)
    assert answers(events, recorded.end_ms) == recorded.answers
    assert samples(events) == recorded.samples


def of_some_client(recorded: Recorded, chance: random.Random) -> tuple[str, int, int]:
    """A client, by how many ms its clock is off, and an instant while it commits."""
    client = chance.choice(sorted(recorded.clients))
    by_ms = chance.choice([HOUR, chance.randrange(2 * MINUTE, 12 * HOUR)]) * chance.choice([1, -1])
    said = recorded.clients[client]
    return client, by_ms, chance.randrange(said[0], said[-1])


@pytest.mark.first_case
@pytest.mark.parametrize("seed", seeds(SHORT, LONG))
def test_kernels_put_a_clock_right_that_is_off(recorded: Recorded, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    client, by_ms, _ = of_some_client(recorded, chance)
    rows = read(told_by(recorded.lines, client, lambda at: by_ms), tmp_path, chance)
    found = skewed(queue_events(rows, recorded.changed))
    assert found.keys() == {client}
    [night] = found[client]
    assert abs(night.skew_ms - by_ms) < COPY_MS
    put_right(rows, client, found[client])
    assert answers(queue_events(rows, recorded.changed), recorded.end_ms) == recorded.answers


@pytest.mark.first_case
@pytest.mark.parametrize("seed", seeds(SHORT, LONG))
def test_kernels_notice_a_clock_that_jumps(recorded: Recorded, tmp_path: Path, seed: int) -> None:
    """A clock jumps, as when it is set right or somebody sets it, at some moment of the night.

    It is noticed where the client's commits before and after the jump are each in copies of SURE_MS, and nobody else is
    ever accused. The night need not tell the same: of a clock that goes back some instants are said twice, and around
    a jump the order of commits is known to some seconds only.
    """
    chance = random.Random(seed)
    client, by_ms, since = of_some_client(recorded, chance)
    rows = read(told_by(recorded.lines, client, lambda at: by_ms if at >= since else 0), tmp_path, chance)
    found = skewed(queue_events(rows, recorded.changed))
    assert found.keys() <= {client}
    if both_sides_are_long(recorded.samples[client], since):
        [before, after] = found[client]
        assert (before.skew_ms, abs(after.skew_ms - by_ms) < COPY_MS) == (0, True)
        assert abs(after.shown_from_ms - since) < 4 * COPY_MS


def both_sides_are_long(of_client: list[ClockSample], since: int) -> bool:
    """Whether before and after the instant there are enough copies that show commits of a client."""
    sides = [
        {sample.shown_ms for sample in of_client if sample.stated_ms < since},
        {sample.shown_ms for sample in of_client if sample.stated_ms >= since},
    ]
    return all(len(shown) > LEAST and max(shown) - min(shown) > SURE_MS + 2 * COPY_MS for shown in sides)


@pytest.fixture(scope="module")
def ingested(tmp_path_factory):
    """Ingests a minute of the night, its lines as chance chooses; gives the silver rows but for the files' digests."""
    folder = tmp_path_factory.mktemp("ingested")
    began = 1_795_229_360_000
    minute = cut(NIGHT, folder / "minute", {"alert-desk"}, began, began + MINUTE, every=3)
    warehouse = str(folder / "warehouse")

    def rows_of(cluster: str, chance: random.Random | None) -> dict[str, list[str]]:
        recording = cut(NIGHT, folder / cluster, {"alert-desk"}, began, began + MINUTE, every=3)
        for path in jsonl_files(recording) if chance else []:
            lines, stem = lines_of(path), path.name.split(".")[0]
            path.unlink()
            for number, part in enumerate(parts(lines, chance)):
                (recording / f"{stem}.{number:04}.jsonl").write_bytes(b"".join(line + b"\n" for line in part))
        run("ingest", warehouse, load_settings(), lambda text: None, recordings=[str(recording)], cluster=cluster)
        names = [name for name in tables(warehouse) if name.startswith("silver.") and name != "silver.broker"]
        return {name: sorted(map(without_origin, table_rows(warehouse, name, cluster))) for name in names}

    assert lines_of(minute / "pull_log.jsonl.gz")
    return rows_of


def without_origin(row: str) -> str:
    """A row as text, without what says which file and which cluster it is of."""
    return ", ".join(part for part in row.split(", ") if not part.startswith(("{'cluster'", "'source_digest'")))


@pytest.mark.parametrize("seed", seeds(1, 40))
def test_silver_does_not_ask_in_what_order_lines_came(ingested, plainly_ingested, seed: int) -> None:
    assert ingested(f"seed-{seed}", random.Random(seed)) == plainly_ingested


@pytest.fixture(scope="module")
def plainly_ingested(ingested):
    rows = ingested("plain", None)
    assert len(rows["silver.pull"]) == 91
    return rows


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Ingests and replays the night as a client tells it; gives the findings that are more than a note."""

    def judge(client: str = "", clock: Clock | None = None) -> list[Row]:
        folder = tmp_path_factory.mktemp("judged")
        recording = cut(NIGHT, folder / "recording", change=None if clock is None else changed_by(client, clock))
        root = str(folder / "warehouse")
        run("ingest", root, load_settings(), lambda text: None, recordings=[str(recording)])
        run("replay", root, load_settings(), lambda text: None)
        found = Warehouse(root).read("gold.finding").filter(pl.col("severity") != "info").collect()
        return found.to_dicts()

    return judge


@pytest.fixture(scope="module")
def plainly_judged(judged) -> Counter[tuple[str, ...]]:
    return places(judged())


def places(findings: list[Row]) -> Counter[tuple[str, ...]]:
    names = ("kind", "severity", "consumer_group", "broker_name", "queue_id")
    return Counter(tuple(str(f[name]) for name in names) for f in findings if f["kind"] != "clock_skew")


DESK, BILLING = "192.168.9.1@12721#3017128571654", "192.168.9.2@12739#3019340626207"
ARCHIVE = "192.168.9.3@12721#3133088795636"
NIGHTS = [  # a client, by how many ms its clock is off, and since what share of the night
    pytest.param(DESK, 3 * HOUR, 0.0, id="three hours ahead"),
    pytest.param(BILLING, -40 * MINUTE, 0.0, id="40 minutes behind"),
    pytest.param(DESK, HOUR, 0.3, id="daylight saving begins early in the night"),
    pytest.param(BILLING, -2 * HOUR, 0.2, id="backwards early in the night"),
    pytest.param(DESK, HOUR, 0.7, id="an hour ahead, late in the night"),
    pytest.param(ARCHIVE, HOUR, 0.0, id="an hour ahead, of a client that hardly commits"),
]


@pytest.mark.long
@pytest.mark.parametrize(("client", "by_ms", "share"), NIGHTS)
def test_a_night_tells_the_same_or_names_the_clock(judged, plainly_judged, recorded, client, by_ms, share) -> None:
    first, *_, last = recorded.clients[DESK]
    since = first + (last - first) * share if share else 0
    findings = judged(client, lambda at: by_ms if at >= since else 0)
    named = {f["client_id"] for f in findings if f["kind"] == "clock_skew"}
    assert named == {client}
    # A clock is known to some seconds only: more may be told of this client and its brokers (docs/reliability.md).
    assert set(plainly_judged) <= set(places(findings)) or share
