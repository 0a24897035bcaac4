"""gold.replication: what a failure of a broker would lose, and whether it flushed its commit log when it had to.

A poll of the runtime table states the end of the log and how much of it is not on disk. By the flush settings, all that
was written some seconds before is on disk, but for a few pages (CommitLog.FlushRealTimeService, GroupCommitService).
How much was written by then is known from an earlier poll. More in memory than that means that the disk does not keep
up, or does not write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import polars as pl

from mqreplay.core.flush import flushed_at_least
from mqreplay.core.replication import SYNC_MASTER, replica_status
from mqreplay.core.version import BROKER_4, BROKER_5
from mqreplay.decisions.decision import VERDICT_WORDS, Decision, by_name
from mqreplay.decisions.verdict import AGREE, DIFFER, UNDETERMINED, decided
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.brokers.broker_descriptions import valid_at
from mqreplay.evidence.brokers.commit_logs import (
    BEHIND_COLUMNS,
    RUN,
    Described,
    described_stores,
    log_polls,
    settings_of,
    silent_slaves,
    slaves_of,
    with_behind,
    with_slaves,
)
from mqreplay.evidence.brokers.slave_reports import slave_reports, slaves_fallen_behind, with_confirmed, with_reports
from mqreplay.evidence.intervals import with_state
from mqreplay.words.keys import BROKER

COLUMNS: Final = (
    *("day", "broker_name", "broker_id", "ts", "broker_role", "log_end", "master_end", "behind_bytes"),
    *("behind_messages", "behind_ms", "slaves", "send_status", "unflushed_bytes", "unflushed_messages"),
    *("unflushed_ms", "allowed_bytes", "judgement", "reason", "record_id"),
)
NO_SETTINGS: Final = "brokers.json does not describe this broker, so its flush settings are not known"
NO_FIGURE: Final = "no poll of this broker after its first seconds states how much is not flushed"
OF_DLEDGER: Final = "the commit log is one of DLedger, which has its own rules"
PAUSED: Final = "the broker had just not answered: it may have been paused, and a paused broker flushes nothing"


class Replication(NamedTuple):
    """The rows of gold.replication (judged_polls), and evidence for findings.

    lags: polls at which a slave had been behind for long, or silent while its master stored more (of `_lags`)
    alone: polls of synchronous masters without a slave that answers (columns of log_polls, ``send_status``)
    reports: what masters of 5.x report of their slaves (of slave_reports)
    fallen_behind: slaves that only their masters' reports show (of slaves_fallen_behind)
    """

    judged_polls: pl.DataFrame
    lags: pl.DataFrame
    alone: pl.DataFrame
    reports: pl.DataFrame
    fallen_behind: pl.DataFrame


def replication(broker_runtime: pl.DataFrame, broker: pl.DataFrame, ha_status: pl.DataFrame, lag_s: int) -> Replication:
    """Judge the polls that state how much of the commit log is not flushed; one row each.

    Polls of a broker count from when the polls before reach back as long as a flush may take. A broker without
    such a poll has one row, undetermined: its last poll. ``lag_s``: a slave that is behind for more seconds is an
    entry of lags, and one that is silent for more is none to its master, unless the master reports it.
    """
    polls, stores = log_polls(broker_runtime), described_stores(broker)
    settled = valid_at(polls, settings_of(stores), "ts")
    stated = _with_errors(settled.filter(pl.col("flush_max").is_not_null()), broker_runtime)
    judged = judge(_with_bounds(stated, polls), stores)
    without = settled.join(judged.select(BROKER), BROKER, how="anti", maintain_order="left").unique(BROKER, keep="last")
    open_rows = without.with_columns(
        pl.lit("undetermined").alias("judgement"),
        pl.lit(NO_FIGURE).alias("reason"),
        *[pl.lit(None, pl.Int64).alias(name) for name in ("unflushed_messages", "unflushed_ms", "allowed_bytes")],
    )
    rows = pl.concat([judged.select(open_rows.columns), open_rows])
    synchronous = (pl.col("broker_id") == 0) & (pl.col("broker_role") == SYNC_MASTER)
    reports = slave_reports(ha_status)
    alone = with_reports(with_slaves(settled.filter(synchronous), polls, lag_s), reports, lag_s)
    alone = alone.filter(pl.col("slaves") == 0)
    return Replication(
        _with_replicas(rows, polls, stores, reports, lag_s).select(COLUMNS),
        _lags(polls, reports, lag_s),
        _with_status(alone, stores),
        reports,
        slaves_fallen_behind(ha_status, lag_s).join(slaves_of(polls), "broker_name", how="anti"),
    )


def _lags(polls: pl.DataFrame, reports: pl.DataFrame, lag_s: int) -> pl.DataFrame:
    """Return the polls at which a slave had been behind for more than ``lag_s`` seconds.

    Columns: broker_name, broker_id, ts, log_end, answered_ts (of the slave), record_id, those of BEHIND, copies (how
    many slaves the broker name has).
    """
    slaves = slaves_of(polls)
    answered = slaves.select(*BROKER, "ts", "log_end", pl.col("ts").alias("answered_ts"), "record_id")
    copies = slaves.group_by("broker_name").agg(pl.col("member").n_unique().cast(pl.Int64).alias("copies"))
    silent = with_confirmed(silent_slaves(polls, lag_s), copies, reports, lag_s)
    points = with_behind(pl.concat([answered, silent]), polls)
    return points.filter(pl.col("behind_ms") > lag_s * 1000).join(copies, "broker_name", how="left")


def _with_errors(rows: pl.DataFrame, broker_runtime: pl.DataFrame) -> pl.DataFrame:
    """Add resumed_ts: the first answer after the last poll before that was not answered; null without one."""
    errors = broker_runtime.filter(pl.col("error").is_not_null()).sort("ts")
    named = errors.select(*BROKER, "ts", pl.col("ts").alias("error_ts"))
    after = with_state(rows, named, BROKER, "ts")
    resumed = pl.col("ts").min().over(*BROKER, "error_ts")
    return after.with_columns(pl.when(pl.col("error_ts").is_not_null()).then(resumed).alias("resumed_ts"))


def _with_bounds(rows: pl.DataFrame, polls: pl.DataFrame) -> pl.DataFrame:
    """Add the ends of the log at the last polls before a flush was due, and of when the data in memory is.

    Columns: end_before_turns, end_before_thorough, unflushed_messages, unflushed_ms.
    """
    ends = polls.select(*RUN, "ts", "log_end")
    joined = rows
    for name in ("turns", "thorough"):
        due = (pl.col("ts") - pl.duration(milliseconds=pl.col(f"{name}_ms"))).alias("due_ts")
        joined = with_state(
            joined.with_columns(due), ends.rename({"ts": "due_ts", "log_end": f"end_before_{name}"}), RUN, "due_ts"
        )
    flushed = (pl.col("log_end") - pl.col("flush_max")).clip(lower_bound=0).alias("flushed")
    by_end = (
        polls.group_by(*RUN, pl.col("log_end").alias("flushed"))
        .agg(pl.col("ts").max().alias("flushed_ts"), pl.col("puts").max().alias("flushed_puts"))
        .sort("flushed")
    )
    known = with_state(joined.with_columns(flushed), by_end, RUN, "flushed")
    is_dirty, messages = pl.col("flush_max") > 0, pl.col("puts") - pl.col("flushed_puts")
    # A slave counts no messages.
    counts = (pl.col("broker_id") == 0) & (messages >= 0)
    lasted = (pl.col("ts") - pl.col("flushed_ts")).dt.total_milliseconds()
    return known.with_columns(
        pl.when(~is_dirty).then(0).when(counts).then(messages).alias("unflushed_messages"),
        pl.when(~is_dirty).then(0).otherwise(lasted).alias("unflushed_ms"),
    )


def judge(rows: pl.DataFrame, stores: Sequence[Described]) -> pl.DataFrame:
    """Return the polls with judgement, reason and allowed_bytes; without those that nothing before them can judge."""
    cases = [
        None if store is None else _due(stores[store], turns, thorough)
        for store, turns, thorough in rows.select("store", "end_before_turns", "end_before_thorough").iter_rows()
    ]
    due = rows.with_columns(pl.Series("due", cases, pl.Int64))
    allowed = pl.col("log_end") - pl.col("due")
    is_more = pl.col("flush_min") > allowed
    has_settings, is_dledger = pl.col("turns_ms").is_not_null(), pl.col("is_dledger").fill_null(value=False)
    # The first polls of a run: agreement is certain only if nothing is dirty, or the polls reach back far enough.
    is_clean = pl.col("flush_max") == 0
    agrees = is_clean | (pl.col("end_before_thorough").is_not_null() & ~is_more)
    # A pause may have lasted until just before the first answer.
    since_pause = (pl.col("ts") - pl.col("resumed_ts")).dt.total_milliseconds()
    is_paused = is_more & (since_pause <= pl.col("turns_ms")).fill_null(value=False)
    more = pl.format("{} bytes more are in memory than the flush settings allow", pl.col("flush_min") - allowed)
    verdict = decided(
        (is_clean, AGREE, "all is on disk"),
        (~has_settings, UNDETERMINED, NO_SETTINGS),
        (is_dledger, UNDETERMINED, OF_DLEDGER),
        (is_paused, UNDETERMINED, PAUSED),
        (is_more, DIFFER, more),
        (agrees, AGREE, "what had to be on disk is"),
        otherwise=(None, None),
    )
    judged = due.with_columns(pl.when(~is_dledger).then(allowed).alias("allowed_bytes"), **verdict)
    return judged.filter(pl.col("judgement").is_not_null())


def _due(store: Described, turns: int | None, thorough: int | None) -> int | None:
    """Return how much of the log must be on disk; ends that are not known oblige to nothing."""
    if turns is None and thorough is None:
        return None
    return flushed_at_least(turns or 0, thorough or 0, store.policy)


def _with_replicas(
    rows: pl.DataFrame, polls: pl.DataFrame, stores: Sequence[Described], reports: pl.DataFrame, within_s: int
) -> pl.DataFrame:
    """Add what slaves lack, the number of a master's slaves, and the status that a message gets by it."""
    not_flushed = (pl.col("flush_max") + pl.col("commit_max").fill_null(0)).alias("unflushed_bytes")
    named = rows.with_columns(not_flushed)
    slaves = with_behind(slaves_of(named), polls)
    masters = with_reports(with_slaves(named.filter(pl.col("broker_id") == 0), polls, within_s), reports, within_s)
    of_masters = _with_status(masters, stores)
    both = pl.concat([slaves, of_masters], how="diagonal")
    missing = [
        pl.lit(None, pl.Int64).alias(name) for name in (*BEHIND_COLUMNS[:-1], "slaves") if name not in both.columns
    ]
    return both.with_columns(missing).sort("ts", *BROKER)


def _with_status(masters: pl.DataFrame, stores: Sequence[Described]) -> pl.DataFrame:
    """Add send_status: what the master answers to a message that waits for slaves, by those that keep up."""
    cases = masters.select("store", "since_5", "near_slaves").iter_rows(named=True)
    return masters.with_columns(pl.Series("send_status", [_status(case, stores) for case in cases], pl.String))


def _status(master: Mapping[str, Any], stores: Sequence[Described]) -> str | None:
    store = None if master["store"] is None else stores[master["store"]]
    if store is None or store.is_dledger or master["near_slaves"] is None or master["since_5"] is None:
        return None
    return replica_status(store.replicas, master["near_slaves"], BROKER_5 if master["since_5"] else BROKER_4)


def judged_polls(replication: Replication) -> pl.DataFrame:
    """Return the rows of gold.replication."""
    return replication.judged_polls


REPLICATION: Final = Decision(
    table="gold.replication",
    instant="ts",
    one="flush of a commit log",
    many="flushes of commit logs",
    importance=15,
    phrases=(
        "{unflushed_bytes:,} bytes not flushed, {allowed_bytes:,} allowed",
        "{behind_bytes:,} bytes behind its master",
        VERDICT_WORDS,
    ),
    needs=(Need("broker_runtime"), Need("brokers")),
    rows=by_name(judged_polls),
    steps={"replication": by_name(replication, lag_s="replication_lag_s")},
)
