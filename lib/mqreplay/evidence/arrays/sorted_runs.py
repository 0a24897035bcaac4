"""Runs of equal rows in sorted columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mqreplay.evidence.arrays.frame_arrays import NOWHERE, Mask, Numbers


def starts(*by: Numbers) -> Numbers:
    """Return the first row of each run of equal rows, of columns sorted together."""
    changed = np.zeros(len(by[0]), bool)
    changed[:1] = True
    for column in by:
        changed[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(changed)


def lasts(first: Numbers, rows: int) -> Numbers:
    """Return the last row of each run, from the first rows."""
    return np.append(first[1:], rows)[: len(first)] - 1


def lengths(first: Numbers, rows: int) -> Numbers:
    """Return the length of each run, from the first rows."""
    return np.diff(np.append(first, rows))


def ranks(*by: Numbers) -> Numbers:
    """Return the rank of each row in the order of several columns; equal rows share a rank."""
    order = np.lexsort(by[::-1])
    changed = np.zeros(len(order), np.int64)
    changed[starts(*(column[order] for column in by))[1:]] = 1
    found = np.empty(len(order), np.int64)
    found[order] = np.cumsum(changed)
    return found


def spread(begin: Numbers, count: Numbers) -> Numbers:
    """Return all positions of several ranges, one after the other, from their starts and lengths."""
    return np.arange(count.sum()) + np.repeat(begin - (np.cumsum(count) - count), count)


def one_later(values: npt.NDArray[Any], first: int = 0) -> npt.NDArray[Any]:
    """Return for each row the value of the row before it; for the first row ``first``."""
    return np.append(np.array([first], values.dtype), values[:-1])[: len(values)]


def runs(law: np.ufunc, values: npt.NDArray[Any], first: Numbers) -> npt.NDArray[Any]:
    """Return one value per run: its values reduced by ``law``, such as np.maximum."""
    return law.reduceat(values, first) if len(first) else values[:0]


def last_such(such: Mask, first: Numbers) -> Numbers:
    """Return for each row the last row of its run up to it for which ``such`` is true, or NOWHERE."""
    last = np.maximum.accumulate(np.where(such, np.arange(len(such)), NOWHERE))
    return np.where(last >= np.repeat(first, lengths(first, len(such))), last, NOWHERE)
