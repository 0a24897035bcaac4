"""Failures of one recording or one cluster, which do not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from mqreplay.machine.crash import failure_of, is_of_machine
from mqreplay.machine.stop_signals import stopped_by
from mqreplay.words.errors import InputErrors, MqreplayError, StoreUnavailable, WarehouseLocked


@dataclass(frozen=True)
class Failure:
    """What failed, and the error."""

    what: Literal["recording", "cluster"]
    name: str
    error: Exception

    @property
    def reason(self) -> str:
        """Return why it failed, in a line."""
        return str(self.error) if self.is_expected else f"an unexpected error ({failure_of(self.error)[1]})"

    @property
    def is_input(self) -> bool:
        """Return whether the input is bad; else the run failed."""
        return self.is_expected and not isinstance(self.error, StoreUnavailable)

    @property
    def is_expected(self) -> bool:
        """Return whether the text of the error says all that a user needs."""
        return isinstance(self.error, MqreplayError)

    def as_dict(self, reason: str) -> dict[str, str]:
        """Return the failure as plain values, with its ``reason`` in one line."""
        return {self.what: self.name, "reason": reason}


class Failures:
    """The failures of a run."""

    def __init__(self, found: list[Failure] | None) -> None:
        """Take the list to which failures are appended; without one the first failure is raised."""
        self._found = found

    @contextmanager
    def of(
        self, what: Literal["recording", "cluster"], name: str, roll_back: Callable[[], None] = lambda: None
    ) -> Iterator[None]:
        """Run the block for one recording or cluster. If it fails, call ``roll_back``, and note the failure."""
        try:
            yield
        except Exception as error:
            of_warehouse = what == "cluster" and isinstance(error, StoreUnavailable)
            if self._found is None or of_warehouse or stops_all(error):
                raise
            roll_back()
            self._found.append(Failure(what, name, error))

    @property
    def found(self) -> list[Failure]:
        """Return what was noted until now."""
        return list(self._found or ())

    def has(self, cluster: str) -> bool:
        """Return whether this cluster has failed."""
        return any((each.what, each.name) == ("cluster", cluster) for each in self._found or ())

    def raise_all(self) -> None:
        """Raise what was noted, as one error. Raises nothing if there is nothing."""
        found = self._found or []
        if len(found) == 1:
            raise found[0].error
        if unexpected := next((each for each in found if not each.is_input), None):
            raise unexpected.error
        if found:
            raise InputErrors([str(each.error) for each in found])


def stops_all(error: Exception) -> bool:
    """Return whether the other clusters would fail too: a stop, a lost lock, or a failure of the machine."""
    return stopped_by() is not None or isinstance(error, WarehouseLocked) or is_of_machine(error)
