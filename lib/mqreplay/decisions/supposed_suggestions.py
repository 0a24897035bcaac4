"""gold.prediction of pulls: how many answers would have sent readers to a slave with other settings of brokers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from mqreplay.core.topic_route import MASTER_ID
from mqreplay.decisions.slave_suggestion import slave_suggestions
from mqreplay.decisions.suppositions import BrokerSetting, Supposition, supposed_brokers
from mqreplay.evidence.brokers.broker_descriptions import described_brokers
from mqreplay.words.keys import CLIENT_QUEUE, GROUP_TOPIC_BROKER

SUGGESTION_COUNTS: Final = ("pulls", "to_slave", "to_slave_min", "to_slave_max", "unchanged", "changed", "undetermined")


def concerned(pull: pl.DataFrame, suppositions: Sequence[Supposition]) -> pl.DataFrame:
    """Return the pulls from brokers whose settings are supposed."""
    names = [each.broker_name for each in suppositions if isinstance(each, BrokerSetting)]
    if not names:
        return pull.clear()
    return pull if None in names else pull.filter(pl.col("broker_name").is_in(names))


def supposed_suggestions(answers: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each group, topic and broker of `supposed_answers`: BY, SUGGESTION_COUNTS.

    ``to_slave``: answers of the night that suggested a slave; ``to_slave_min`` and ``to_slave_max``: those that would,
    where undetermined ones may or may not. An answer is ``unchanged``, ``changed``, or ``undetermined``: diff is known
    only within bounds, and the supposed memory lies between them.
    """
    recorded, least, most = pl.col("recorded_suggest") != MASTER_ID, pl.col("to_slave_min"), pl.col("to_slave_max")
    counts = {
        "pulls": pl.len(),
        "to_slave": recorded.sum(),
        "to_slave_min": least.sum(),
        "to_slave_max": most.sum(),
        "unchanged": ((least == most) & (least == recorded)).sum(),
        "changed": ((least == most) & (least != recorded)).sum(),
        "undetermined": (least != most).sum(),
    }
    named = [count.cast(pl.Int64).alias(name) for name, count in counts.items()]
    return answers.group_by(GROUP_TOPIC_BROKER).agg(named)


def supposed_answers(
    pull: pl.DataFrame,
    consume: pl.DataFrame,
    produce: pl.DataFrame,
    broker: pl.DataFrame,
    subscription_group: pl.DataFrame,
    broker_runtime: pl.DataFrame,
    poll_slack_ms: int,
    skewed: Sequence[str],
    suppositions: Sequence[Supposition],
) -> pl.DataFrame:
    """Return the rows of `slave_suggestions`, of whose arguments these are, with other settings of brokers.

    ``to_slave_min``, ``to_slave_max``: whether the answer would suggest a slave, at least and at most.

    A reader that is sent elsewhere is answered by another broker from then on, whose settings and log may differ: since
    5.1.0 a slave keeps readers that its master would not have sent (BrokerStartup takes 10 from its ratio).
    """
    supposed = supposed_brokers(broker, suppositions)
    evidence = (subscription_group, broker_runtime, poll_slack_ms, skewed)
    asked = slave_suggestions(pull, consume, produce, supposed, *evidence)
    other = slave_suggestions(_from_other_broker(pull, broker), consume, produce, supposed, *evidence)
    both = asked.with_columns((other["expected_suggest"] != MASTER_ID).alias("_of_other"))
    in_order = both.sort(*CLIENT_QUEUE, "request_ts", maintain_order=True)
    is_same = (pl.col("expected_suggest") == pl.col("recorded_suggest")).fill_null(value=False).all().over(CLIENT_QUEUE)
    kept = is_same | ~pl.col("broker_name").is_in(_changed(broker, supposed))
    to_slave = pl.col("expected_suggest") != MASTER_ID
    return in_order.with_columns(
        pl.when(kept).then(to_slave.fill_null(unknown)).otherwise(_followed(unknown=unknown)).alias(name)
        for name, unknown in (("to_slave_min", False), ("to_slave_max", True))
    ).drop("_of_other")


def _changed(broker: pl.DataFrame, supposed: pl.DataFrame) -> list[str]:
    """Return the names of the brokers to which a supposition makes a difference."""
    night, other = described_brokers(broker), described_brokers(supposed)
    differs = [night[name].ne_missing(other[name]) for name in ("slave_read_enable", "effective_ratio", "memory")]
    return night.filter(differs[0] | differs[1] | differs[2])["broker_name"].unique().to_list()


def _from_other_broker(pull: pl.DataFrame, broker: pl.DataFrame) -> pl.DataFrame:
    """Return the pulls as if the master had those of a slave, and the first slave, if there is one, those of it."""
    slaves = (
        broker.filter(pl.col("broker_id") != MASTER_ID).group_by("broker_name").agg(_slave=pl.col("broker_id").min())
    )
    slave = pl.col("_slave").fill_null(pl.col("broker_id"))
    other = pl.when(pl.col("broker_id") == MASTER_ID).then(slave).otherwise(MASTER_ID)
    joined = pull.join(slaves, "broker_name", how="left", maintain_order="left")
    return joined.with_columns(other.cast(pull.schema["broker_id"]).alias("broker_id")).drop("_slave").rechunk()


def _followed(*, unknown: bool) -> pl.Expr:
    """Return whether each answer of a reader suggests a slave, with ``unknown`` for what is not known.

    A client asks where the last answer sent it (PullAPIWrapper#recalculatePullFromWhichNode); where the night's client
    did not, by a change of the route, it would not have done so either. If both brokers give the same answer, it does
    not matter which one was asked; else, each keeps the reader.
    """
    is_slave, was_sent = pl.col("broker_id") != MASTER_ID, pl.col("recorded_suggest") != MASTER_ID
    to_slave, of_other = pl.col("expected_suggest") != MASTER_ID, pl.col("_of_other")
    master = pl.when(is_slave).then(of_other).otherwise(to_slave).fill_null(unknown)
    slave = pl.when(is_slave).then(to_slave).otherwise(of_other).fill_null(unknown)
    as_in_night = pl.when(is_slave).then(slave).otherwise(master)
    # Who was asked may be unknown: a master that sends readers away and a slave that sends them back answer both ways.
    master, slave = (master, slave | master) if unknown else (master & slave, slave)
    is_bound = (was_sent.shift().over(CLIENT_QUEUE) == is_slave).fill_null(value=False)
    answer = pl.when(~is_bound).then(as_in_night).when(master == slave).then(master).otherwise(None)
    return answer.forward_fill().over(CLIENT_QUEUE)
