"""Hands frames to the parameters of functions by name. Each frame is computed once, when a function first needs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from inspect import Parameter, signature
from itertools import chain
from typing import Any

import polars as pl

from mqreplay.decisions.decision import Result, Step

# A text names another frame, or an attribute of one, such as "polled_night.holes"; several texts are frames to append.
Steps = Mapping[str, Step[Any] | str | tuple[str, ...]]


class Frames:
    """Values by name, and the steps that compute others from them.

    >>> from mqreplay.decisions.decision import by_name
    >>> def twice(number: int) -> int:
    ...     return 2 * number
    >>> frames = Frames({"one": 1}, {"two": by_name(twice, number="one"), "four": by_name(twice, number="two")})
    >>> frames["four"], frames["four.real"]
    (4, 4)
    """

    def __init__(self, values: Mapping[str, Any], steps: Steps) -> None:
        """Take the known values. A step with the name of a value is not run."""
        self._values, self._steps = dict(values), steps
        self._running: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self._values or name in self._steps

    def __getitem__(self, name: str) -> Any:
        """Return a value. Raises LookupError if no step gives it, or if it needs itself."""
        if name not in self._values:
            self._values[name] = self._computed(name)
        return self._values[name]

    def require(self, name: str) -> None:
        """Compute a value now, if it is not known yet."""
        self.__getitem__(name)

    def call(self, step: Step[Result]) -> Result:
        """Call the function of a step. A parameter with a default gets a value only if there is one of its name."""
        arguments = {
            parameter.name: self[step.renamed.get(parameter.name, parameter.name)]
            for parameter in signature(step.function).parameters.values()
            if parameter.default is Parameter.empty or parameter.name in step.renamed or parameter.name in self
        }
        return step.function(**arguments)

    def _computed(self, name: str) -> Any:
        if name in self._running:
            raise LookupError(f"frame {name} needs itself: {' -> '.join([*self._running, name])}")
        step = self._steps.get(name)
        owner, _, attribute = name.rpartition(".")
        if step is None and not owner:
            raise LookupError(f"no step gives the frame {name}, which {' -> '.join(self._running) or 'the day'} needs")
        self._running.append(name)
        try:
            if step is None:
                return getattr(self[owner], attribute)
            if isinstance(step, tuple):
                return pl.concat([self[part] for part in step])
            return self[step] if isinstance(step, str) else self.call(step)
        finally:
            self._running.pop()


def joined(*parts: Steps) -> Steps:
    """Return all steps. Raises ValueError if two give one frame."""
    steps = {name: step for part in parts for name, step in part.items()}
    if len(steps) < sum(map(len, parts)):
        raise ValueError(f"two steps give {[name for name, n in Counter(chain(*parts)).items() if n > 1]}")
    return steps


def outputs(name: str, kind: type[Any]) -> dict[str, str]:
    """Return the fields of the dataclass that the step ``name`` gives, as frames by their own names.

    Its field ``judged`` has counts, not frames.
    """
    return {each.name: f"{name}.{each.name}" for each in fields(kind) if each.name != "judged"}
