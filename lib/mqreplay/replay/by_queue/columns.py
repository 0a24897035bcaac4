"""The events of some queues, whole, as numpy columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mqreplay.replay.by_queue.events import CHANGE, PULL, QUEUE, STATS
from mqreplay.replay.nearest import Numbers, common_codes, numbers

Mask = npt.NDArray[np.bool_]
LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True)
class Ends:
    """Where masters said that queues begin and end, by queue and instant (microseconds)."""

    queue: Numbers
    at: Numbers
    low: Numbers
    has_low: Mask
    high: Numbers
    has_high: Mask


class QueueEvents:
    """Rows of events.py, in any order, all of a queue's together. Rows are known by their number in ``rows``."""

    def __init__(self, rows: pa.Table) -> None:
        """``rows`` has the columns of events.py."""
        self.rows = rows.combine_chunks()
        self.what: Numbers = self.rows["what"].to_numpy()
        (self.queue,) = common_codes([self.rows[name] for name in QUEUE])
        self._numbers: dict[str, tuple[Numbers, Mask]] = {}

    def numbers(self, name: str, of: Numbers | slice = slice(None)) -> tuple[Numbers, Mask]:
        """A column of those rows, null as 0, and where it is not null; instants are microseconds."""
        if name not in self._numbers:
            self._numbers[name] = numbers(self.rows[name])
        values, there = self._numbers[name]
        return values[of], there[of]

    def known(self, name: str, of: Numbers) -> Numbers:
        """A column that is never null, of those rows."""
        return self.numbers(name, of)[0]

    @cached_property
    def key(self) -> Numbers:
        """Of each row its queue and group."""
        return self._codes("consumer_group")

    @cached_property
    def by_client(self) -> Numbers:
        """Of each row its queue, group and client."""
        (codes,) = common_codes([pa.array(self.key), self.rows["client_id"]])
        return codes

    @cached_property
    def client_order(self) -> Numbers:
        """Of each row the place of its client's name among the names: no answer hangs on the order of rows."""
        names = self.rows["client_id"].combine_chunks().dictionary_encode(null_encoding="encode")
        place = np.empty(len(names.dictionary), np.int64)
        place[np.argsort(names.dictionary.fill_null("").to_numpy(zero_copy_only=False), kind="stable")] = np.arange(
            len(place)
        )
        return place[names.indices.to_numpy()]

    @cached_property
    def names(self) -> tuple[Numbers, list[str]]:
        """Of each row the number of its broker name, and the names by their numbers."""
        encoded = self.rows["broker_name"].combine_chunks().dictionary_encode()
        return encoded.indices.to_numpy(), encoded.dictionary.to_pylist()

    def _codes(self, name: str) -> Numbers:
        (codes,) = common_codes([pa.array(self.queue), self.rows[name]])
        return codes

    @cached_property
    def of_master(self) -> Mask:
        """Whether each row was told by a master, or shown by its file."""
        broker_id, there = self.numbers("broker_id")
        return there & (broker_id == 0)

    @cached_property
    def changes(self) -> Numbers:
        """The rows of brokers' files."""
        return np.flatnonzero(self.what == CHANGE)

    @cached_property
    def pulls(self) -> Numbers:
        """The rows of pulls."""
        return np.flatnonzero(self.what == PULL)

    @cached_property
    def ends(self) -> Ends:
        """What masters told: in answers of pulls, when they came, and in topic statistics."""
        _, has_high = self.numbers("max_offset")
        pulled = (self.what == PULL) & self.of_master & has_high
        told = np.flatnonzero(pulled | (self.what == STATS))
        asked, (answered, came) = self.known("at", told), self.numbers("also_at", told)
        at = np.where(came, answered, asked)
        low, has_low = self.numbers("min_offset", told)
        high, has_high = self.numbers("max_offset", told)
        # By all that there is: of several words of one moment the answer hangs on none's place among the rows.
        order = np.lexsort((low, has_low, high, has_high, at, self.queue[told]))
        columns = (self.queue[told], at, low, has_low, high, has_high)
        return Ends(*(column[order] for column in columns))

    def table(self, of: Numbers, names: Sequence[str], **found: pa.Array | npt.NDArray[np.generic]) -> pa.Table:
        """Those rows' own columns, and what was found for them."""
        own = self.rows.select(list(names)).take(pa.array(of))
        columns = [column.combine_chunks() for column in own.columns] + [
            value if isinstance(value, pa.Array) else pa.array(value) for value in found.values()
        ]
        return pa.Table.from_arrays(columns, names=[*names, *found])


def lasts(first: Numbers, rows: int) -> Numbers:
    """The last row of each run, of the first rows of all."""
    return np.append(first[1:], rows)[: len(first)] - 1


def lengths(first: Numbers, rows: int) -> Numbers:
    """How many rows each run has, of the first rows of all."""
    return np.diff(np.append(first, rows))


def spread(begin: Numbers, count: Numbers) -> Numbers:
    """All places of several ranges, one range behind the other: each from its begin on, so many."""
    return np.arange(count.sum()) + np.repeat(begin - (np.cumsum(count) - count), count)


def one_later(values: npt.NDArray[Any], first: int = 0) -> npt.NDArray[Any]:
    """Of each row the value of the row before it, of the first one ``first``."""
    return np.append(np.array([first], values.dtype), values[:-1])[: len(values)]


def runs(law: np.ufunc, values: npt.NDArray[Any], first: Numbers) -> npt.NDArray[Any]:
    """One value a run: its values taken together by ``law``, such as np.maximum."""
    return law.reduceat(values, first) if len(first) else values[:0]


def maybe(values: Numbers, there: Mask) -> pa.Array:
    """Numbers, null where they are not there."""
    return pa.array(values, pa.int64(), mask=~there)


def instants(values: Numbers, there: Mask | None = None) -> pa.Array:
    """Microseconds as instants."""
    return pa.array(values, pa.int64(), mask=None if there is None else ~there).cast(pa.timestamp("us", "UTC"))


def lists(bounds: Numbers, fields: Mapping[str, pa.Array]) -> pa.Array:
    """Lists of structs: the list of row i from ``bounds[i]`` on."""
    structs = pa.StructArray.from_arrays(list(fields.values()), names=list(fields))
    kind = pa.list_(pa.field("element", structs.type))  # as Spark calls the items of a list
    return pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), structs, type=kind)
