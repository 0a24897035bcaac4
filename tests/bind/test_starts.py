"""The laws of the start of a queue through each face."""

from __future__ import annotations

from typing import Any

from mqreplay.bind import functions
from mqreplay.core.compute_pull_from import ConsumeFromWhere


def test_compute_pull_from_where(ask: Any, face: str) -> None:
    first, last, time = "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_TIMESTAMP"
    cases = [
        ((first, 7, "t", 90), ask.value(7)),
        ((first, -1, "t", 90), ask.value(0)),
        ((last, -1, "t", 90), ask.value(90)),
        ((last, -1, "%RETRY%g", 90), ask.value(0)),
        ((last, -1, "t", None), ask.value(-1)),
        ((last, -2, "t", 90), ask.value(-1)),
        ((time, -1, "t", 30), ask.value(30)),
        (("LAST", -1, "t", 90), ask.error("UnknownConsumeFromWhere", "LAST is no ConsumeFromWhere")),
        ((last, None, "t", 90), ask.error("NullArgument", "last_offset is null")),
    ]
    cases += [((where.value, 5, "t", None), ask.value(5)) for where in ConsumeFromWhere]
    ask.check(face, functions.compute_pull_from_where, cases)


def test_query_consumer_offset(ask: Any, face: str) -> None:
    cases = [
        ((7, 0, False, None), ask.value(7)),
        ((-1, 0, True, None), ask.value(0)),
        ((-1, 0, True, False), ask.value(None)),
        ((-1, 5, True, None), ask.value(None)),
        ((None, 5, True, None), ask.error("NullArgument", "offset is null")),
    ]
    ask.check(face, functions.query_consumer_offset, cases)
