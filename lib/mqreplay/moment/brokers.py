"""The brokers of a cluster at an instant: whether they answered, were listed, and how far slaves were behind."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import polars as pl

from mqreplay.evidence.brokers.broker_descriptions import PROPERTIES
from mqreplay.evidence.brokers.listed_brokers import listed_brokers
from mqreplay.moment.instant import Recorded
from mqreplay.words.keys import BROKER

BROKER_COLUMNS: Final = (
    *BROKER,
    *("broker_addr", "broker_role", "rocketmq_version", "up", "answered_ts", "name_servers", "listed_by"),
    *("log_end", "behind_bytes", "behind_ms"),
)
POLLED: Final = dt.timedelta(seconds=90)  # an older answer does not show that a broker was up
EXPOSED: Final = dt.timedelta(minutes=2)  # gold.failover_exposure has a row a minute
SHOWN_SETTINGS: Final = (
    *("brokerRole", "flushDiskType", "slaveReadEnable", "accessMessageInMemoryMaxRatio", "offsetCheckInSlave"),
    *("transferMsgByHeap", "longPollingEnable", "messageDelayLevel", "diskMaxUsedSpaceRatio", "haSlaveFallbehindMax"),
    *("haMaxGapNotInSync", "rejectTransactionMessage", "autoCreateTopicEnable", "brokerPermission"),
)


def brokers_at(recorded: Recorded, at: dt.datetime, broker: str | None = None) -> pl.DataFrame:
    """Return one row for each broker: BROKER_COLUMNS.

    ``up``: true if it answered the last poll, false if that poll failed or the broker was down (finding broker_down),
    null if nobody asked within 90 s. ``listed_by``: how many of ``name_servers`` had it in their last answer; one whose
    last poll failed lists nothing that is known. Null if none of them answered.
    """
    known = _described(recorded, at).join(_polled(recorded, at), BROKER, how="full", coalesce=True)
    answers = _name_server_answers(recorded, at)
    silent = _silent(answers)
    listed = _listed(answers.filter(~pl.col("namesrv_addr").is_in(silent).fill_null(value=False)), at)
    servers = answers["namesrv_addr"].n_unique() or None
    is_known = servers is not None and len(silent) < servers
    both = known.join(listed, BROKER, how="left").with_columns(
        pl.lit(servers, pl.Int64).alias("name_servers"),
        pl.when(pl.lit(is_known)).then(pl.col("listed_by").fill_null(0)).alias("listed_by"),
    )
    ended = both.join(_replicated(recorded, at), BROKER, how="left").join(_down(recorded, at), BROKER, how="left")
    up = pl.when(pl.col("is_down").fill_null(value=False)).then(False).otherwise("answered")
    rows = ended.with_columns(up.alias("up")).select(BROKER_COLUMNS).sort(BROKER)
    return rows if broker is None else rows.filter(pl.col("broker_name") == broker)


def settings_at(recorded: Recorded, at: dt.datetime, broker: str | None = None) -> pl.DataFrame:
    """Return the SHOWN_SETTINGS in force, which decide for readers: broker_name, broker_id, name, value."""
    last = recorded.before("silver.broker", "ts", at).sort("ts").group_by(BROKER).last()
    chosen = settings_of(last).drop("ts").sort(*BROKER, "name")
    return chosen if broker is None else chosen.filter(pl.col("broker_name") == broker)


def settings_of(described: pl.LazyFrame) -> pl.DataFrame:
    """Return the settings of descriptions, rows of silver.broker: broker_name, broker_id, ts, name, value."""
    each = described.select(*BROKER, "ts", pl.col("properties").cast(PROPERTIES)).explode("properties")
    named = each.unnest("properties").rename({"key": "name"})
    return named.filter(pl.col("name").is_in(SHOWN_SETTINGS)).collect()


def _described(recorded: Recorded, at: dt.datetime) -> pl.DataFrame:
    described = recorded.before("silver.broker", "ts", at).sort("ts", "recording").group_by(BROKER).last()
    return described.select(*BROKER, "broker_addr", "broker_role", "rocketmq_version").collect()


def _polled(recorded: Recorded, at: dt.datetime) -> pl.DataFrame:
    """Return answered (null: not asked lately) and answered_ts, the last answer."""
    polls = recorded.before("silver.broker_runtime", "ts", at, dt.timedelta(days=1)).select(*BROKER, "ts", "error")
    by_broker = (
        polls.sort("ts")
        .group_by(BROKER)
        .agg(
            pl.col("ts").last().alias("asked_ts"),
            pl.col("error").last().is_null().alias("answered"),
            pl.col("ts").filter(pl.col("error").is_null()).last().alias("answered_ts"),
        )
    )
    lately = pl.when(pl.col("asked_ts") >= at - POLLED).then("answered")
    return by_broker.with_columns(lately.alias("answered")).drop("asked_ts").collect()


def silent_name_servers(recorded: Recorded, at: dt.datetime) -> list[str]:
    """Return the name servers whose last poll failed."""
    return _silent(_name_server_answers(recorded, at))


def _silent(answers: pl.DataFrame) -> list[str]:
    last = answers.drop_nulls("namesrv_addr").sort("ts", "record_id").group_by("namesrv_addr").last()
    return sorted(last.filter(pl.col("error").is_not_null())["namesrv_addr"])


def _name_server_answers(recorded: Recorded, at: dt.datetime) -> pl.DataFrame:
    return recorded.before("silver.cluster_info", "ts", at, dt.timedelta(days=1)).collect()


def _listed(answers: pl.DataFrame, at: dt.datetime) -> pl.DataFrame:
    """Return by how many name servers each broker was listed: listed_by."""
    last = listed_brokers(answers, at).filter((pl.col("to_ts") >= at) & pl.col("broker_name").is_not_null())
    return last.group_by(BROKER).agg(pl.col("namesrv_addr").n_unique().cast(pl.Int64).alias("listed_by"))


def _replicated(recorded: Recorded, at: dt.datetime) -> pl.DataFrame:
    """Return how far each slave was behind at its last poll: log_end, behind_bytes, behind_ms."""
    polls = recorded.before("silver.broker_runtime", "ts", at, POLLED).filter(
        pl.col("commit_log_max_offset").is_not_null()
    )
    ends = polls.sort("ts").group_by(BROKER).agg(pl.col("commit_log_max_offset").last().alias("log_end"))
    judged = recorded.before("gold.replication", "ts", at, POLLED).sort("ts").group_by(BROKER).last()
    behind = judged.select(*BROKER, "behind_bytes", "behind_ms")
    return ends.join(behind, BROKER, how="left").collect()


def _down(recorded: Recorded, at: dt.datetime) -> pl.DataFrame:
    """Return the brokers that a finding says were down: is_down."""
    found = recorded.before("gold.finding", "from_ts", at).filter(
        (pl.col("kind") == "broker_down") & (pl.col("to_ts").is_null() | (pl.col("to_ts") > at))
    )
    return found.select(*BROKER, pl.lit(value=True).alias("is_down")).unique().collect()


def exposure_at(recorded: Recorded, broker_name: str, at: dt.datetime) -> dict[str, Any]:
    """Return what the failure of a master would have cost: the last row of gold.failover_exposure up to ``at``.

    By column; empty without a row within two minutes.
    """
    rows = recorded.before("gold.failover_exposure", "minute_ts", at, EXPOSED)
    last = rows.filter(pl.col("broker_name") == broker_name).sort("minute_ts").tail(1).collect()
    return next(iter(last.to_dicts()), {})
