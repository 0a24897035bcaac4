"""How a try of a send ended, by the answer or by the producer's log."""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.core.send_retry import SEND_STATUS
from mqreplay.decode.sends import CLIENT_LOG

STORED: Final = "stored"
REFUSED: Final = "refused"
UNANSWERED: Final = "unanswered"
ONEWAY: Final = "oneway"
FAILED: Final = "failed"  # in a producer's log: with an exception that the line does not name
INTERRUPTED: Final = "interrupted"
TURN: Final = ("client_id", "producer_group", "topic")  # a producer's sends to a topic


def outcome() -> pl.Expr:
    """Return how each row of silver.send ended."""
    return (
        pl.when(pl.col("response_code").is_in(list(SEND_STATUS)))
        .then(pl.lit(STORED))
        .when(pl.col("response_code").is_not_null())
        .then(pl.lit(REFUSED))
        .when(pl.col("mode") == "oneway")
        .then(pl.lit(ONEWAY))
        .when(pl.col("error").str.starts_with("InterruptedException"))
        .then(pl.lit(INTERRUPTED))
        .when(pl.col("source") == CLIENT_LOG)
        .then(pl.lit(FAILED))
        .otherwise(pl.lit(UNANSWERED))
    )


def failed() -> pl.Expr:
    """Return whether each try failed: one without an answer only if the producer tried again.

    Needs the columns outcome and was_retried. A capture may lack an answer.
    """
    is_silent = (pl.col("outcome") == UNANSWERED) & pl.col("was_retried")
    return pl.col("outcome").is_in([REFUSED, FAILED]) | is_silent
