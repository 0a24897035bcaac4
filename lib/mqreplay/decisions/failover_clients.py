"""The steps of clients in a failover: their routes, their pulls, and messages that they received again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from mqreplay.core import failover_intervals as law
from mqreplay.core.failover_intervals import Interval
from mqreplay.decisions.failover_row import (
    ASKS_FOR_ROUTES,
    IN_ROUTE,
    LEFT_ROUTE,
    MASTER_READ,
    OF_CLIENT,
    OF_NAME_SERVER,
    POLLS_APART,
    REDELIVERED,
    ROUTE_OF_PULL,
    ROUTES,
    SECOND,
    SLAVE_READ,
    Row,
    StepRows,
    epoch_ms,
)
from mqreplay.evidence.frames import MAP_OF_NUMBERS
from mqreplay.evidence.intervals import INSTANT

# Consumers commit every 5 s (ClientConfig#persistConsumerOffsetInterval); the commit and a rebalance take a moment.
UNCOMMITTED = 10 * SECOND


@dataclass(frozen=True)
class Removals:
    """What name servers did with the broker.

    ``had_ts``: until when each listed it. ``lost_ts``: when each removed it, of those that did. ``back_ts``: when each
    of them listed it again. ``servers``: how many name servers' lists were recorded.
    """

    servers: int
    had_ts: Sequence[dt.datetime]
    lost_ts: Sequence[dt.datetime]
    back_ts: Sequence[dt.datetime]

    @property
    def all_removed(self) -> bool:
        """Return whether no name server is known to have kept the broker."""
        return len(self.lost_ts) == self.servers


@dataclass
class ClientSteps(StepRows):
    """Makes the steps of clients.

    ``routed`` is the frame of `routed_answers`; ``pulls`` are the pulls that the outage sent to the slave, with
    outage_ts; ``returns`` has the rows of returns_of_shard of all shards, ``repeated_deliveries`` those of
    deliveries.py; ``failover_exposure`` is the gold table. ``skewed`` are clients with a wrong clock, ``starts`` the
    instants before which the recording has a gap, ``poll_intervals`` as Seen has them.
    """

    routed: pl.DataFrame
    pulls: pl.DataFrame
    returns: pl.DataFrame
    repeated_deliveries: pl.DataFrame
    failover_exposure: pl.DataFrame
    skewed: Collection[str]
    starts: Collection[dt.datetime]
    failed_over_s: int
    poll_intervals: Mapping[str, int]

    def rows(self, removals: Removals) -> Iterator[Row]:
        """Yield the steps of each client: its routes, then its pulls; and those of groups."""
        of = self.of
        unknown = None if removals.servers else OF_NAME_SERVER
        backs = removals.back_ts
        relisted = min(backs) if backs else None if removals.servers else of.up_ts
        first = {row["who"]: row for row in self.changes(self.routed, relisted or of.until).rows(named=True)}
        whole = {row["who"]: row for row in self.changes(self.routed, of.until).rows(named=True)}
        if not whole and of.is_master and (gone := self._gone(removals)) is not None:
            reason = "no route of a client was recorded"
            yield self.row(LEFT_ROUTE, self.due(gone), happened=False, reason=reason, judgement="undetermined")
        latest = max(backs) if backs and len(backs) == len(removals.lost_ts) else None
        latest = latest if removals.servers else of.up_ts
        for client, row in whole.items():
            gone, words = self._gone(removals, client), ASKS_FOR_ROUTES.format(self._interval(client) // 1000)
            if row["lost_ts"] is None or (backs and row["lost_ts"] > max(backs)):
                limit = gone if removals.all_removed else None
                yield from self._kept_route(first.get(client), row, limit, relisted, unknown)
                continue
            ids = [(ROUTES, row["had_id"]), (ROUTES, row["lost_id"])]
            expected = gone
            if gone is None or not (removals.all_removed or epoch_ms(row["lost_ts"]) <= gone.end):
                expected, words = None, "not every recorded name server removed the broker"
            yield self.judged(
                *(LEFT_ROUTE, row["lost_ts"], row["had_ts"], expected, words, unknown), client_id=client, evidence=ids
            )
            yield from self._back_in_route(row, latest, backs)
        yield from self._reads(whole)
        yield from self._redelivered()

    def _interval(self, client: str) -> int:
        return self.poll_intervals.get(client, law.POLL_NAME_SERVER_INTERVAL)

    def _gone(self, removals: Removals, client: str = "") -> Interval | None:
        """Return when a client gets a route without the broker; None if no name server removed it."""
        removal, interval = self.removal(), self._interval(client)
        if not removals.servers:  # without lists, the name servers' own limit counts
            return removal and Interval(removal.begin, law.route_update(0, removal.end, interval).end)
        if not removals.lost_ts:
            return None
        first = min(removals.had_ts) - POLLS_APART
        return law.route_update(epoch_ms(first), epoch_ms(max(removals.lost_ts)), interval)

    def _kept_route(
        self,
        row: Row | None,
        whole: Row,
        gone: Interval | None,
        relisted: dt.datetime | None,
        unknown: str | None,
    ) -> Iterator[Row]:
        """Yield the step of a client whose route had the broker all the time, if it should have lost it.

        ``row`` has its answers until the broker was ``relisted``, None if there are none; ``whole`` has all.
        """
        if gone is None or (relisted is not None and epoch_ms(relisted) <= gone.end):
            return
        kept_ts, words = None, "not every answer to the client was recorded"
        asked_after = self.of.outage_ts - 2 * dt.timedelta(milliseconds=self._interval(whole["who"]))
        if row is not None and epoch_ms(row["had_ts"]) > gone.end:
            kept_ts, words = row["had_ts"], "its name server still gave it the broker after the others had removed it"
        elif epoch_ms(whole["last_ts"]) <= gone.end:
            return  # it stopped, or the recording ended
        # Clients' logs have only the routes that changed.
        elif row is not None and row["had_ts"] >= asked_after and not self._has_gap(row, whole):
            kept_ts = min(whole["last_ts"], relisted or whole["last_ts"])
            words = "it asked for no route in this time, and kept the broker"
            unknown = unknown if whole["who"] in self.poll_intervals else OF_CLIENT
        at: Row = {"client_id": whole["who"], "evidence": [(ROUTES, (row or whole)["had_id"])]}
        if kept_ts is not None:
            yield self.judged(LEFT_ROUTE, None, kept_ts, gone, words, unknown, **at)
        else:
            more: Row = {"happened": False, "judgement": "undetermined", "reason": words}
            yield self.row(LEFT_ROUTE, self.due(gone), None, gone, **more, **at)

    def _has_gap(self, row: Row, whole: Row) -> bool:
        return any(row["had_ts"] < each <= whole["last_ts"] for each in self.starts)

    def _back_in_route(self, row: Row, latest: dt.datetime | None, backs: Sequence[dt.datetime]) -> Iterator[Row]:
        if latest is None:
            return
        first = min([*backs, self.of.up_ts or latest]) - POLLS_APART
        interval = self._interval(row["who"])
        expected = law.route_update(epoch_ms(first), epoch_ms(latest), interval)
        if row["back_ts"] is None and epoch_ms(row["last_ts"]) <= expected.end:
            return  # it stopped, or the recording ended
        evidence = [(ROUTES, row["lost_id"]), (ROUTES, row["back_id"])]
        yield self.judged(
            *(IN_ROUTE, row["back_ts"], row["lacked_ts"], expected, ASKS_FOR_ROUTES.format(interval // 1000)),
            client_id=row["who"],
            evidence=evidence,
        )

    def _reads(self, routes: dict[str, Row]) -> Iterator[Row]:
        """Yield the first read of each client from the slave, and the first one from the master after it."""
        of = self.of
        here = (pl.col("broker_name") == of.broker_name) & ~pl.col("client_id").is_in(list(self.skewed))
        sent = self.pulls.filter(here & (pl.col("outage_ts") == of.outage_ts)) if of.is_master else self.pulls.clear()
        first = (
            sent.sort("ts", "record_id")
            .group_by("client_id", maintain_order=True)
            .agg(
                pl.col("ts").first(),
                pl.col("ts").last().alias("last_ts"),
                pl.col("record_id").first(),
                pl.len().alias("pulls"),
            )
        )
        for read in first.sort("client_id").rows(named=True):
            route = routes.get(read["client_id"])
            at: Row = {"client_id": read["client_id"], "evidence": [(ROUTE_OF_PULL, read["record_id"])]}
            expected = None
            if route is not None and route["lost_ts"] is not None:
                # A pull may use the route of one topic before the routes of all topics are there.
                expected = Interval(epoch_ms(route["had_ts"]), law.next_pull(epoch_ms(route["lost_ts"])).end)
            yield self._pull(SLAVE_READ, read["ts"], expected, amount=read["pulls"], **at)
            if route is None or route["back_ts"] is None:
                continue
            known = route["lacked_ts"] or route["lost_ts"]
            mine = here & (pl.col("client_id") == read["client_id"])
            back = self.returns.filter(mine & (pl.col("ts") >= max(known, read["ts"])) & (pl.col("ts") <= of.until))
            for pull in back.sort("ts", "record_id").head(1).rows(named=True):
                expected = Interval(epoch_ms(known), law.next_pull(epoch_ms(route["back_ts"])).end)
                evidence = [(ROUTE_OF_PULL, pull["record_id"])]
                yield self._pull(MASTER_READ, pull["ts"], expected, client_id=read["client_id"], evidence=evidence)

    def _pull(self, step: str, ts: dt.datetime, expected: Interval | None, **more: Any) -> Row:
        """Return the step of a pull: a late one may have been paused, or kept by suggestions, so it never differs."""
        seen = epoch_ms(ts)
        if expected is None:
            judgement, reason = "undetermined", "the client's route is not known"
        elif expected.begin <= seen <= expected.end:
            judgement, reason = "agree", "the next pull after its route changed"
        else:
            judgement = "undetermined"
            reason = "later than the timeout of one pull: it may have been paused, or taken the queue later"
            if step == MASTER_READ:
                reason = "later than the timeout of one pull: the slave's suggestions decide (gold.slave_suggestion)"
        return self.row(step, ts, expected=expected, judgement=judgement, reason=reason, **more)

    def _redelivered(self) -> Iterator[Row]:
        """Yield the messages of each group that were delivered again, from the first slave read until after the end."""
        of = self.of
        if not of.is_master:
            return
        end = min((of.up_ts or of.until) + self.failed_over_s * SECOND, of.until)
        again = self.repeated_deliveries.filter(
            (pl.col("broker_name") == of.broker_name) & pl.col("ts").is_between(of.outage_ts, end)
        )
        other = pl.col("client_id") != pl.col("previous_client_id")
        handed = other & (pl.col("ts") - pl.col("previous_ts") <= UNCOMMITTED)
        # Only a master that goes online late copies what was committed to its slave meanwhile (SlaveSynchronize).
        up = pl.lit(of.up_ts or of.until, INSTANT)
        returned = (pl.col("ts") >= up) & (pl.col("previous_ts") < up) & (pl.col("previous_ts") >= of.outage_ts)
        returned &= pl.lit(not of.settings.goes_online_late)
        groups = (
            again.sort("ts", "record_id")
            .group_by("consumer_group", maintain_order=True)
            .agg(
                pl.col("ts").first(),
                pl.len().alias("messages"),
                handed.sum().alias("handed"),
                (returned & ~handed).sum().alias("returned"),
                pl.col("record_id").head(3),
            )
        )
        for row in groups.sort("consumer_group").rows(named=True):
            judgement, reason = self._why_again(row)
            yield self.row(
                *(REDELIVERED, row["ts"]),
                consumer_group=row["consumer_group"],
                amount=row["messages"],
                judgement=judgement,
                reason=reason,
                evidence=[("silver.consume", each) for each in row["record_id"]],
            )

    def _why_again(self, row: Row) -> tuple[str, str]:
        """Return the judgement of messages that were delivered again to a group, and the reason."""
        rest = row["messages"] - row["handed"] - row["returned"]
        if rest <= 0 and row["handed"] >= row["returned"]:
            return (
                "agree",
                "queues changed hands before the next commit (persistConsumerOffsetInterval)",
            )
        if rest <= 0:
            return "agree", "offsets were committed to the slave meanwhile, and the master that returned lacked them"
        lacked = self._lacked(row["consumer_group"])
        if lacked is None:
            return "undetermined", "the offsets that the slave lacked are not known"
        if rest <= lacked:
            return "agree", f"the slave's offsets lacked {lacked} messages of the group"
        return "undetermined", f"the slave's offsets lacked only {lacked} messages: there are other causes"

    def _lacked(self, group: str) -> int | None:
        """Return how many messages of the group the slave's offsets lacked when the master stopped, at most."""
        minute = self.of.outage_ts.replace(second=0, microsecond=0)
        near = self.failover_exposure.filter(
            (pl.col("broker_name") == self.of.broker_name)
            & pl.col("minute_ts").is_between(minute - 60 * SECOND, minute)
            & pl.col("redelivered").is_not_null()
        )
        if near.is_empty():
            return None
        entries = near["redelivered_by_group"].cast(MAP_OF_NUMBERS).to_list()
        return max(sum(each["value"] for each in row or () if each["key"] == group) for row in entries)
