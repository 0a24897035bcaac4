"""gold.failover_step: the timeline of each failover, and whether each step took as long as RocketMQ's intervals allow.

A name server removes the broker, each client gets a route without it and reads from the slave, messages are delivered
again; then the broker answers, is listed again, and clients read from it again.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from mqreplay.core import failover_intervals as law
from mqreplay.core.failover_intervals import Interval
from mqreplay.core.route_info_manager import BROKER_CHANNEL_EXPIRED_TIME
from mqreplay.decisions.decision import Decision, by_name
from mqreplay.decisions.failover_clients import ClientSteps, Removals
from mqreplay.decisions.failover_row import (
    ANSWERS,
    LISTED,
    LISTS,
    NEW_MASTER,
    OF_NAME_SERVER,
    POLLS_APART,
    REMOVED,
    SCHEMA,
    SECOND,
    SETTINGS_MISSING,
    STOPPED,
    Row,
    StepRows,
    epoch_ms,
)
from mqreplay.decode.recording.advice import Need
from mqreplay.evidence.brokers.address_changes import listed_answers
from mqreplay.evidence.brokers.broker_outages import with_outage
from mqreplay.evidence.brokers.failovers import Failover
from mqreplay.evidence.frames import ms, typed
from mqreplay.evidence.intervals import INSTANT, utc

GOES_ONLINE = "with enableSlaveActingMaster it registers once it has met the other brokers of its name"
OF_CONTROLLER = "the settings of the controller are not recorded (its scanNotActiveBrokerInterval)"


@dataclass(frozen=True)
class Seen:
    """What a day shows of failovers.

    ``lists`` and ``master_changes`` are frames of listed_brokers.py, ``routed`` is that of `routed_answers`,
    ``failover_pulls`` and ``returns`` have the rows of failovers_of_shard and returns_of_shard of all shards,
    ``repeated_deliveries`` those of deliveries.py, and ``failover_exposure`` is the gold table. ``skewed`` are clients
    with a wrong clock: times of their pulls are not known. ``starts`` are the instants before which the recording has a
    gap. ``poll_intervals``: pollNameServerInterval of clients, in ms; ``name_servers``: by address, as
    StepRows.removal takes it.
    """

    lists: pl.DataFrame
    master_changes: pl.DataFrame
    routed: pl.DataFrame
    failover_pulls: pl.DataFrame
    returns: pl.DataFrame
    repeated_deliveries: pl.DataFrame
    failover_exposure: pl.DataFrame
    skewed: Collection[str] = ()
    starts: Collection[dt.datetime] = ()
    poll_intervals: Mapping[str, int] = field(default_factory=dict)
    name_servers: Mapping[str, int] = field(default_factory=dict)


def failover_steps(failovers: Sequence[Failover], seen: Seen, failed_over_s: int, gap_s: int) -> pl.DataFrame:
    """Return one row per step of each failover (schema SCHEMA). ``failovers`` is the list of failovers.py.

    A pull to a slave belongs to an outage until ``failed_over_s`` seconds after it, and as long as such pulls go on
    without a pause of ``gap_s`` seconds.
    """
    if not failovers:
        return pl.DataFrame(schema=SCHEMA)
    masters = [
        (each.broker_name, each.broker_id, each.outage_ts, each.up_ts or each.until)
        for each in failovers
        if each.is_master
    ]
    outages = pl.DataFrame(
        masters,
        {"broker_name": pl.String, "broker_id": pl.Int64, "from_ts": INSTANT, "to_ts": INSTANT},
        orient="row",
    )
    pulls = with_outage(seen.failover_pulls, outages, failed_over_s, gap_s)
    listed = listed_answers(seen.lists)
    found: list[Row] = []
    for each in failovers:
        clients = ClientSteps(
            *(each, seen.routed, pulls, seen.returns, seen.repeated_deliveries, seen.failover_exposure),
            *(seen.skewed, [utc(start) for start in seen.starts], failed_over_s, seen.poll_intervals),
        )
        found.extend(_Timeline(each, listed, seen.master_changes, clients, seen.name_servers).rows())
    rows = pl.DataFrame(found, schema={name: SCHEMA[name] for name in SCHEMA if name not in ("day", "step_id")})
    rows = rows.with_columns(pl.col("ts").dt.date().alias("day"))
    # A step that was due on one day and is seen on the next has a row on each.
    key = ("broker_name", "broker_id", "step", "namesrv_addr", "client_id", "consumer_group", "day")
    ids = [_step_id(row) for row in rows.select(ms("outage_ts"), *key).rows()]
    named = rows.with_columns(pl.Series("step_id", ids, pl.String))
    return typed(named, SCHEMA)


def judged_steps(steps: pl.DataFrame) -> pl.DataFrame:
    """Return the steps with a judgement; those of the broker itself follow no rule."""
    return steps.filter(pl.col("judgement").is_not_null()).with_columns(pl.lit(None, pl.String).alias("topic"))


def _step_id(row: Sequence[object]) -> str:
    """Return the id of a step, which is the same in every replay of the night."""
    return hashlib.sha256("\x1f".join("" if value is None else str(value) for value in row).encode()).hexdigest()[:16]


@dataclass
class _Timeline(StepRows):
    """Makes the steps of the broker and of name servers, and those of clients after them."""

    listed: pl.DataFrame
    master_changes: pl.DataFrame
    clients: ClientSteps
    settings: Mapping[str, int]

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the steps."""
        of = self.of
        yield self.row(STOPPED, of.stopped_ts or of.outage_ts, before_ts=of.answered_ts, reason=self._how_it_stopped())
        if of.up_ts is not None:
            again = {True: "it had been started anew", False: "the same process", None: "no boot time was recorded"}
            yield self.row(ANSWERS, of.up_ts, reason=again[of.restarted])
        if of.broker_addr is None:
            return
        servers = self.changes(self.listed, of.until).rows(named=True)
        yield from self._name_servers(servers)
        yield from self._new_master()
        lost = [row for row in servers if self._lost(row)]
        removals = Removals(
            len(servers),
            [row["had_ts"] for row in servers],
            [row["lost_ts"] for row in lost],
            [row["back_ts"] for row in lost if row["back_ts"]],
        )
        yield from self.clients.rows(removals)

    def _how_it_stopped(self) -> str:
        if self.of.stopped_ts is None:
            return "only clients asked the broker: it stopped at this time or later"
        return "the first poll without an answer"

    def _name_servers(self, servers: Sequence[Row]) -> Iterator[Row]:
        of = self.of
        if not servers:
            expected = self.removal()
            reason = "no name server's list was recorded"
            yield self.row(REMOVED, self.due(expected), happened=False, reason=reason, judgement="undetermined")
        for row in servers:
            lost_ts = self._lost(row)
            known = self.settings.get(row["who"])
            expected = self.removal(known)
            unknown = OF_NAME_SERVER if known is None else None
            at: Row = {"namesrv_addr": row["who"] or None}
            ids = [(LISTS, row["had_id"]), (LISTS, row["lost_id"] if lost_ts else None)]
            if lost_ts is None:
                yield from self._kept(row, expected, unknown, at | {"evidence": ids[:1]})
                continue
            words = self._how_removed(row)
            yield self.judged(REMOVED, lost_ts, row["had_ts"], expected, words, unknown, **at, evidence=ids)
            if row["back_ts"] is None and of.up_ts is None:
                continue
            within = of.settings.registers_within
            # A broker may register before the poll that finds it up.
            back = None if of.up_ts is None else Interval(epoch_ms(lost_ts), epoch_ms(of.up_ts) + within)
            ids = [(LISTS, row["lost_id"]), (LISTS, row["back_id"])]
            if row["back_ts"] is None and back is not None and epoch_ms(row["last_ts"]) <= back.end:
                continue
            words, unknown = "a broker registers at its start, and every registerNameServerPeriod", None
            if not of.settings.is_described:
                unknown = SETTINGS_MISSING
            elif of.settings.goes_online_late and of.restarted is not False:
                words = unknown = GOES_ONLINE
            yield self.judged(LISTED, row["back_ts"], row["lacked_ts"], back, words, unknown, **at, evidence=ids)

    def _kept(self, row: Row, expected: Interval | None, unknown: str | None, at: Row) -> Iterator[Row]:
        """Yield the step of a name server that listed the broker all the time, once it was due."""
        of = self.of
        had_ts = row["had_ts"] if of.up_ts is None else min(row["had_ts"], of.up_ts)
        if expected is None or epoch_ms(had_ts) > expected.end:
            words = "its registration should have expired: it still registered"
            yield self.judged(REMOVED, None, had_ts, expected, words, unknown, **at)
        elif of.up_ts is not None and epoch_ms(of.up_ts) <= expected.end:
            reason = "it answered again before its registration expired, and was listed at each poll"
            yield self.row(
                *(REMOVED, of.up_ts, had_ts, expected), happened=False, judgement="agree", reason=reason, **at
            )

    def _new_master(self) -> Iterator[Row]:
        of = self.of
        changes = self.master_changes.filter(
            (pl.col("broker_name") == of.broker_name)
            & (pl.col("old_addr") == of.broker_addr)
            & (pl.col("to_ts") >= of.outage_ts)
            & (pl.col("to_ts") <= of.until)
        )
        for change in changes.sort("to_ts").head(1).rows(named=True):
            expected, words = None, "when the old master stopped is not known"
            if of.stopped_ts is not None:
                begin, stopped = min(of.answered_ts or of.stopped_ts, of.stopped_ts), epoch_ms(of.stopped_ts)
                expected = Interval(epoch_ms(begin), stopped + of.settings.elected_within)
                addr = change["new_addr"]
                words = f"{addr} is the master"
                # The last heartbeat was at most brokerHeartbeatInterval before the last answer.
                if epoch_ms(change["to_ts"] + SECOND) < epoch_ms(begin) + of.settings.heartbeat_timeout:
                    words = (
                        f"{addr} is the master; the old one's heartbeat had not expired: its channel closed, or it was"
                        " replaced"
                    )
            unknown = OF_CONTROLLER if of.settings.is_described else SETTINGS_MISSING
            ids = [(LISTS, change["record_id"])]
            yield self.judged(*(NEW_MASTER, change["to_ts"], change["from_ts"], expected, words, unknown), evidence=ids)

    def _how_removed(self, row: Row) -> str:
        of = self.of
        if of.stopped_ts is None:
            return "only clients asked the broker: when it stopped is not known"
        expired, period = of.settings.expired_time, of.settings.sign_period
        if self.settings.get(row["who"]) == 0:
            expired = BROKER_CHANNEL_EXPIRED_TIME
        if law.may_have_expired(epoch_ms(of.stopped_ts), epoch_ms(row["lost_ts"]), expired, period):
            return f"it did not register for {expired // 1000} s (BROKER_CHANNEL_EXPIRED_TIME)"
        return "its channel to the name server closed, or it unregistered"

    def _lost(self, row: Row) -> dt.datetime | None:
        """Return when a name server removed the broker; None if not, or not for this failover."""
        over = self.of.up_ts is not None and row["had_ts"] > self.of.up_ts + POLLS_APART
        lost_ts: dt.datetime | None = None if over else row["lost_ts"]
        return lost_ts


FAILOVER_STEP: Final = Decision(
    table="gold.failover_step",
    instant="ts",
    one="step of a failover",
    many="steps of failovers",
    importance=6,
    phrases=("{step}", "name server {namesrv_addr}", "due until {expected_to}", ("{judgement}: {reason}", "{reason}")),
    needs=(Need("broker_runtime"), Need("routes")),
    rows=by_name(failover_steps, failovers="outage_failovers", gap_s="same_cause_gap_s"),
    steps={
        "seen": by_name(Seen, failover_pulls="failovers", failover_exposure="gold.failover_exposure"),
        "judged_steps": by_name(judged_steps, steps="gold.failover_step"),
    },
    counted="judged_steps",
)
