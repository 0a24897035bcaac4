"""Which answers are written: those that differ from the answer before, and one a minute of the others."""

from __future__ import annotations

from collections.abc import Container, Hashable
from dataclasses import dataclass
from typing import Final, NamedTuple

REPEAT_MS: Final = 60_000


class Decision(NamedTuple):
    """Whether to write a line.

    ``previous_ts`` is the time of the last poll that gave the value of the line before; None for the first.
    """

    is_written: bool
    is_change: bool
    previous_ts: int | None


@dataclass(slots=True)
class _Last:
    signature: Hashable
    answered: int  # ts of the last answer with the signature
    written: int  # ts of the last line


class Changes:
    """The last answer of each poll target.

    >>> changes = Changes(5_000)
    >>> changes.of("group", "members a", 0), changes.of("group", "members a", 5_000)
    (Decision(is_written=True, is_change=True, previous_ts=None), Decision(is_written=False, is_change=False, \
previous_ts=0))
    >>> changes.of("group", "members a, b", 10_000)
    Decision(is_written=True, is_change=True, previous_ts=5000)
    """

    def __init__(self, interval_ms: int) -> None:
        """Take ``interval_ms``, that of the most frequent polls: a line is repeated before it is a minute old."""
        self._interval = interval_ms
        self._last: dict[Hashable, _Last] = {}

    def of(self, key: Hashable, signature: Hashable, ts: int, period_ms: int | None = None) -> Decision:
        """Decide about an answer of ``key`` at ``ts``, and store it. ``period_ms``: the poll interval of the key."""
        last = self._last.get(key)
        if last is None:
            self._last[key] = _Last(signature, ts, ts)
            return Decision(True, True, None)
        previous, is_change = last.answered, last.signature != signature
        is_due = ts - last.written + (period_ms or self._interval) > REPEAT_MS
        last.answered = ts
        if is_change or is_due:
            last.signature, last.written = signature, ts
        return Decision(is_change or is_due, is_change, previous)

    def keep(self, keys: Container[Hashable]) -> None:
        """Forget all targets that are no longer polled."""
        self._last = {key: last for key, last in self._last.items() if key in keys}
