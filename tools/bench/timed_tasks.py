"""An engine that measures the processor time of each task (shards.py). Workers import this module."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mqreplay.engines.engine import Context, Engine, Item, Result
from mqreplay.engines.local import LocalEngine


@dataclass(frozen=True)
class Pass:
    """One call of Engine.map: the function's name, its items, and the CPU seconds of each."""

    name: str
    items: tuple[Any, ...]
    seconds: tuple[float, ...]


class TimingEngine:
    """Runs tasks on another engine, and keeps the passes in the order of their ends."""

    def __init__(self, engine: Engine) -> None:
        """``engine`` runs the tasks, each in a process that runs no other task at that time."""
        self._engine, self._may_stay = engine, False
        self.pass_runner = functools.partial(LocalEngine.pass_runner, self)
        self.decoders = functools.partial(LocalEngine.decoders, self)
        self.clusters_at_once = engine.clusters_at_once
        self.progress, self.cancel, self.expect = engine.progress, engine.cancel, engine.expect
        self.passes: list[Pass] = []

    def map(
        self, function: Callable[[Item, Context], Result], items: Sequence[Item], context: Context
    ) -> Iterator[Result]:
        """As Engine.map."""
        timed = list(self._engine.map(call_timed, items, (function, context)))
        self.passes.append(Pass(function.__name__, tuple(items), tuple(seconds for _, seconds in timed)))
        return (result for result, _ in timed)


def call_timed(item: Any, given: tuple[Callable[[Any, Any], Any], Any]) -> tuple[Any, float]:
    """Call the function of ``given`` with its context; return the result and the CPU seconds of this process."""
    function, context = given
    began = time.process_time()
    result = function(item, context)
    return result, time.process_time() - began
