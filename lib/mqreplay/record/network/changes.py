"""Which answers are written: those that differ from the answer before, and one a minute of the others.

An answer may also have values that usually change from poll to poll, such as the smallest unfinished offset of a queue.
Then the answers that repeat one are written: that it did not change is the news.
"""

from __future__ import annotations

from collections.abc import Container, Hashable
from dataclasses import dataclass
from typing import Final, NamedTuple

REPEAT_MS: Final = 60_000


class Decision(NamedTuple):
    """Whether to write a line.

    ``previous_ts`` is the time of the last poll that gave the value of the line before; None for the first. ``stays``:
    a value that usually changes did not; the answer before shows it, too.
    """

    is_written: bool
    is_change: bool
    previous_ts: int | None
    stays: bool = False


@dataclass(slots=True)
class _Last:
    signature: Hashable
    answered: int  # ts of the last answer with the signature
    written: int  # ts of the last line
    heads: frozenset[Hashable]


class Changes:
    """The last answer of each poll target.

    >>> changes = Changes(5_000)
    >>> changes.of("group", "members a", 0), changes.of("group", "members a", 5_000)
    (Decision(is_written=True, is_change=True, previous_ts=None, stays=False), \
Decision(is_written=False, is_change=False, previous_ts=0, stays=False))
    >>> changes.of("group", "members a, b", 10_000)
    Decision(is_written=True, is_change=True, previous_ts=5000, stays=False)
    >>> heads = (frozenset({7}), frozenset({8}), frozenset({8}))
    >>> [changes.of("client", "queue 0", ts, heads=each).is_written for ts, each in enumerate(heads)]
    [True, False, True]
    """

    def __init__(self, interval_ms: int) -> None:
        """Take ``interval_ms``, that of the most frequent polls: a line is repeated before it is a minute old."""
        self._interval = interval_ms
        self._last: dict[Hashable, _Last] = {}

    def of(
        self,
        key: Hashable,
        signature: Hashable,
        ts: int,
        period_ms: int | None = None,
        is_kept: bool = False,
        heads: frozenset[Hashable] = frozenset(),
    ) -> Decision:
        """Decide about an answer of ``key`` at ``ts``, and store it.

        ``period_ms``: the poll interval of the key. ``is_kept``: write it in any case. ``heads``: the values that
        usually change.
        """
        last = self._last.get(key)
        if last is None:
            self._last[key] = _Last(signature, ts, ts, heads)
            return Decision(True, True, None)
        previous, is_change = last.answered, last.signature != signature
        is_due = ts - last.written + (period_ms or self._interval) > REPEAT_MS
        stays = not last.heads.isdisjoint(heads)
        last.answered, last.heads = ts, heads
        is_written = is_change or is_due or is_kept or stays
        if is_written:
            last.signature, last.written = signature, ts
        return Decision(is_written, is_change, previous, stays)

    def keep(self, keys: Container[Hashable]) -> None:
        """Forget all targets that are no longer polled."""
        self._last = {key: last for key, last in self._last.items() if key in keys}
