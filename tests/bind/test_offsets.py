"""Offsets through each face: the client's, which only rise, and the broker's, which are what clients commit."""

from __future__ import annotations

import copy
from typing import Any

from mqreplay.bind import functions
from mqreplay.core.java import LONG_MAX, LONG_MIN


def test_compare_and_increase_only(ask: Any, face: str) -> None:
    cases = []
    for case, out in ask.vectors("compare_increase"):
        if case["case"] == "compareAndIncreaseOnly":
            target = case["start"]
            for value, moved in zip(case["values"], out["results"], strict=True):
                after = value if moved else target
                cases.append(((target, value), ask.value({"moved": moved, "offset": after})))
                target = after
            assert target == out["final"]
    cases.append(((None, 1), ask.error("NullArgument", "target is null")))
    ask.check(face, functions.compare_and_increase_only, cases)


def test_update_offset(ask: Any, face: str) -> None:
    cases = [
        ((None, 3, True), ask.value(3)),
        ((5, 3, True), ask.value(5)),
        ((5, 3, False), ask.value(3)),
        ((LONG_MIN, LONG_MAX, True), ask.value(LONG_MAX)),
        ((2**53, 2**53 + 1, True), ask.value(2**53 + 1)),
        ((1, None, True), ask.error("NullArgument", "offset is null")),
    ]
    ask.check(face, functions.update_offset, cases)


def test_commit_offset(ask: Any, face: str) -> None:
    cases = []
    for case, out in ask.vectors("compare_increase"):
        if case["case"] != "consumerOffsetManager":
            continue
        table: dict[str, dict[int, int]] = {}
        for op, group, topic, queue_id, *offset in case["ops"]:
            if op == "commit":
                before = copy.deepcopy(table)
                previous = table.setdefault(f"{topic}@{group}", {}).get(queue_id)
                table[f"{topic}@{group}"][queue_id] = offset[0]
                answer = {"previous_offset": previous, "offset_table": as_collected(table)}
                cases.append(((before, group, topic, queue_id, offset[0]), ask.value(answer)))
        assert {key: {str(q): at for q, at in queues.items()} for key, queues in table.items()} == out["table"]
    cases = cases[::10]
    after = {"previous_offset": None, "offset_table": as_collected({"T@g": {0: 5}})}
    cases.append(((None, "g", "T", 0, 5), ask.value(after)))
    cases.append((({}, None, "T", 0, 5), ask.error("NullArgument", "group is null")))
    ask.check(face, functions.commit_offset, cases)


def as_collected(table: dict[str, dict[int, int]]) -> list[Any]:
    """Maps as Arrow gives them back: pairs."""
    return [(key, list(queues.items())) for key, queues in table.items()]
