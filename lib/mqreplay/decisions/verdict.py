"""Verdicts: the one way in which decisions say agree, differ or undetermined, and why. They know no rule of RocketMQ.

differ means that RocketMQ's own rule, by what was then known, says otherwise: it is never used for want of evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from mqreplay.evidence.frames import Condition, Value, first_of

AGREE: Final = "agree"
DIFFER: Final = "differ"
UNDETERMINED: Final = "undetermined"
KEPT: Final = (pl.col("judgement"), pl.col("reason"))  # the verdict that a row has
NOT_KNOWN: Final = "what was due, or what happened, is not known"


def decided(*cases: tuple[Condition, str, Value], otherwise: tuple[Value, Value]) -> dict[str, pl.Expr]:
    """Return the columns judgement and reason: those of the first case whose condition is true."""
    judgements = [(condition, judgement) for condition, judgement, _ in cases]
    reasons = [(condition, reason) for condition, _, reason in cases]
    return {
        "judgement": first_of(*judgements, otherwise=otherwise[0]),
        "reason": first_of(*reasons, otherwise=otherwise[1]),
    }


def judged(
    expected: pl.Expr,
    actual: pl.Expr,
    *,
    open: Sequence[tuple[Condition, Value]],
    agree: Value,
    differ: Value,
) -> dict[str, pl.Expr]:
    """Return the columns expected, actual, judgement and reason.

    ``open``: conditions that leave a row undetermined, with their reasons; the first that is true counts. ``agree`` and
    ``differ`` are the reasons where what happened was due, or was not. A row of which one is null is undetermined.
    """
    verdict = decided(
        *((condition, UNDETERMINED, reason) for condition, reason in open),
        (expected == actual, AGREE, agree),
        (expected != actual, DIFFER, differ),
        otherwise=(UNDETERMINED, NOT_KNOWN),
    )
    return {"expected": expected, "actual": actual} | verdict


def doubted(condition: Condition, reason: Value) -> dict[str, pl.Expr]:
    """Return the columns judgement and reason of judged rows: undetermined for ``reason`` where a condition is true."""
    return decided((condition, UNDETERMINED, reason), otherwise=KEPT)
