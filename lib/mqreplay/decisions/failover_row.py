"""Rows of gold.failover_step, and the judgement of their times."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from mqreplay.core import failover_intervals as law
from mqreplay.core.failover_intervals import Interval, judge_time
from mqreplay.core.version import BROKER_4, BROKER_5
from mqreplay.evidence.brokers.address_changes import UNREGISTERED_BEFORE, address_changes
from mqreplay.evidence.brokers.failovers import Failover
from mqreplay.evidence.frames import columns
from mqreplay.evidence.intervals import INSTANT
from mqreplay.words.time_span import EPOCH

# Values of ``step``, in the order of a failover.
STOPPED, REMOVED, NEW_MASTER = "stopped_answering", "removed_by_name_server", "new_master_listed"
LEFT_ROUTE, SLAVE_READ, REDELIVERED = "left_route", "first_slave_read", "delivered_again"
ANSWERS, LISTED = "answers_again", "listed_again"
IN_ROUTE, MASTER_READ = "back_in_route", "first_master_read"
STEPS = (
    *(STOPPED, REMOVED, NEW_MASTER, LEFT_ROUTE, SLAVE_READ, REDELIVERED),
    *(ANSWERS, LISTED, IN_ROUTE, MASTER_READ),
)
STEP_EVIDENCE = pl.List(pl.Struct({"table_name": pl.String, "record_id": pl.String}))
SCHEMA: dict[str, pl.DataType] = {
    **columns("day", "outage_ts", "broker_name", "broker_id", "broker_addr", "step", "ts"),
    "happened": pl.Boolean(),
    "before_ts": INSTANT,
    "expected_from": INSTANT,
    "expected_to": INSTANT,
    **columns("namesrv_addr", "client_id", "consumer_group"),
    "amount": pl.Int64(),
    **columns("judgement", "reason"),
    "evidence": STEP_EVIDENCE,
    "step_id": pl.String(),
}
LISTS, ROUTES, ROUTE_OF_PULL = "silver.cluster_info", "silver.route", "gold.pull_route"
SECOND = dt.timedelta(seconds=1)
# Name servers and clients are asked seconds apart: a step seen this much before its cause is no contradiction.
POLLS_APART = dt.timedelta(seconds=5)
ASKS_FOR_ROUTES = "a client asks for its routes every {} s (pollNameServerInterval)"
# Settings that may explain a step that is later than their defaults allow.
OF_NAME_SERVER = "the version and settings of the name server are not recorded (scanNotActiveBrokerInterval)"
OF_CLIENT = "the client's pollNameServerInterval is not recorded: it asked for no route in this time"
SETTINGS_MISSING = "the broker's settings are not recorded"
Row = dict[str, Any]


@dataclass
class StepRows:
    """Makes the rows of one failover."""

    of: Failover

    def removal(self, name_server: int | None = None) -> Interval | None:
        """Return when a name server removes the broker; None if it is not known when it stopped.

        ``name_server``: its scanNotActiveBrokerInterval in ms, 0 for one of 4.x, None if it is not known.
        """
        of, scan = self.of, law.SCAN_OF_4 if name_server is None else name_server
        if of.stopped_ts is None:
            return None
        version = BROKER_5 if scan else BROKER_4
        limit = law.removal_by_name_server(epoch_ms(of.stopped_ts), version, of.settings.expired_time, scan)
        return Interval(epoch_ms((of.answered_ts or of.stopped_ts) - UNREGISTERED_BEFORE), limit.end)

    @property
    def begin(self) -> dt.datetime:
        """Return the first instant at which the broker may have been taken out of lists."""
        return self._stopped - UNREGISTERED_BEFORE

    @property
    def _stopped(self) -> dt.datetime:
        return max(self.of.answered_ts or self.of.outage_ts, self.of.outage_ts)

    def changes(self, answers: pl.DataFrame, until: dt.datetime) -> pl.DataFrame:
        """Return the frame of `address_changes` for the broker of the failover."""
        return address_changes(answers, self.of.broker_name, self.of.broker_addr or "", self._stopped, until)

    def due(self, expected: Interval | None) -> dt.datetime:
        """Return when a step was due that was not seen."""
        latest = self.of.up_ts or self.of.until
        return latest if expected is None else min(instant_of(expected.end), latest)

    def judged(
        self,
        step: str,
        ts: dt.datetime | None,
        before_ts: dt.datetime | None,
        expected: Interval | None,
        words: str,
        unknown: str | None = None,
        **more: Any,
    ) -> Row:
        """Return a step that the law judges; ``ts`` is None if it was not seen.

        ``unknown``: a setting that may explain a late step.
        """
        judgement = "undetermined"
        if expected is not None:
            judgement = judge_time(
                expected, None if before_ts is None else epoch_ms(before_ts), None if ts is None else epoch_ms(ts)
            )
            late = None if before_ts is None else (epoch_ms(before_ts) - expected.end) // 1000
            if judgement == "differ" and unknown is not None:
                judgement, words = "undetermined", f"{late} s later than by the defaults: {unknown}"
            elif judgement == "differ":
                words = f"more than {late} s later than the limit: {words}"
            elif judgement == "undetermined":
                words = f"between two records, of which only one is within the limit: {words}"
                if ts is not None and epoch_ms(ts) < expected.begin:
                    words = "earlier than any recorded name server: it may have asked another one"
        due = self.due(expected) if ts is None else ts
        return self.row(
            step, due, before_ts, expected, happened=ts is not None, judgement=judgement, reason=words, **more
        )

    def row(
        self,
        step: str,
        ts: dt.datetime,
        before_ts: dt.datetime | None = None,
        expected: Interval | None = None,
        *,
        happened: bool = True,
        judgement: str | None = None,
        reason: str = "",
        namesrv_addr: str | None = None,
        client_id: str | None = None,
        consumer_group: str | None = None,
        amount: int | None = None,
        evidence: Sequence[tuple[str, str | None]] = (),
    ) -> Row:
        """Return a row, without the columns that are made of others."""
        return {
            "outage_ts": self.of.outage_ts,
            "broker_name": self.of.broker_name,
            "broker_id": self.of.broker_id,
            "broker_addr": self.of.broker_addr,
            "step": step,
            "ts": ts,
            "happened": happened,
            "before_ts": before_ts,
            "expected_from": None if expected is None else instant_of(expected.begin),
            "expected_to": None if expected is None else instant_of(expected.end),
            "namesrv_addr": namesrv_addr,
            "client_id": client_id,
            "consumer_group": consumer_group,
            "amount": amount,
            "judgement": judgement,
            "reason": reason,
            "evidence": [{"table_name": table, "record_id": each} for table, each in evidence if each is not None],
        }


def epoch_ms(instant: dt.datetime) -> int:
    """Return an instant as epoch ms."""
    return (instant - EPOCH) // dt.timedelta(milliseconds=1)


def instant_of(ms: int) -> dt.datetime:
    """Return the instant of epoch ms."""
    return EPOCH + dt.timedelta(milliseconds=ms)
