"""gold.failover_step: the timeline of each failover, and whether each step took as long as RocketMQ's intervals allow.

A name server removes the broker, each client gets a route without it and reads from the slave, messages are delivered
again; then the broker answers, is listed again, and clients read from it again.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from mqreplay.core import failover_intervals as law
from mqreplay.core.failover_intervals import Interval, judge_time
from mqreplay.evidence.brokers.address_changes import UNREGISTERED_BEFORE, address_changes, listed_answers, routed_answers
from mqreplay.evidence.brokers.broker_outages import with_outage
from mqreplay.evidence.brokers.failovers import Failover
from mqreplay.evidence.time_spans import INSTANT

# Values of ``step``, in the order of a failover.
STOPPED, REMOVED, NEW_MASTER = "stopped_answering", "removed_by_name_server", "new_master_listed"
LEFT_ROUTE, SLAVE_READ, REDELIVERED = "left_route", "first_slave_read", "delivered_again"
ANSWERS, LISTED = "answers_again", "listed_again"
IN_ROUTE, MASTER_READ = "back_in_route", "first_master_read"
STEPS = (
    *(STOPPED, REMOVED, NEW_MASTER, LEFT_ROUTE, SLAVE_READ, REDELIVERED),
    *(ANSWERS, LISTED, IN_ROUTE, MASTER_READ),
)
EVIDENCE = pl.List(pl.Struct({"table_name": pl.String, "record_id": pl.String}))
SCHEMA: dict[str, pl.DataType] = {
    "day": pl.Date(),
    "outage_ts": INSTANT,
    "broker_name": pl.String(),
    "broker_id": pl.Int64(),
    "broker_addr": pl.String(),
    "step": pl.String(),
    "ts": INSTANT,
    "happened": pl.Boolean(),
    "before_ts": INSTANT,
    "expected_from": INSTANT,
    "expected_to": INSTANT,
    "namesrv_addr": pl.String(),
    "client_id": pl.String(),
    "consumer_group": pl.String(),
    "amount": pl.Int64(),
    "judgement": pl.String(),
    "reason": pl.String(),
    "evidence": EVIDENCE,
    "step_id": pl.String(),
}
LISTS, ROUTES, ROUTE_OF_PULL = "silver.cluster_info", "silver.route", "gold.pull_route"
SECOND = dt.timedelta(seconds=1)
# Name servers and clients are asked seconds apart: a step seen this much before its cause is no contradiction.
POLLS_APART = dt.timedelta(seconds=5)
Row = dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """What a day shows of failovers.

    ``lists`` and ``master_changes`` are frames of listed_brokers.py, ``route`` is silver.route, ``failover_pulls`` and
    ``returns`` have the rows of failovers_of_shard and returns_of_shard of all shards, ``repeated_deliveries`` those
    of deliveries.py, and ``failover_exposure`` is the gold table. ``skewed`` are clients with a wrong clock: times of
    their pulls are not known.
    """

    lists: pl.DataFrame
    master_changes: pl.DataFrame
    route: pl.DataFrame
    failover_pulls: pl.DataFrame
    returns: pl.DataFrame
    repeated_deliveries: pl.DataFrame
    failover_exposure: pl.DataFrame
    skewed: Collection[str] = ()


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
    listed, routed = listed_answers(seen.lists), routed_answers(seen.route)
    found: list[Row] = []
    for each in failovers:
        found.extend(_Timeline(each, seen, listed, routed, pulls, failed_over_s).rows())
    rows = pl.DataFrame(found, schema={name: SCHEMA[name] for name in SCHEMA if name not in ("day", "step_id")})
    who = ("broker_name", "broker_id", "step", "namesrv_addr", "client_id", "consumer_group")
    ids = [_step_id(row) for row in rows.select(pl.col("outage_ts").dt.epoch("ms"), *who).rows()]
    named = rows.with_columns(pl.col("ts").dt.date().alias("day"), pl.Series("step_id", ids, pl.String))
    return named.select([pl.col(name).cast(of) for name, of in SCHEMA.items()])


def judged_steps(steps: pl.DataFrame) -> pl.DataFrame:
    """Return the steps with a judgement; those of the broker itself follow no rule."""
    return steps.filter(pl.col("judgement").is_not_null()).with_columns(pl.lit(None, pl.String).alias("topic"))


def _step_id(row: Sequence[object]) -> str:
    """Return the id of a step, which is the same in every replay of the night."""
    return hashlib.sha256("\x1f".join("" if value is None else str(value) for value in row).encode()).hexdigest()[:16]


@dataclass
class _Timeline:
    """Makes the steps of one failover."""

    of: Failover
    seen: Seen
    listed: pl.DataFrame
    routed: pl.DataFrame
    pulls: pl.DataFrame
    failed_over_s: int

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the steps."""
        of = self.of
        yield self._row(STOPPED, of.stopped_ts or of.outage_ts, before_ts=of.answered_ts, reason=self._how_it_stopped())
        if of.up_ts is not None:
            again = {True: "it had been started anew", False: "the same process", None: "no boot time was recorded"}
            yield self._row(ANSWERS, of.up_ts, reason=again[of.restarted])
        if of.broker_addr is None:
            return
        servers = self._changes(self.listed, of.until).rows(named=True)
        yield from self._name_servers(servers)
        yield from self._new_master()
        yield from self._clients([self._lost(row) for row in servers], servers)
        yield from self._redelivered()

    def _how_it_stopped(self) -> str:
        if self.of.stopped_ts is None:
            return "only clients asked the broker: it stopped at this time or later"
        return "the first poll without an answer"

    def _name_servers(self, servers: Sequence[Row]) -> Iterator[Row]:
        of = self.of
        expected = self._removal()
        if not servers:
            reason = "no name server's list was recorded"
            yield self._row(REMOVED, self._due(expected), happened=False, reason=reason, judgement="undetermined")
        for row in servers:
            lost_ts = self._lost(row)
            at = {"namesrv_addr": row["who"] or None}
            ids = [(LISTS, row["had_id"]), (LISTS, row["lost_id"] if lost_ts else None)]
            if lost_ts is None:
                yield from self._kept(row, expected, at | {"evidence": ids[:1]})
                continue
            yield self._judged(REMOVED, lost_ts, row["had_ts"], expected, self._how_removed(row), **at, evidence=ids)
            if row["back_ts"] is None and of.up_ts is None:
                continue
            back = None if of.up_ts is None else law.registration(_ms(of.up_ts), of.version, of.register_period)
            # A broker may register before the poll that finds it up.
            back = None if back is None else Interval(_ms(lost_ts), back.end)
            ids = [(LISTS, row["lost_id"]), (LISTS, row["back_id"])]
            if row["back_ts"] is None and back is not None and _ms(row["last_ts"]) <= back.end:
                continue
            words = "each broker registers at its start, and then at each registerNameServerPeriod"
            yield self._judged(LISTED, row["back_ts"], row["lacked_ts"], back, words, **at, evidence=ids)

    def _kept(self, row: Row, expected: Interval | None, at: Row) -> Iterator[Row]:
        """Yield the step of a name server that listed the broker all the time, once it was due."""
        of = self.of
        had_ts = row["had_ts"] if of.up_ts is None else min(row["had_ts"], of.up_ts)
        if expected is None or _ms(had_ts) > expected.end:
            words = "its registration should have expired: it still registered, or the name server has another setting"
            yield self._judged(REMOVED, None, had_ts, expected, words, **at)
        elif of.up_ts is not None and _ms(of.up_ts) <= expected.end:
            reason = "it answered again before its registration expired, and was listed at each poll"
            yield self._row(
                *(REMOVED, of.up_ts, had_ts, expected), happened=False, judgement="agree", reason=reason, **at
            )

    def _new_master(self) -> Iterator[Row]:
        of = self.of
        changes = self.seen.master_changes.filter(
            (pl.col("broker_name") == of.broker_name)
            & (pl.col("old_addr") == of.broker_addr)
            & (pl.col("to_ts") >= of.outage_ts)
            & (pl.col("to_ts") <= of.until)
        )
        for change in changes.sort("to_ts").head(1).rows(named=True):
            stopped = of.stopped_ts
            expected = None if stopped is None else law.election(_ms(stopped))
            begin = None if expected is None else _ms(min(of.answered_ts or stopped, stopped))  # type: ignore[type-var]
            expected = None if expected is None or begin is None else Interval(begin, expected.end)
            words = f"{change['new_addr']} was elected by the controller" if expected else "when it stopped is not known"
            evidence = [(LISTS, change["record_id"])]
            yield self._judged(NEW_MASTER, change["to_ts"], change["from_ts"], expected, words, evidence=evidence)

    def _clients(self, removals: Sequence[dt.datetime | None], servers: Sequence[Row]) -> Iterator[Row]:
        """Yield the steps of each client: its routes, then its pulls."""
        of = self.of
        had = [row["had_ts"] for row in servers]
        lost = [each for each in removals if each is not None]
        backs = [row["back_ts"] for row, each in zip(servers, removals, strict=True) if each and row["back_ts"]]
        # Without lists, the name servers' own limit counts.
        removal = self._removal()
        if servers and len(lost) < len(servers):
            gone = None
        elif servers:
            gone = Interval(_ms(min(had) - POLLS_APART), law.route_update(0, _ms(max(lost))).end)
        else:
            gone = None if removal is None else Interval(removal.begin, law.route_update(0, removal.end).end)
        relisted = min(backs) if backs else of.up_ts if not servers else None
        first = {row["who"]: row for row in self._changes(self.routed, relisted or of.until).rows(named=True)}
        whole = {row["who"]: row for row in self._changes(self.routed, of.until).rows(named=True)}
        if not whole and gone is not None and of.is_master:
            reason = "no route of a client was recorded"
            yield self._row(LEFT_ROUTE, self._due(gone), happened=False, reason=reason, judgement="undetermined")
        latest = max(backs) if len(backs) == len(lost) and backs else of.up_ts if not servers else None
        for client, row in whole.items():
            lost_row = first.get(client, row)
            ids = [(ROUTES, lost_row["had_id"]), (ROUTES, lost_row["lost_id"])]
            at: Row = {"client_id": client, "evidence": ids}
            if lost_row["lost_ts"] is None:
                yield from self._kept_route(lost_row, row, gone, relisted, at)
                continue
            words = "a client asks for its routes every 30 s (pollNameServerInterval)"
            if gone is None:
                words = "not every recorded name server removed the broker"
            yield self._judged(LEFT_ROUTE, lost_row["lost_ts"], lost_row["had_ts"], gone, words, **at)
            yield from self._back_in_route(row, latest, backs)
        yield from self._reads(whole)

    def _kept_route(
        self, row: Row, whole: Row, gone: Interval | None, relisted: dt.datetime | None, at: Row
    ) -> Iterator[Row]:
        """Yield the step of a client whose route had the broker all the time, if it should have lost it."""
        if gone is None or (relisted is not None and _ms(relisted) <= gone.end):
            return
        if _ms(row["had_ts"]) > gone.end:
            words = "its name server still gave it the broker after the others had removed it"
            yield self._judged(LEFT_ROUTE, None, row["had_ts"], gone, words, **at)
        elif _ms(whole["last_ts"]) > gone.end:
            reason = "it asked for no route in this time, and kept the broker"
            yield self._row(
                *(LEFT_ROUTE, self._due(gone), row["had_ts"], gone),
                happened=False,
                judgement="differ",
                reason=reason,
                **at,
            )

    def _back_in_route(self, row: Row, latest: dt.datetime | None, backs: Sequence[dt.datetime]) -> Iterator[Row]:
        if latest is None:
            return
        first = min([*backs, self.of.up_ts or latest]) - POLLS_APART
        expected = law.route_update(_ms(first), _ms(latest))
        if row["back_ts"] is None and _ms(row["last_ts"]) <= expected.end:
            return  # it stopped, or the recording ended
        evidence = [(ROUTES, row["lost_id"]), (ROUTES, row["back_id"])]
        words = "a client asks for its routes every 30 s (pollNameServerInterval)"
        yield self._judged(
            *(IN_ROUTE, row["back_ts"], row["lacked_ts"], expected, words), client_id=row["who"], evidence=evidence
        )

    def _reads(self, routes: dict[str, Row]) -> Iterator[Row]:
        """Yield the first read of each client from the slave, and the first one from the master after it."""
        of = self.of
        here = (pl.col("broker_name") == of.broker_name) & ~pl.col("client_id").is_in(list(self.seen.skewed))
        mine = self.pulls.filter(here & (pl.col("outage_ts") == of.outage_ts)) if of.is_master else self.pulls.clear()
        first = mine.sort("ts", "record_id").group_by("client_id", maintain_order=True).agg(
            pl.col("ts").first(),
            pl.col("ts").last().alias("last_ts"),
            pl.col("record_id").first(),
            pl.len().alias("pulls"),
        )
        for read in first.sort("client_id").rows(named=True):
            route = routes.get(read["client_id"])
            at: Row = {"client_id": read["client_id"], "evidence": [(ROUTE_OF_PULL, read["record_id"])]}
            expected = None if route is None or route["lost_ts"] is None else law.next_pull(_ms(route["lost_ts"]))
            # A pull may use the route of one topic before the routes of all topics are there.
            expected = None if expected is None else Interval(_ms(route["had_ts"]), expected.end)  # type: ignore[index]
            yield self._pull(SLAVE_READ, read["ts"], expected, amount=read["pulls"], **at)
            if route is None or route["back_ts"] is None:
                continue
            back = self.seen.returns.filter(
                here & (pl.col("client_id") == read["client_id"]) & (pl.col("ts") > read["ts"]) & (pl.col("ts") <= of.until)
            ).sort("ts", "record_id")
            known = route["lacked_ts"] or route["lost_ts"]
            back = back.filter(pl.col("ts") >= known)
            for pull in back.head(1).rows(named=True):
                expected = Interval(_ms(known), law.next_pull(_ms(route["back_ts"])).end)
                evidence = [(ROUTE_OF_PULL, pull["record_id"])]
                yield self._pull(MASTER_READ, pull["ts"], expected, client_id=read["client_id"], evidence=evidence)

    def _pull(self, step: str, ts: dt.datetime, expected: Interval | None, **more: Any) -> Row:
        """Return the step of a pull: a late one may have been paused, or kept by suggestions, so it never differs."""
        seen = _ms(ts)
        if expected is None:
            judgement, reason = "undetermined", "the client's route is not known"
        elif expected.begin <= seen <= expected.end:
            judgement, reason = "agree", "the next pull after its route changed, its last pull had 30 s to end"
        else:
            judgement = "undetermined"
            reason = "later than the timeout of one pull: it may have been paused, or taken the queue later"
            if step == MASTER_READ:
                reason = "later than the timeout of one pull: the slave's suggestions decide (gold.slave_suggestion)"
        return self._row(step, ts, expected=expected, judgement=judgement, reason=reason, **more)

    def _redelivered(self) -> Iterator[Row]:
        """Yield the messages of each group that were delivered again, from the first slave read until after the end."""
        of = self.of
        if not of.is_master:
            return
        end = min((of.up_ts or of.until) + self.failed_over_s * SECOND, of.until)
        again = self.seen.repeated_deliveries.filter(
            (pl.col("broker_name") == of.broker_name)
            & (pl.col("ts") >= of.outage_ts)
            & (pl.col("ts") <= end)
            & (pl.col("previous_ts") < end)
        )
        groups = again.sort("ts", "record_id").group_by("consumer_group", maintain_order=True).agg(
            pl.col("ts").first(),
            pl.len().alias("messages"),
            pl.col("record_id").head(3),
        )
        for row in groups.sort("consumer_group").rows(named=True):
            lacked = self._lacked(row["consumer_group"])
            judgement, reason = "undetermined", "the offsets that the slave lacked are not known"
            if lacked is not None and row["messages"] <= lacked:
                judgement, reason = "agree", f"the slave's offsets lacked {lacked} messages of the group"
            elif lacked is not None:
                reason = f"the slave's offsets lacked only {lacked} messages of the group: there are other causes"
            yield self._row(
                *(REDELIVERED, row["ts"]),
                consumer_group=row["consumer_group"],
                amount=row["messages"],
                judgement=judgement,
                reason=reason,
                evidence=[("silver.consume", each) for each in row["record_id"]],
            )

    def _lacked(self, group: str) -> int | None:
        """Return how many messages of the group the slave's offsets lacked when the master stopped, at most."""
        minute = self.of.outage_ts.replace(second=0, microsecond=0)
        near = self.seen.failover_exposure.filter(
            (pl.col("broker_name") == self.of.broker_name)
            & pl.col("minute_ts").is_between(minute - 60 * SECOND, minute)
            & pl.col("redelivered").is_not_null()
        )
        if near.is_empty():
            return None
        entries = near["redelivered_by_group"].to_list()
        return max(sum(each["value"] for each in row or () if each["key"] == group) for row in entries)

    def _removal(self) -> Interval | None:
        of = self.of
        if of.stopped_ts is None:
            return None
        limit = law.removal_by_name_server(_ms(of.stopped_ts), of.version, of.expired_time)
        return Interval(_ms((of.answered_ts or of.stopped_ts) - UNREGISTERED_BEFORE), limit.end)

    def _how_removed(self, row: Row) -> str:
        of = self.of
        if of.stopped_ts is None:
            return "only clients asked the broker: when it stopped is not known"
        if law.may_have_expired(_ms(of.stopped_ts), _ms(row["lost_ts"]), of.expired_time, of.register_period):
            return f"it did not register for {of.expired_time // 1000} s (BROKER_CHANNEL_EXPIRED_TIME)"
        return "its channel to the name server closed, or it unregistered"

    def _lost(self, row: Row) -> dt.datetime | None:
        """Return when a name server removed the broker; None if not, or not for this failover."""
        over = self.of.up_ts is not None and row["had_ts"] > self.of.up_ts + POLLS_APART
        lost_ts: dt.datetime | None = None if over else row["lost_ts"]
        return lost_ts

    def _changes(self, answers: pl.DataFrame, until: dt.datetime) -> pl.DataFrame:
        of = self.of
        begin = of.answered_ts or of.outage_ts
        return address_changes(answers, of.broker_name, of.broker_addr or "", max(begin, of.outage_ts), until)

    def _due(self, expected: Interval | None) -> dt.datetime:
        """Return when a step was due that was not seen."""
        latest = self.of.up_ts or self.of.until
        return latest if expected is None else min(_instant(expected.end), latest)

    def _judged(
        self,
        step: str,
        ts: dt.datetime | None,
        before_ts: dt.datetime | None,
        expected: Interval | None,
        words: str,
        **more: Any,
    ) -> Row:
        """Return a step that the law judges; ``ts`` is None if it was not seen."""
        judgement = "undetermined"
        if expected is not None:
            judgement = judge_time(
                expected, None if before_ts is None else _ms(before_ts), None if ts is None else _ms(ts)
            )
            late = None if before_ts is None else (_ms(before_ts) - expected.end) // 1000
            if judgement == "differ":
                words = f"more than {late} s later than the limit: {words}"
            elif judgement == "undetermined":
                words = f"between two records, of which only one is within the limit: {words}"
                if ts is not None and _ms(ts) < expected.begin:
                    words = "earlier than any recorded name server: it may have asked another one"
        due = self._due(expected) if ts is None else ts
        return self._row(
            step, due, before_ts, expected, happened=ts is not None, judgement=judgement, reason=words, **more
        )

    def _row(
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
        return {
            "outage_ts": self.of.outage_ts,
            "broker_name": self.of.broker_name,
            "broker_id": self.of.broker_id,
            "broker_addr": self.of.broker_addr,
            "step": step,
            "ts": ts,
            "happened": happened,
            "before_ts": before_ts,
            "expected_from": None if expected is None else _instant(expected.begin),
            "expected_to": None if expected is None else _instant(expected.end),
            "namesrv_addr": namesrv_addr,
            "client_id": client_id,
            "consumer_group": consumer_group,
            "amount": amount,
            "judgement": judgement,
            "reason": reason,
            "evidence": [{"table_name": table, "record_id": each} for table, each in evidence if each is not None],
        }


def _ms(instant: dt.datetime) -> int:
    return (instant - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)


def _instant(ms: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=ms)
