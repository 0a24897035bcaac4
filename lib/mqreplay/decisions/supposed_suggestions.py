"""gold.prediction of pulls: how many answers would have sent readers to a slave with other settings of brokers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from mqreplay.core.topic_route import MASTER_ID
from mqreplay.decisions.slave_suggestion import slave_suggestion
from mqreplay.decisions.suppositions import BrokerSetting, Supposition, supposed_brokers

BY: Final = ["consumer_group", "topic", "broker_name"]
COUNTS: Final = ("pulls", "to_slave", "to_slave_min", "to_slave_max", "unchanged", "changed", "undetermined")


def concerned(pull: pl.DataFrame, suppositions: Sequence[Supposition]) -> pl.DataFrame:
    """Return the pulls from brokers whose settings are supposed."""
    names = [each.broker_name for each in suppositions if isinstance(each, BrokerSetting)]
    if not names:
        return pull.clear()
    return pull if None in names else pull.filter(pl.col("broker_name").is_in(names))


def supposed_suggestions(
    pull: pl.DataFrame,
    consume: pl.DataFrame,
    produce: pl.DataFrame,
    broker: pl.DataFrame,
    subscription_group: pl.DataFrame,
    broker_runtime: pl.DataFrame,
    poll_slack_ms: int,
    skewed: Sequence[str],
    suppositions: Sequence[Supposition],
    of_day: pl.Expr,
) -> pl.DataFrame:
    """Return one row for each group, topic and broker: BY, COUNTS; the arguments are those of `slave_suggestion`.

    Pulls that are not ``of_day`` are evidence alone.

    ``to_slave``: answers of the night that suggested a slave; ``to_slave_min`` and ``to_slave_max``: those that would,
    where undetermined ones may or may not. An answer is ``unchanged``, ``changed``, or ``undetermined``: diff is known
    only within bounds, and the supposed memory lies between them.
    """
    evidence = (subscription_group, broker_runtime, poll_slack_ms, skewed)
    judged = slave_suggestion(pull, consume, produce, supposed_brokers(broker, suppositions), *evidence)
    after = judged.filter(of_day)
    recorded, expected = pl.col("recorded_suggest"), pl.col("expected_suggest")
    is_open = expected.is_null()
    counts = {
        "pulls": pl.len(),
        "to_slave": (recorded != MASTER_ID).sum(),
        "to_slave_min": (expected != MASTER_ID).fill_null(value=False).sum(),
        "to_slave_max": (is_open | (expected != MASTER_ID)).sum(),
        "unchanged": (expected == recorded).fill_null(value=False).sum(),
        "changed": (expected != recorded).fill_null(value=False).sum(),
        "undetermined": is_open.sum(),
    }
    named = [count.cast(pl.Int64).alias(name) for name, count in counts.items()]
    return after.group_by(BY).agg(named)
