"""What the failure of a master would have cost in the minute before an instant, by gold.failover_exposure."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import polars as pl

from mqreplay.moment.instant import Recorded

REACH: Final = dt.timedelta(minutes=2)  # the table has a row a minute


def exposure_at(recorded: Recorded, broker_name: str, at: dt.datetime) -> dict[str, Any]:
    """Return the last row of the broker up to ``at``, by column; empty if there is none within two minutes."""
    rows = recorded.before("gold.failover_exposure", "minute_ts", at, REACH)
    last = rows.filter(pl.col("broker_name") == broker_name).sort("minute_ts").tail(1).collect()
    return next(iter(last.to_dicts()), {})
