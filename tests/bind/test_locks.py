"""The law of the locks of queues through each face."""

from __future__ import annotations

from typing import Any

from mqreplay.bind import functions


def test_try_lock(ask: Any, face: str) -> None:
    cases = [
        ((None, None, "c", 0), ask.value(True)),
        (("c", None, "c", 0), ask.value(True)),
        (("d", None, "c", 0), ask.value(None)),
        (("d", 0, "c", 60_000), ask.value(False)),
        (("d", 0, "c", 60_001), ask.value(True)),
        (("d", 0, None, 0), ask.error("NullArgument", "client_id is null")),
    ]
    ask.check(face, functions.try_lock, cases)
