"""The law of flow control through each face."""

from __future__ import annotations

from typing import Any

from mqreplay.bind import functions


def test_flow_control(ask: Any, face: str) -> None:
    limits = (1000, 100, 2000)
    cases = [
        ((1001, 0, 0, False, *limits), ask.value("count")),
        ((1000, 101, 0, False, *limits), ask.value("size")),
        ((1000, 100, 2001, False, *limits), ask.value("span")),
        ((1000, 100, 2001, True, *limits), ask.value(None)),
        ((11, 0, 0, False, 10, 100, 2000), ask.value("count")),
        ((None, 0, 0, False, *limits), ask.error("NullArgument", "cached_count is null")),
    ]
    ask.check(face, functions.flow_control, cases)
