"""The laws of sends through each face."""

from __future__ import annotations

from typing import Any

from mqreplay.bind import functions


def test_send_status(ask: Any, face: str) -> None:
    cases = [
        ((0,), ask.value("SEND_OK")),
        ((10,), ask.value("FLUSH_DISK_TIMEOUT")),
        ((11,), ask.value("SLAVE_NOT_AVAILABLE")),
        ((12,), ask.value("FLUSH_SLAVE_TIMEOUT")),
        ((2,), ask.value(None)),
        ((None,), ask.error("NullArgument", "response_code is null")),
    ]
    ask.check(face, functions.send_status, cases)
