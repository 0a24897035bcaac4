"""The limits of a batch through each face."""

from __future__ import annotations

from typing import Any

import pytest

from mqreplay.bind import functions


@pytest.mark.first_case
def test_can_be_batch(ask: Any, face: str) -> None:
    cases = [
        ((8, 800, 100, True), ask.value(True)),
        ((9, 900, 100, True), ask.value(False)),
        ((9, 900, 100, False), ask.value(True)),
        ((33, 3300, 100, False), ask.value(False)),
        ((2, 65_537, 1, True), ask.value(False)),
        ((1, 1_000_000, 1_000_000, True), ask.value(True)),
        ((None, 900, 100, False), ask.error("NullArgument", "message_total is null")),
    ]
    ask.check(face, functions.can_be_batch, cases)
