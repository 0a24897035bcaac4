"""Offsets that are further apart than numbers go: a broker keeps whatever it is told, Long.MAX_VALUE too."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

MOST = 2**63 - 1
COUNTLESS = 2**53  # no queue holds so many messages: what is further apart was set, not consumed


def less(a: Column | str, b: Column | str) -> Column:
    """``a`` less ``b``, both bigint; where no bigint holds it the most or least that one does. Null if one is."""
    one, other = (F.col(c) if isinstance(c, str) else c for c in (a, b))
    edge = F.when(one > other, F.lit(MOST)).when(one < other, F.lit(-MOST))
    return F.coalesce(F.try_subtract(one, other), edge)


def total(counts: str) -> Column:
    """The sum of a bigint column's rows, none of them negative; the most that a bigint holds where it is more."""
    return F.when(F.count(counts) > 0, F.coalesce(F.try_sum(counts), F.lit(MOST)))
