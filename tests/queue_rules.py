"""Events of made-up recordings as arguments of core's laws, and the laws' answers as rows of the kernels' tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from mqreplay.core.status_windows import status_windows
from mqreplay.evidence.offsets.queue_events import CHANGE_ROW, COMMIT_ROW, PULL_ROW, STATS_ROW
from oracles.client_clock import ClientOffset, clock_samples
from oracles.missing_offsets import missing_by_minute
from oracles.offset_evidence import OffsetChange, QueueEnd, head_of_each_second, pull_end
from oracles.offset_suspect import Reason, suspect_reasons
from oracles.queue_progress import HourProgress, progress_by_hour
from oracles.skip import Pull, skips
from oracles.stale_copy import stale_spans
from oracles.standstill import OffsetStatement, Standstill, changed_statements, standstills
from queue_recordings import Event, Queue, Row

Key = tuple[str, str, str, int]  # consumer_group, topic, broker_name, queue_id


def key_of(e: Event) -> Key:
    return str(e.consumer_group), e.topic, e.broker_name, e.queue_id


def queue_of(key: Key) -> Queue:
    _, topic, broker_name, queue_id = key
    return broker_name, topic, queue_id


def grouped(events: Iterable[Event], by: Callable[[Event], Row], *what: int) -> dict[Row, list[Event]]:
    """Events of these kinds by a key, in the order given."""
    found = defaultdict(list)
    for e in events:
        if e.what in what:
            found[by(e)].append(e)
    return found


def change(e: Event) -> OffsetChange:
    return OffsetChange(e.also_at, e.at, e.previous_offset, e.committed)


def statement(e: Event) -> OffsetStatement:
    assert e.committed is not None
    return OffsetStatement(e.at, e.committed, e.client_id)


def ends_of_queues(events: Iterable[Event]) -> Mapping[Queue, list[QueueEnd]]:
    found = defaultdict(list)
    for e in events:
        of_stats = QueueEnd(e.at, e.min_offset, e.max_offset, e.at) if e.what == STATS_ROW else None
        of_pull = pull_end(e.broker_id, e.at, e.also_at, e.min_offset, e.max_offset) if e.what == PULL_ROW else None
        if end := of_stats or of_pull:
            found[e.queue].append(end)
    return found


def ends_by_rule(events: list[Event]) -> list[Row]:
    return [(queue, *end) for queue, ends in ends_of_queues(events).items() for end in ends]


def hours_by_rule(events: list[Event]) -> list[tuple[Row, HourProgress]]:
    """Broker name and id, topic, group and queue id, and their progress in an hour."""
    ends = ends_of_queues(events)
    of_file = grouped(events, lambda e: (e.broker_name, e.broker_id, e.topic, e.consumer_group, e.queue_id), CHANGE_ROW)
    return [
        (key, hour)
        for key, of_key in of_file.items()
        for hour in progress_by_hour(map(change, of_key), ends[of_key[0].queue])
    ]


def progress_by_rule(events: list[Event]) -> list[Row]:
    return [(*key, *hour) for key, hour in hours_by_rule(events)]


def suspects_by_rule(events: list[Event]) -> dict[Row, set[Reason]]:
    """consumer_group, topic, broker_name, queue_id of each suspect, and why."""
    ends = ends_of_queues(events)
    reasons = {
        key: suspect_reasons(map(change, of_key), ends[queue_of(key)])
        for key, of_key in grouped(events, key_of, CHANGE_ROW).items()
    }
    return {key: of_key for key, of_key in reasons.items() if of_key}


def skips_by_rule(events: list[Event]) -> list[Row]:
    found = []
    for (group, topic, broker_name, queue_id), of_key in grouped(events, key_of, PULL_ROW).items():
        pulls = [Pull(e.at, e.queue_offset, e.next_begin_offset, e.max_offset, e.opaque, e.client_id) for e in of_key]
        found += [(group, topic, broker_name, queue_id, *skip) for skip in skips(pulls)]
    return found


def standing_by_rule(
    events: list[Event], stuck_s: int, last_copies: Mapping[str, int]
) -> list[tuple[Key, Standstill, str]]:
    """Queue and group, a standstill, and what ended it."""
    ends, found = ends_of_queues(events), []
    for key, of_key in grouped(
        (e for e in events if e.consumer_group), key_of, CHANGE_ROW, COMMIT_ROW, PULL_ROW
    ).items():
        stated = [e for e in of_key if e.committed is not None and (e.what != CHANGE_ROW or e.saved_by_master)]
        commits, pulls, of_file = (
            [statement(e) for e in stated if e.what == what] for what in (COMMIT_ROW, PULL_ROW, CHANGE_ROW)
        )
        changes = [change(e) for e in of_key if e.saved_by_master]
        last_copy = last_copies.get(queue_of(key)[0])
        moves = changed_statements([*commits, *pulls, *of_file])
        for still in standstills(commits, pulls, changes, ends[queue_of(key)], stuck_s * 1000, last_copy):
            is_last = (still.since_ts, still.offset) == (moves[-1].ts, moves[-1].offset)
            ended = ("end of recording" if is_last else "moved") if commits else ("last copy" if is_last else "copy")
            found.append((key, still, ended))
    return found


def windows_by_rule(events: list[Event], window_s: int, until_ms: int) -> list[Row]:
    ends, found = ends_of_queues(events), []
    for key, of_key in grouped((e for e in events if e.counts), key_of, CHANGE_ROW, COMMIT_ROW).items():
        commits = sorted((e.at // 1000, e.committed) for e in of_key)
        heads = [(ts, head) for head, ts in head_of_each_second(ends[queue_of(key)])]
        lists = [[pair[i] for pair in pairs] for pairs in (commits, heads) for i in (0, 1)]
        source = "offset_commit" if of_key[-1].what == COMMIT_ROW else "offset_change"
        law = status_windows(*lists, window_s * 1000, until_ms)
        found.append((*key, source, [window._asdict() for window in law]))
    return found


def clocks_by_rule(events: list[Event]) -> list[Row]:
    changes, found = grouped((e for e in events if e.saved_by_master), key_of, CHANGE_ROW), []
    stated = [e for e in events if e.committed is not None]
    for (client_id, *key), of_client in grouped(
        stated, lambda e: (e.client_id, *key_of(e)), COMMIT_ROW, PULL_ROW
    ).items():
        offsets = [ClientOffset(e.at, e.committed, e.what == PULL_ROW) for e in of_client]
        found += [(client_id, *sample) for sample in clock_samples(offsets, map(change, changes[*key]))]
    return found


def copies_by_rule(
    events: list[Event], slaves: Mapping[str, Mapping[int, int]], reach_ms: int
) -> dict[Row, tuple[list[Row], list[Row]]]:
    """By queue, group and slave: minutes in which one of the files changed, and spans in which the copy was stale."""
    changes, found = grouped(events, key_of, CHANGE_ROW), {}
    for key, of_key in changes.items():
        of_name = slaves.get(queue_of(key)[0], {})
        of_master = [change(e) for e in of_key if e.saved_by_master]
        of_slaves = {e.broker_id for e in of_key if not e.saved_by_master}
        for slave_id in of_slaves | (set(of_name) if of_master else set()):
            of_slave = [change(e) for e in of_key if e.broker_id == slave_id]
            # Of a slave of which no copy is listed, only its own changes are judged.
            of_both = of_master if slave_id in of_name else []
            minutes = missing_by_minute(of_both, of_slave)
            spans = stale_spans(of_both, of_slave, of_name.get(slave_id), reach_ms)
            found[*key, slave_id] = [tuple(minute) for minute in minutes], [tuple(span) for span in spans]
    return found
