"""Rules of single queues, compared with the functions of core."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from random import Random

import polars as pl
import pyarrow as pa
import pytest

from mqreplay.decisions import offset_continuity, queue_progress, status_windows
from mqreplay.evidence.client_clocks import clock_samples
from mqreplay.evidence.offsets import standstills
from mqreplay.evidence.offsets.queue_events import CHANGE_ROW, COMMIT_ROW, PULL_ROW, STATS_ROW, QueueEvents
from mqreplay.words.keys import QUEUE
from queue_answers import SLAVES, STALE_MS, in_order, of_slaves, plain, slaves, standing_spans
from queue_recordings import (
    ARROW,
    EVENTS,
    GRAINS,
    QUEUES,
    SEEDS,
    START,
    STEP_S,
    STUCK_S,
    WINDOW_S,
    Event,
    Row,
    copies_of,
    recorded,
    slaves_of,
    table,
)
from queue_rules import (
    clocks_by_rule,
    copies_by_rule,
    ends_by_rule,
    hours_by_rule,
    progress_by_rule,
    skips_by_rule,
    standing_by_rule,
    suspects_by_rule,
    windows_by_rule,
)

MOST = 2**63 - 1


def as_by_rule(find: Callable[[QueueEvents], pa.Table], rule: Callable[[list[Event]], Iterable[Row]]) -> list[Row]:
    """What is found in all recordings, having seen that it is in each what the rule says."""
    found_in_all: list[Row] = []
    for seed in SEEDS:
        events, whole = recorded(seed, open_ties=True)
        found = plain(find(whole))
        assert found == in_order(rule(events)), seed
        found_in_all += found
    return found_in_all


def until_ms(seed: int) -> int:
    return START // 1000 + Random(seed).randrange(-1, GRAINS + 5) * STEP_S * 1000


def plain_ends(events: QueueEvents) -> list[Row]:
    """By the names of the queues, in the order they are held in."""
    of_rows = zip(*(events.rows[name].to_pylist() for name in QUEUE), strict=True)
    names = dict(zip(events.queue.tolist(), of_rows, strict=True))
    e = events.ends
    columns = (e.queue, e.at, e.asked_at, e.low, e.has_low, e.high, e.has_high)
    return [
        (names[queue], at, low if has_low else None, high if has_high else None, asked)
        for queue, at, asked, low, has_low, high, has_high in zip(*(c.tolist() for c in columns), strict=True)
    ]


GROUP_QUEUE = "consumer_group STRING, topic STRING, broker_name STRING, queue_id INT"
FINDERS: Mapping[str, tuple[str, Callable[[QueueEvents, int], pa.Table]]] = {
    "clocks": (
        "client_id STRING, stated_ms BIGINT, shown_ms BIGINT, off_ms BIGINT, unsure_ms BIGINT",
        lambda events, _: clock_samples(events),
    ),
    "progress": (queue_progress.SCHEMA, lambda events, _: queue_progress.hourly_progress(events)),
    "suspects": (GROUP_QUEUE, lambda events, _: offset_continuity.suspects(events)),
    "skips": (
        f"{GROUP_QUEUE}, skipped_from BIGINT, skipped_to BIGINT, ts TIMESTAMP",
        lambda events, _: offset_continuity.skips(events),
    ),
    "standing": (
        standstills.STANDSTILL_SCHEMA,
        lambda events, seed: standstills.standstill_spans(events, STUCK_S, copies_of(seed)),
    ),
    "slaves": (SLAVES, lambda events, seed: slaves(events, seed)),
    "windows": (
        "consumer_group STRING, topic STRING, broker_name STRING, queue_id INT, source STRING, w ARRAY",
        lambda events, seed: status_windows.windows(events, WINDOW_S, until_ms(seed)),
    ),
}


def test_ends_are_what_masters_stated() -> None:
    missing: Counter[str] = Counter()
    for seed in SEEDS:
        events, whole = recorded(seed, open_ties=True)
        found, want = plain_ends(whole), ends_by_rule(events)
        assert in_order(found) == in_order(want), seed
        places = list(zip(whole.ends.queue.tolist(), whole.ends.at.tolist(), strict=True))
        assert places == sorted(places), seed
        missing.update(str((low is None, high is None)) for _, _, low, high, _ in want)
    assert len(missing) == 4  # with and without either of both


def test_advance_and_lag_are_the_law_of_each_hour() -> None:
    key = ["broker_name", "broker_id", "topic", "consumer_group", "queue_id"]
    for seed in SEEDS[::5]:
        events, whole = recorded(seed, open_ties=True)
        rows = queue_progress.queue_progress(whole)
        found = rows.select(*key, pl.col("hour").dt.epoch("us"), "advance", "lag").rows()
        want = [(*of_file, hour.hour, hour.advance, hour.lag) for of_file, hour in hours_by_rule(events)]
        assert in_order(found) == in_order(want), seed


def test_progress_is_the_rule_of_each_hour() -> None:
    found_in_all = as_by_rule(queue_progress.hourly_progress, progress_by_rule)
    assert Counter(row[-1] is None for row in found_in_all).keys() == {True, False}
    assert any(row[10] > 1 for row in found_in_all)
    for column in range(6, 10):
        assert Counter(row[column] is None for row in found_in_all).keys() == {True, False}


def test_suspects_are_queues_whose_offset_did_not_simply_rise() -> None:
    reasons: Counter[str] = Counter()
    clean = 0
    for seed in SEEDS:
        events, whole = recorded(seed, open_ties=True)
        want = suspects_by_rule(events)
        assert plain(offset_continuity.suspects(whole)) == in_order(want), seed
        reasons.update(min(why) for why in want.values() if len(why) == 1)
        clean += len({(e.consumer_group, e.queue) for e in events if e.what == CHANGE_ROW}) - len(want)
    # Each reason was enough alone, and not all queues were suspect.
    assert len(reasons) == 4
    assert clean


def test_skips_are_pulls_past_all_delivered_messages() -> None:
    assert as_by_rule(offset_continuity.skips, skips_by_rule)


def test_standstills_are_the_spans_in_which_messages_waited() -> None:
    ended_by: Counter[str] = Counter()
    for seed in SEEDS:
        events, whole = recorded(seed, open_ties=True)
        want = standing_by_rule(events, STUCK_S, copies_of(seed))
        assert standing_spans(whole, seed) == in_order((*key, *still) for key, still, _ in want), seed
        ended_by.update(ended for *_, ended in want)
    # With commits, and without.
    assert ended_by.keys() == {"moved", "end of recording", "copy", "last copy"}


def test_windows_are_what_the_law_says_of_each_queue() -> None:
    sources: Counter[str] = Counter()
    statuses: Counter[str | None] = Counter()
    for seed in SEEDS:
        events, whole = recorded(seed, open_ties=True)
        found = plain(status_windows.windows(whole, WINDOW_S, until_ms(seed)))
        assert found == in_order(windows_by_rule(events, WINDOW_S, until_ms(seed))), seed
        sources.update(row[-2] for row in found)
        statuses.update(window["status"] for row in found for window in row[-1])
    assert sources.keys() == {"offset_commit", "offset_change"}
    assert {None, "OK", "WARN", "STOP"} <= statuses.keys()


def test_slaves_copies_are_held_against_their_masters_files() -> None:
    kinds: Counter[str] = Counter()
    for seed in SEEDS:
        events, whole = recorded(seed, open_ties=True)
        want = copies_by_rule(events, slaves_of(seed), STALE_MS)
        assert of_slaves(whole, seed) == want, seed
        for lacked, behind in want.values():
            kinds.update(f"lacks {m[1] > 0} {m[2] > 0} by {m[3]} {m[4]}" for m in lacked)
            kinds.update(f"behind {began != since}" for began, since, *_ in behind)
    # Spans that go on and those that begin; messages that are lacked, or not known, whichever file changed.
    lacking = [
        f"lacks {what} by {who}" for what in ("True False", "False True") for who in ("True False", "False True")
    ]
    assert {"behind True", "behind False", *lacking} <= kinds.keys()


# What holds for all.


@pytest.mark.parametrize("name", FINDERS)
def test_the_order_of_rows_does_not_matter_nor_their_chunks(name: str) -> None:
    _, find = FINDERS[name]
    found_any = False
    for seed in SEEDS[::5]:
        events, whole = recorded(seed, open_ties=True)
        found = plain(find(whole, seed))
        rows = events.copy()
        for _ in range(2):
            Random(seed).shuffle(rows)
            chunks = pa.concat_tables([table(rows[:7]), table(rows[7:])])
            assert plain(find(QueueEvents(chunks), seed)) == found, seed
        found_any |= bool(found)
    assert found_any


@pytest.mark.parametrize("name", FINDERS)
def test_text_may_come_as_dictionaries(name: str) -> None:
    _, find = FINDERS[name]
    for seed in SEEDS[::20]:
        events, whole = recorded(seed, open_ties=True)
        encoded = [
            column.dictionary_encode() if pa.types.is_string(column.type) else column
            for column in table(events).slice(3).columns
        ]
        plain_text = QueueEvents(table(events).slice(3))
        dictionaries = QueueEvents(pa.table(encoded, names=EVENTS.names))
        assert plain(find(dictionaries, seed)) == plain(find(plain_text, seed)), seed
        assert find(dictionaries, seed).schema == find(whole, seed).schema


def test_the_order_of_rows_does_not_matter_to_ends() -> None:
    for seed in SEEDS[::5]:
        events, whole = recorded(seed, open_ties=True)
        rows = events.copy()
        Random(seed).shuffle(rows)
        of_queue = [
            {queue: [end for end in ends if end[0] == queue] for queue in QUEUES}
            for ends in (plain_ends(whole), plain_ends(QueueEvents(table(rows))))
        ]
        assert of_queue[0] == of_queue[1], seed


NOTHING = [EVENTS.empty_table(), table([]), pa.Table.from_batches([], EVENTS)]


@pytest.mark.parametrize("name", FINDERS)
def test_columns_are_those_of_the_schema(name: str) -> None:
    ddl, find = FINDERS[name]
    want = [tuple(column.split(" ")) for column in re.sub("<STRUCT<[^>]*>>", "", ddl).split(", ")]
    events, _ = recorded(1)
    for rows in (table(events), *NOTHING):
        found = find(QueueEvents(rows), 1)
        assert found.num_rows == 0 or rows.num_rows
        assert found.column_names == [column for column, _ in want]
        for column, kind in want:
            if kind != "ARRAY":
                assert found[column].type == ARROW[kind.lower()], column
            else:
                assert found[column].type.value_field.name == "element", "as Spark calls the items of a list"


def test_where_nothing_was_stated_there_are_no_ends() -> None:
    assert [plain_ends(QueueEvents(rows)) for rows in NOTHING] == [[], [], []]


@pytest.mark.parametrize("missing", [CHANGE_ROW, COMMIT_ROW, PULL_ROW, STATS_ROW])
def test_recordings_without_one_kind_of_row(missing: int) -> None:
    for seed in SEEDS[:10]:
        rest = [e for e in recorded(seed)[0] if e.what != missing]
        whole = QueueEvents(table(rest))
        assert plain(queue_progress.hourly_progress(whole)) == in_order(progress_by_rule(rest))
        assert plain(offset_continuity.suspects(whole)) == in_order(suspects_by_rule(rest))
        assert plain(offset_continuity.skips(whole)) == in_order(skips_by_rule(rest))
        stuck = [(*key, *still) for key, still, _ in standing_by_rule(rest, STUCK_S, copies_of(seed))]
        assert standing_spans(whole, seed) == in_order(stuck)
        expected = windows_by_rule(rest, WINDOW_S, until_ms(seed))
        assert plain(status_windows.windows(whole, WINDOW_S, until_ms(seed))) == in_order(expected)


def enormous(e: Event) -> Event:
    """Offsets of 3 and more end with Long.MAX_VALUE, and those below 0 begin with its opposite."""

    def large(offset: int | None) -> int | None:
        if offset is None or 0 <= offset < 3:
            return offset
        return MOST - 20 + offset if offset > 0 else -MOST - 1 - offset

    offsets = ("committed", "previous_offset", "queue_offset", "next_begin_offset", "min_offset", "max_offset")
    return e._replace(**{name: large(getattr(e, name)) for name in offsets})


def test_offsets_may_be_all_that_a_bigint_holds() -> None:
    for seed in SEEDS:
        events = [enormous(e) for e in recorded(seed, open_ties=True)[0]]
        whole = QueueEvents(table(events))
        assert plain(queue_progress.hourly_progress(whole)) == in_order(progress_by_rule(events)), seed
        assert plain(offset_continuity.suspects(whole)) == in_order(suspects_by_rule(events)), seed
        assert plain(offset_continuity.skips(whole)) == in_order(skips_by_rule(events)), seed
        assert plain(clock_samples(whole)) == in_order(clocks_by_rule(events)), seed
        stuck = [(*key, *still) for key, still, _ in standing_by_rule(events, STUCK_S, copies_of(seed))]
        assert standing_spans(whole, seed) == in_order(stuck), seed
        assert of_slaves(whole, seed) == copies_by_rule(events, slaves_of(seed), STALE_MS), seed
        hours = [(hour.advance, hour.lag) for _, hour in hours_by_rule(events)]
        assert in_order(queue_progress.queue_progress(whole).select("advance", "lag").rows()) == in_order(hours), seed


def test_clock_samples_are_the_rule_of_each_client() -> None:
    assert len({row[-1] for row in as_by_rule(clock_samples, clocks_by_rule)}) > 1
