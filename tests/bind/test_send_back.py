"""The laws of messages that are sent back, through each face."""

from __future__ import annotations

from typing import Any

from mqreplay.bind import functions


def test_retry_delay_level(ask: Any, face: str) -> None:
    cases = [
        ((0, 0), ask.value(3)),
        ((0, 15), ask.value(18)),
        ((2, 15), ask.value(2)),
        ((None, 0), ask.error("NullArgument", "delay_level is null")),
    ]
    ask.check(face, functions.retry_delay_level, cases)


def test_is_dead_letter(ask: Any, face: str) -> None:
    cases = [
        ((0, 16, 16, None), ask.value(True)),
        ((0, 15, 16, None), ask.value(False)),
        ((0, 16, 16, 20), ask.value(False)),
        ((0, 2, 16, 2), ask.value(True)),
        ((-1, 0, 16, 20), ask.value(True)),
        ((0, None, 16, 20), ask.error("NullArgument", "reconsume_times is null")),
    ]
    ask.check(face, functions.is_dead_letter, cases)
