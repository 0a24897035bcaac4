"""Calls that a capture of several interfaces has on two connections: before and after a translation of addresses (NAT).

A process numbers its requests (RemotingCommand#opaque), and does not send one twice.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from mqreplay.decode.capture.calls import Call
from mqreplay.decode.capture.codes import FROM_BROKERS

NEAR_US: Final = 10_000  # a host forwards a packet within microseconds
MOST_RECENT: Final = 10_000  # calls


class TranslatedCalls:
    """The last calls of named clients. Both copies of a request begin within `NEAR_US`, with few calls between them."""

    def __init__(self) -> None:
        """Start without a call."""
        # Connection and begin by the hash of a request, which may be large.
        self._recent: OrderedDict[int, tuple[int, int]] = OrderedDict()

    def repeats(self, call: Call, client_id: str | None) -> bool:
        """Return whether another connection of the client had the same request at the same time."""
        if client_id is None:
            return False
        request = call.request
        broker = call.asker if request.code in FROM_BROKERS else None
        same = client_id, broker, request.code, request.opaque, request.body, request.body_bytes
        key = hash((same, tuple(request.ext.items())))
        connection, begin_us = self._recent.get(key, (call.connection, 0))
        if connection != call.connection and abs(begin_us - request.begin_us) <= NEAR_US:
            return True
        self._recent[key] = call.connection, request.begin_us
        if len(self._recent) > MOST_RECENT:
            self._recent.popitem(last=False)
        return False
