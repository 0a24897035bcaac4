"""gold.pull_route, a file of the pull log at a time: what each place was told in the files before is handed on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from .delta import Written, coded, constant, days, hex_strings, instants, write_file
from .pull_lines import NULL, UNKNOWN, Numbers, PullFile
from .routes import Routes, judge

Skip = tuple[str, str, str, int, int, int, int]  # group, topic, broker, queue, skipped from, skipped to, ts


@dataclass
class Opening:
    """What a file's places had before it: the last suggestion, its time, and how far the group had come."""

    told: np.ndarray
    answered: np.ndarray
    reached: np.ndarray


def openings(files: list[PullFile]) -> list[Opening]:
    """For each file, which are in the order of their times, what went before it."""
    told: dict[tuple, int] = {}
    answered: dict[tuple, int] = {}
    reached: dict[tuple, int] = {}
    made, last_ts = [], 0
    for file in files:
        if file.first_ts < last_ts:
            raise ValueError("files of pulls overlap in time: the peers are not written for that")
        last_ts = file.last_ts
        before = [
            [told.get(p, NULL) for p in file.places],
            [answered.get(p, NULL) for p in file.places],
            [reached.get(p[1:], NULL) for p in file.places],
        ]
        made.append(Opening(*[np.array(column, np.int64) for column in before]))
        for place, said, at, come in zip(
            file.places, file.told.tolist(), file.answered.tolist(), file.reached.tolist(), strict=True
        ):
            if said != NULL:
                told[place] = said
            answered[place] = at
            reached[place[1:]] = max(come, reached.get(place[1:], NULL))
    return made


def last_told(numbers: Numbers, opening: Opening) -> np.ndarray:
    """The suggestion that each pull's client kept for its queue then; NULL if none was ever given."""
    order = np.argsort(numbers.place, kind="stable")
    place, told = numbers.place[order], numbers.told[order]
    same = place[1:] == place[:-1]
    asked, answered = numbers["request_ts"][order], numbers.answered[order]
    first = np.flatnonzero(np.r_[True, ~same])
    if (answered[:-1] > asked[1:])[same].any() or (opening.answered[place[first]] > asked[first]).any():
        raise ValueError("a queue was pulled before its last answer: the peers are not written for that")
    rows = np.arange(len(place))
    starts = np.maximum.accumulate(np.where(np.r_[True, ~same], rows, 0))
    last = np.r_[-1, np.maximum.accumulate(np.where(told != NULL, rows, -1))[:-1]]
    kept = np.where(last >= starts, told[last], opening.told[place])
    found = np.empty_like(kept)
    found[order] = kept
    return found


def skips(numbers: Numbers, places: list[tuple], opening: Opening) -> list[Skip]:
    """Pulls that begin past all that their group was given of the queue."""
    queues: dict[tuple, int] = {}
    queue_of = np.array([queues.setdefault(p[1:], len(queues)) for p in places], np.int64)
    before = np.full(len(queues), NULL)
    np.maximum.at(before, queue_of, opening.reached)
    queue = queue_of[numbers.place]
    order = np.argsort(queue, kind="stable")
    queue, offset = queue[order], numbers["queue_offset"][order]
    top = 1 << 42  # offsets of one queue lie above those of the one before it, so one running maximum does for all
    run = np.maximum.accumulate(queue * top + numbers.reached[order])
    same = np.r_[False, queue[1:] == queue[:-1]]
    came = np.where(same, np.r_[0, run[:-1]] - queue * top, NULL)
    came = np.maximum(came, before[queue])
    hit = np.flatnonzero((came != NULL) & (offset > came) & (offset <= numbers["max_offset"][order]))
    names, ts = list(queues), numbers["request_ts"][order]
    return [(*names[queue[i]], int(came[i]), int(offset[i]), int(ts[i])) for i in hit]


def judge_file(
    file: PullFile, opening: Opening, routes: Routes, born: set[str], cluster: str, table: str
) -> tuple[Written, list[Skip]]:
    """A file's pulls into gold.pull_route; and those that skip."""
    numbers = Numbers.of(file.numbers)
    kept = last_told(numbers, opening)
    is_born = np.array([p[0] in born for p in file.places])[numbers.place]
    node = np.where(kept == UNKNOWN, NULL, np.where((kept == NULL) & is_born, 0, kept))
    pair = np.array([routes.pairs.get((p[0], p[3]), -1) for p in file.places], np.int64)[numbers.place]
    now, before, fresh = routes.at(pair, numbers["request_ts"])
    actual = np.array(numbers["broker_id"])
    cases = np.stack([now, before, fresh, node, actual])
    packed = np.zeros(cases.shape[1], np.int64)
    for column in cases:
        values, codes = np.unique(column, return_inverse=True)
        packed = packed * len(values) + codes
    _, first, which = np.unique(packed, return_index=True, return_inverse=True)
    judged = [_judge_case(routes, cases[:, i].tolist()) for i in first]
    rows = _rows(file, numbers, node, now, actual, which, judged, routes, cluster)
    return write_file(Path(table), rows), skips(numbers, file.places, opening)


def _judge_case(routes: Routes, case: list[int]) -> tuple[int | None, str, str, str | None]:
    now, before, fresh, node, actual = case
    states = [None if s < 0 else routes.states[s] for s in (now, before)]
    return judge(*states, bool(fresh), *[None if v == NULL else v for v in (node, actual)])


def _rows(
    file: PullFile,
    numbers: Numbers,
    node: np.ndarray,
    now: np.ndarray,
    actual: np.ndarray,
    which: np.ndarray,
    judged: list[tuple[int | None, str, str, str | None]],
    routes: Routes,
    cluster: str,
) -> pa.Table:
    place, asked = numbers.place, np.array(numbers["request_ts"])
    clients, groups, topics, names, queues = zip(*file.places, strict=True)
    expected = pa.array([case[0] for case in judged], pa.int64())
    ids = pa.array([sorted(dict(state)) for state in routes.states], pa.list_(pa.int64()))
    gathered = pa.array(which, pa.int32())
    return pa.table(
        {
            "cluster": constant(cluster, len(place)),
            "day": days(asked),
            "consumer_group": words(groups, place),
            "topic": words(topics, place),
            "broker_name": words(names, place),
            "queue_id": pa.array(np.array(queues, np.int32)[place]),
            "client_id": words(clients, place),
            "request_ts": instants(asked),
            "pull_from_which_node": pa.array(node, pa.int64(), mask=node == NULL),
            "route_broker_ids": ids.take(pa.array(now, pa.int32(), mask=now < 0)),
            "expected_broker_id": expected.take(gathered),
            "actual_broker_id": pa.array(actual, pa.int64(), mask=actual == NULL),
            "from_slave": pa.array(actual != 0, mask=actual == NULL),
            "cause": coded(which, [case[3] for case in judged]),
            "judgement": coded(which, [case[1] for case in judged]),
            "reason": coded(which, [case[2] for case in judged]),
            "record_id": hex_strings(np.load(f"{file.numbers}.ids.npy")),
        }
    )


def words(texts: tuple[str, ...], place: np.ndarray) -> pa.DictionaryArray:
    """The word of each row's place, each distinct word once."""
    distinct: dict[str, int] = {}
    codes = np.array([distinct.setdefault(text, len(distinct)) for text in texts], np.int32)
    return coded(codes[place], list(distinct))
