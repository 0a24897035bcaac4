"""gold.slave_sync: each slave as its master of 5.x reports it, and whether it is in sync by haMaxGapNotInSync.

A master counts a slave that lacks fewer bytes than that (DefaultHAService#isInSyncSlave). Messages that wait for slaves
get FLUSH_SLAVE_TIMEOUT or IN_SYNC_REPLICAS_NOT_ENOUGH if too few count (CommitLog#handleHA). With a controller, its set
of replicas in sync counts instead (AutoSwitchHAService). 4.x has no such report.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from mqreplay.decisions.decision import VERDICT_WORDS, Decision, by_name
from mqreplay.decisions.verdict import judged
from mqreplay.evidence.brokers.broker_descriptions import major_version, valid_at
from mqreplay.evidence.brokers.commit_logs import described_stores, settings_of
from mqreplay.evidence.brokers.slave_reports import slave_connections

COLUMNS: Final = (
    *("day", "broker_name", "broker_id", "ts", "connection", "slave_addr", "master_end", "confirmed_offset"),
    *("behind_bytes", "max_gap_bytes", "in_sync", "judgement", "reason", "record_id"),
)
NO_SETTINGS: Final = "brokers.json does not describe this master, so its haMaxGapNotInSync is not known"
NO_REPORT: Final = "no answer of this master to GET_BROKER_HA_STATUS states what its slaves have confirmed"
OF_CONTROLLER: Final = "with a controller, its set of replicas in sync decides"
CONFIRMED_MEANWHILE: Final = "the slave may have confirmed more while the master made its answer"
AS_RULED: Final = "the master counts the slave as its gap decides"
NOT_AS_RULED: Final = "the master counts the slave in another way than its gap decides"


def slave_sync(ha_status: pl.DataFrame, broker: pl.DataFrame, broker_runtime: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each slave that was connected to a master at a poll of it. All arguments are silver tables.

    A master of 5.x with slaves that were polled, and without such a report, has one row, undetermined: its last poll.
    """
    settings = settings_of(described_stores(broker)).select(
        *("broker_name", "broker_id", "ts", "by_controller"), pl.col("fall_behind_max").alias("max_gap_bytes")
    )
    reported = valid_at(slave_connections(ha_status), settings, "ts")
    expected = in_sync_by_gap(pl.col("master_end"), pl.col("confirmed_offset"), pl.col("max_gap_bytes"))
    verdict = judged(
        expected,
        pl.col("in_sync"),
        open=[
            (pl.col("max_gap_bytes").is_null(), NO_SETTINGS),
            ("by_controller", OF_CONTROLLER),
            (~expected & pl.col("in_sync"), CONFIRMED_MEANWHILE),
        ],
        agree=AS_RULED,
        differ=NOT_AS_RULED,
    )
    rows = pl.concat([reported.with_columns(**verdict).select(COLUMNS), _without_report(broker_runtime, ha_status)])
    return rows.sort("ts", "broker_name", "connection")


def in_sync_by_gap(master_end: pl.Expr, confirmed_offset: pl.Expr, max_gap_bytes: pl.Expr) -> pl.Expr:
    """Return core's is_slave_ok of a connected slave, for whole columns."""
    return master_end - confirmed_offset < max_gap_bytes


def _without_report(broker_runtime: pl.DataFrame, ha_status: pl.DataFrame) -> pl.DataFrame:
    """Return the last poll of each master of 5.x that has slaves and no report of them, undetermined."""
    since_5 = major_version("broker_version_desc") >= 5
    polls = broker_runtime.filter(pl.col("error").is_null() & since_5.fill_null(value=False))
    slaves = polls.filter(pl.col("broker_id") > 0).select("broker_name").unique()
    reported = ha_status.filter(pl.col("is_master").fill_null(value=False)).select("broker_name").unique()
    masters = polls.filter(pl.col("broker_id") == 0).join(slaves, "broker_name", how="semi")
    last = masters.join(reported, "broker_name", how="anti").sort("ts").unique("broker_name", keep="last")
    known = {
        "connection": pl.lit(0, pl.Int64),
        "slave_addr": pl.lit(None, pl.String),
        "master_end": pl.col("commit_log_max_offset"),
        "in_sync": pl.lit(None, pl.Boolean),
        "judgement": pl.lit("undetermined"),
        "reason": pl.lit(NO_REPORT),
    } | {name: pl.lit(None, pl.Int64) for name in ("confirmed_offset", "behind_bytes", "max_gap_bytes")}
    return last.select([known.get(name, pl.col(name)).alias(name) for name in COLUMNS])


SLAVE_SYNC: Final = Decision(
    table="gold.slave_sync",
    instant="ts",
    one="state of a slave by its master",
    many="states of slaves by their masters",
    importance=18,
    phrases=(
        "slave {slave_addr}",
        "{behind_bytes:,} bytes not confirmed, {max_gap_bytes:,} allowed in sync",
        VERDICT_WORDS,
    ),
    rows=by_name(slave_sync),
)
