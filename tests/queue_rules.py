"""The rules of what is judged queue by queue in plain Python, row by row: numpy is checked against them."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mqreplay.core.status_windows import status_windows
from mqreplay.judge.queue_events import CHANGE, COMMIT, PULL, STATS
from queue_recordings import HOUR, MINUTE, SECOND, Event, Queue, Row


def ends_by_rule(events: list[Event]) -> list[Row]:
    """queue, at, low, high: a master's answer when it came, or when it was asked for, and topic statistics."""
    return [
        (e.queue, e.at if e.also_at is None else e.also_at, e.min_offset, e.max_offset)
        for e in events
        if e.what == STATS or (e.what == PULL and e.broker_id == 0 and e.max_offset is not None)
    ]


def ends_of_queues(events: list[Event]) -> dict[Queue, list[Row]]:
    """at, low, high of each queue."""
    told = defaultdict(list)
    for queue, *end in ends_by_rule(events):
        told[queue].append(tuple(end))
    return told


def progress_by_rule(events: list[Event]) -> list[Row]:
    hours = defaultdict(list)
    for e in events:
        if e.what == CHANGE:
            hours[e.broker_name, e.broker_id, e.topic, e.consumer_group, e.queue_id, e.at // HOUR * HOUR].append(e)
    told, found = ends_of_queues(events), []
    for (broker_name, broker_id, topic, group, queue_id, hour), changes in hours.items():
        changes.sort(key=lambda e: e.at)
        began = changes[0].committed if changes[0].previous_offset is None else changes[0].previous_offset
        known = [v for e in changes for v in (e.previous_offset, e.committed) if v is not None]
        # At the end of the hour is not too late; before it began is of another hour.
        before = [(at, high) for at, _, high in told[broker_name, topic, queue_id] if at <= hour + HOUR]
        at, high = max(before, key=lambda end: end[0], default=(hour, None))
        found.append(
            (
                *(broker_name, broker_id, topic, group, queue_id, hour),
                *(began, changes[-1].committed, min(known, default=None), max(known, default=None), len(changes)),
                high if at >= hour else None,
            )
        )
    return found


def suspects_by_rule(events: list[Event]) -> dict[Row, set[str]]:
    """Of each queue that is suspect, why."""
    told, found = ends_of_queues(events), defaultdict(set)
    for e in events:
        if e.what != CHANGE:
            continue
        key, new = (e.consumer_group, e.broker_name, e.topic, e.queue_id), e.committed
        if new is None:
            found[key].add("vanished")
            continue
        if e.previous_offset is not None and new < e.previous_offset:
            found[key].add("fell")
        began = e.at if e.also_at is None else e.also_at
        after = [(at, high) for at, _, high in told[e.queue] if high is not None and at >= e.at]
        before = [(at, low) for at, low, _ in told[e.queue] if low is not None and at <= began]
        if after and new > min(after)[1]:
            found[key].add("past the end told next")
        if before and new < max(before)[1]:
            found[key].add("before the beginning told last")
    return found


def skips_by_rule(events: list[Event]) -> list[Row]:
    pulls, found = defaultdict(list), []
    for e in events:
        if e.what == PULL:
            pulls[e.consumer_group, e.broker_name, e.topic, e.queue_id].append(e)
    for key, of_key in pulls.items():
        reached = None
        for e in sorted(of_key, key=lambda e: (e.at, e.opaque is not None, e.opaque)):
            asked, high = e.queue_offset, e.max_offset
            if None not in (asked, reached, high) and reached < asked <= high:
                found.append((*key, reached, asked, e.at))
            reached = max((v for v in (reached, asked, e.next_begin_offset) if v is not None), default=None)
    return found


class Word(NamedTuple):
    """An offset that somebody told of, at an instant."""

    at: int
    offset: int
    by: str


def words_by_rule(events: list[Event]) -> dict[Row, list[Word]]:
    """By queue and group: all that clients and the master's file told of its offset."""
    told = defaultdict(list)
    for e in events:
        if e.committed is not None and (e.saved_by_master or e.what in (COMMIT, PULL)):
            by = "" if e.what == CHANGE else str(e.client_id)
            told[e.consumer_group, e.topic, e.broker_name, e.queue_id].append(Word(e.at, e.committed, by))
    return told


def moves_by_rule(words: list[Word]) -> list[Word]:
    """When each client, and the master's file, told of another offset than before."""
    moves = []
    for by in {word.by for word in words}:
        said = sorted(word for word in words if word.by == by)
        moves += said[:1] + [b for a, b in itertools.pairwise(said) if b.offset != a.offset]
    return sorted(moves, key=lambda move: (move.at, move.offset))


def shown_by_rule(events: list[Event], key: Row, words: list[Word], last_copies: Mapping[str, int]) -> list[Row]:
    """at, offset: moments in which the offset was still this, by a word or by a copy of the master's file."""
    group, topic, broker_name, queue_id = key
    changes = [
        e
        for e in events
        if e.saved_by_master
        and e.committed is not None
        and (e.consumer_group, *e.queue) == (group, broker_name, topic, queue_id)
    ]
    shown = [(word.at, word.offset) for word in words]
    shown += [(e.also_at, e.previous_offset) for e in changes if None not in (e.also_at, e.previous_offset)]
    if changes and broker_name in last_copies:
        newest = max(changes, key=lambda e: (e.at, e.committed))
        shown.append((last_copies[broker_name], newest.committed))
    return shown


def standing_by_rule(events: list[Event], stuck_s: int, last_copies: Mapping[str, int]) -> Iterable[tuple[Row, str]]:
    """The stretches, each with what ended it."""

    def is_long(begin: int, end: int) -> bool:
        return end // 1000 - begin // 1000 >= least_ms

    told = ends_of_queues(events)
    sent = {(e.consumer_group, e.topic, e.broker_name, e.queue_id) for e in events if e.what == COMMIT}
    for key, words in words_by_rule(events).items():
        _, topic, broker_name, queue_id = key
        moves = moves_by_rule(words)
        least_ms = stuck_s * 1000
        if key not in sent:
            pulled = sorted(word.at // 1000 for word in words if word.by)
            steps = sorted(b - a for a, b in itertools.pairwise(pulled))
            least_ms = max([least_ms, *(3 * step for step in steps[(len(steps) - 1) // 2 :][:1])])
        shown = shown_by_rule(events, key, words, last_copies)
        for move, after in itertools.zip_longest(moves, moves[1:]):
            since, until = move.at, after.at if after else None
            if key not in sent:
                # What it was after it was last shown is not known, nor whether it moved just then.
                still = [
                    at for at, offset in shown if offset == move.offset and at >= since and (not after or at < after.at)
                ]
                until = max([since, *still])
            if until is not None and not is_long(since, until):
                continue
            waiting = {
                at: high - move.offset
                for at, _, high in sorted(told[broker_name, topic, queue_id], key=lambda end: (end[0], end[2] or 0))
                if at >= since and (until is None or at <= until) and high is not None and high > move.offset
            }
            if not waiting:
                continue
            from_ts, to_ts = min(waiting), max(waiting) if until is None else until
            if is_long(from_ts, to_ts):
                ended = (
                    ("moved" if after else "end of recording") if key in sent else ("copy" if after else "last copy")
                )
                yield (*key, move.offset, since, from_ts, to_ts, max(waiting.values())), ended


def windows_by_rule(events: list[Event], window_s: int, until: int) -> list[Row]:
    commits, source = defaultdict(list), {}
    for e in events:
        if e.counts:
            key = e.consumer_group, e.topic, e.broker_name, e.queue_id
            commits[key].append((e.at // 1000, e.committed))
            source[key] = "offset_commit" if e.what == COMMIT else "offset_change"
    told, found = ends_of_queues(events), []
    for key, of_key in commits.items():
        _, topic, broker_name, queue_id = key
        seconds = defaultdict(list)
        for at, _, high in told[broker_name, topic, queue_id]:
            if high is not None:
                seconds[at // SECOND].append((at // 1000, high))
        # One end a second: the last instant, the highest end.
        heads = [tuple(map(max, zip(*seconds[second], strict=True))) for second in sorted(seconds)]
        lists = [[pair[i] for pair in pairs] for pairs in (sorted(of_key), heads) for i in (0, 1)]
        law = status_windows(*lists, window_s * 1000, until)
        found.append((*key, source[key], [window._asdict() for window in law]))
    return found


def clocks_by_rule(events: list[Event]) -> list[Row]:
    """client, ms when it said its last word in a rise, ms of the copy, ms that its clock is off, how unsure."""
    words: dict[Row, list[Event]] = defaultdict(list)
    changes: dict[Row, list[Event]] = defaultdict(list)
    for e in events:
        if e.what in (COMMIT, PULL) and (e.committed or 0) > 0:
            words[e.client_id, e.consumer_group, *e.queue].append(e)
        if e.saved_by_master and e.committed is not None and (e.previous_offset, e.also_at) != (None, None):
            changes[e.consumer_group, *e.queue].append(e)
    found = []
    for (client, *place), said in words.items():
        said.sort(key=lambda e: (e.at, e.what))
        passed = [_passed(e) for e in changes[*place]]
        for copy in changes[*place]:
            own = _passed(copy)
            within = [
                (word, since)
                for since, word in itertools.pairwise(said)
                if word.committed in own and not any(e.committed == word.committed for e in said[: said.index(word)])
            ]
            if copy.committed > (copy.previous_offset or 0) and within and _meeting(own, passed) == 1:
                word, since = max(within, key=lambda pair: pair[0].committed)
                since_us = word.at if word.what == COMMIT else since.at
                before = copy.at if copy.also_at is None else copy.also_at
                at, copied = word.at // 1000, copy.at // 1000
                of_word, of_copy = (max(ms - 5_000, 0) // 2 for ms in (at - since_us // 1000, copied - before // 1000))
                found.append((client, at, copied, (at - of_word) - (copied - of_copy), of_word + of_copy))
    return found


def _passed(change: Event) -> range:
    """The offsets that a change passed: from the one after where it was, up or down."""
    new, old = change.committed, change.previous_offset or 0
    return range(old + 1, new + 1) if new > old else range(new, old + 1)


def _meeting(one: range, ranges: list[range]) -> int:
    return sum(max(one.start, other.start) < min(one.stop, other.stop) for other in ranges)


def copies_by_rule(events: list[Event], slaves: Mapping[str, Mapping[int, int]]) -> dict[Row, list[Event]]:
    """By queue, group and slave: changes of the master's file and of the slave's, at one instant the slave's first."""
    found: dict[Row, list[Event]] = defaultdict(list)
    for e in events:
        if e.what == CHANGE:
            for slave in [e.broker_id] if e.broker_id else slaves.get(e.broker_name, {}):
                found[e.consumer_group, e.topic, e.broker_name, e.queue_id, slave].append(e)
    return {key: sorted(rows, key=lambda e: (e.at, not e.broker_id)) for key, rows in found.items()}


def lacked_by_rule(changes: list[Event]) -> list[Row]:
    """minute, messages and unknown since the minute before, whether the master's file changed, whether the slave's."""
    minutes = {e.at // MINUTE * MINUTE for e in changes}
    found, before = [], (0, 0)
    for minute in sorted(minutes):
        until = [e for e in changes if e.at < minute + MINUTE]
        held, copied = (
            next((e.committed for e in reversed(until) if e.saved_by_master == master), None)
            for master in (True, False)
        )
        both = held is not None and copied is not None
        now = (max(held - copied, 0) if both else 0, int((held is None) != (copied is None)))
        within = {e.saved_by_master for e in until if e.at >= minute}
        found.append((minute, now[0] - before[0], now[1] - before[1], True in within, False in within))
        before = now
    return found


class Seen(NamedTuple):
    """Something seen of a slave's copy: at an instant (microseconds), in the order of ``turn`` in its millisecond."""

    at: int
    turn: int
    held: tuple[int | None] | None = None  # what the master's file held from then on
    ended: int | None = None  # what it held until then
    copied: tuple[int | None] | None = None  # what the slave's held from then on; none: not known
    asked: tuple[int | None] | None = None  # what the slave's held still

    @property
    def ms(self) -> int:
        return self.at // 1000


def seen_by_rule(changes: list[Event], last: int | None) -> list[Seen]:
    """``last``: when the slave's file was last copied."""
    seen = []
    for e in changes:
        if e.saved_by_master:
            seen.append(Seen(e.at, 0, held=(e.committed,), ended=e.previous_offset))
            continue
        seen.append(Seen(e.at, 1, copied=(e.committed,)))
        if None not in (e.previous_offset, e.also_at):
            seen.append(Seen(e.also_at, 2, copied=(None,), asked=(e.previous_offset,)))
    of_slave = [e for e in changes if not e.saved_by_master]
    if of_slave and last is not None and last >= of_slave[-1].at:
        seen.append(Seen(last, 3, asked=(of_slave[-1].committed,)))
    return sorted(seen, key=lambda s: (s.ms, s.turn, s.at))


def behind_by_rule(seen: list[Seen], reach_ms: int) -> list[Row]:
    """began_ms, from_ms, to_ms, lacks, holds, has: spans before moments at which the slave had less than the master."""
    found, began, prior = [], None, None
    for number, now in enumerate(seen):
        copied = next((s.copied[0] for s in reversed(seen[:number]) if s.copied), None)
        holds = next((s.held[0] for s in reversed(seen[:number]) if s.held), None)
        has = now.asked[0] if now.asked else copied if now.held else None
        within = [s for s in seen if s.held and s.ms > now.ms - reach_ms and (s.ms, s.turn) <= (now.ms, now.turn)]
        stale = None not in (has, holds) and has < holds
        stale = stale and all(s.ended is not None and has < s.ended for s in within)
        if stale:
            since = prior if began is not None else now.ms if prior is None else min(now.ms, prior + reach_ms)
            began = since if began is None else began
            found.append((began, since, now.ms, holds - has, holds, has))
        else:
            began = None
        prior = now.ms
    return found
