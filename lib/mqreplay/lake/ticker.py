"""Progress messages at intervals during a step; a step of less than five seconds prints none."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

FIRST_S = 5.0  # so that a night of some seconds also shows how much of a step is done
EVERY_S = 15.0
LEAST_SHARE = 0.01  # below this share no estimate is possible


class Ticker:
    """Print the result of ``line`` for the elapsed seconds after each of `pauses`, until it is closed."""

    def __init__(
        self,
        say: Callable[[str], None],
        line: Callable[[float], str | None],
        every_s: float = EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take ``line``, which returns None if there is nothing new."""
        self._say, self._line, self._every_s, self._clock = say, line, every_s, clock
        self._began = clock()
        self._over = threading.Event()

    def seconds(self) -> float:
        """Return the seconds since it was made."""
        return self._clock() - self._began

    def __enter__(self) -> Self:
        """Start printing."""
        self._thread = threading.Thread(target=self._tell, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop printing."""
        self._over.set()
        self._thread.join()

    def _tell(self) -> None:
        for pause in pauses(self._every_s):
            if self._over.wait(pause):
                return
            if (text := self._line(self.seconds())) is not None:
                self._say(text)


def pauses(every_s: float) -> Iterator[float]:
    """Yield the seconds before each message: few at first, since most steps are short.

    >>> [pause for pause, _ in zip(pauses(EVERY_S), range(4))]
    [5.0, 10.0, 15.0, 15.0]
    """
    pause = FIRST_S
    while True:
        yield min(pause, every_s)
        pause = min(2 * pause, every_s)


def pace(done: float, size: float, seconds: float, share: float | None = None) -> str:
    """Return the progress text: share of ``size`` (bytes) done after these seconds, and the remaining time.

    >>> pace(10e6, 40e6, 4)
    '10 of 40 MB, 2.5 MB/s, about 12 s left'
    >>> pace(10e6, 40e6, 4, share=0.5)
    '10 of 40 MB, 2.5 MB/s, about 4 s left'
    >>> pace(0.1e6, 40e6, 4)
    '0 of 40 MB'
    """
    text = f"{done / 1e6:,.0f} of {size / 1e6:,.0f} MB"
    share = done / max(size, 1) if share is None else share
    if share < LEAST_SHARE:
        return text
    return f"{text}, {done / seconds / 1e6:,.1f} MB/s, {time_left(seconds, share)}"


def time_left(seconds: float, share: float) -> str:
    """Return the remaining time if ``share`` of the work took these seconds.

    >>> time_left(30, 0.25)
    'about 90 s left'
    """
    return f"about {seconds * (1 - share) / share:,.0f} s left"
