"""Saturating differences and sums of offsets: a broker stores any offset, even Long.MAX_VALUE."""

from __future__ import annotations

import polars as pl

from mqreplay.core.offset_evidence import COUNTLESS

__all__ = ["COUNTLESS", "MOST", "less", "total"]

MOST = 2**63 - 1


def less(a: str | pl.Expr, b: str | pl.Expr) -> pl.Expr:
    """Return ``a`` - ``b`` of two Int64 columns, clipped to [-MOST, MOST]; null if one is null."""
    one, other = (pl.col(side) if isinstance(side, str) else side for side in (a, b))
    wide = one.cast(pl.Int128) - other.cast(pl.Int128)
    return wide.clip(-MOST, MOST).cast(pl.Int64)


def total(counts: str | pl.Expr) -> pl.Expr:
    """Return the sum of a group's counts (none negative), at most MOST; null if the group has no count."""
    count = pl.col(counts) if isinstance(counts, str) else counts
    return pl.when(count.count() > 0).then(count.cast(pl.Int128).sum().clip(0, MOST).cast(pl.Int64))
