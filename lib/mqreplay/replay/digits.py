"""Several whole numbers as digits of one, so that Spark finds their greatest by a hash.

Of a struct, it sorts all rows to find the greatest: a struct has no place of its own in a hash table.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

WIDE = "DECIMAL(38, 0)"
LONG = 2**64  # how many numbers a bigint may be


def as_one(*digits: tuple[Column, int]) -> Column:
    """Numbers in the order of the tuples: of each its column, from 0 on, and how many it may be.

    All of them together may be 10**38 at most.
    """
    one = F.lit(0).cast(WIDE)
    for digit, most in digits:
        one = one * _wide(most) + digit.cast(WIDE)
    return one


def signed(column: Column, most: int = LONG) -> tuple[Column, int]:
    """A number that may be negative, as a digit: ``read_signed`` gives it back."""
    return column.cast(WIDE) + _wide(most // 2), most


def digit(one: Column, most: int, after: int = 1) -> Column:
    """The digit that may be ``most`` numbers, behind which the others may be ``after`` together."""
    rest = F.pmod(one, _wide(after)) if after > 1 else F.lit(0).cast(WIDE)
    return (F.pmod(one, _wide(most * after)) - rest) / _wide(after)


def read_signed(one: Column, most: int = LONG, after: int = 1) -> Column:
    """As ``digit``, of one that ``signed`` made."""
    return digit(one, most, after) - _wide(most // 2)


def _wide(value: int) -> Column:
    return F.lit(str(value)).cast(WIDE)
