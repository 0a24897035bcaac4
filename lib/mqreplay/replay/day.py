"""The rows that the replay of one day reads: of the day, of its lookback, and the offsets at its start.

No row of a later day is read, and none that depends on which other days are replayed, so the result of a day is always
the same.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from mqreplay.decode.kinds import KINDS
from mqreplay.engines.rows import RowSource, Wanted
from mqreplay.evidence.brokers.broker_descriptions import with_stated_ends
from mqreplay.evidence.client_clocks import by_recorders_clock
from mqreplay.evidence.offsets.carried import CHECKPOINT_KEY, VALUES, carried_configs, carried_offsets, offsets_at
from mqreplay.lake.row_filter import Days
from mqreplay.words.time_span import ONE_DAY

NO_TIME = dt.timedelta()
# The silver tables that a replay reads, and the instant of their rows.
INSTANTS = {kind.table.split(".")[1]: kind.time for kind in KINDS.values()}
INSTANTS |= {"offset_change": "to_ts", "topic_config": "ts", "snapshot": "ts", "pop_order": "ts", "delay_offset": "ts"}
# Large tables: read one shard at a time.
BY_QUEUE = ("pull", "offset_commit", "offset_lookup", "offset_change", "consume", "produce")
LOWERED = "lowered_offset"  # read so, too
BY_TOPIC = ("send",)  # large too: read for some topics at a time
READ_BY_GROUP = ("pop", "pop_ack", "pop_assignment", "lock")  # large too: read for some groups at a time
CARRIED = {"topic_config": "topic", "delay_offset": "delay_level"}  # states before the lookback count; by key
DESCRIPTIONS = ("broker", "subscription_group")  # each row is valid until the next one
BY_RECORDER = ("running_info", "broker_log")  # sources whose instants are not from a client's clock
CHECKPOINT = "silver.offset_checkpoint"
ALL_DAYS = Days()
ANY = pl.lit(True)


@dataclass(frozen=True)
class Skew:
    """Clients with a wrong clock: rows of client_clocks."""

    rows: pl.DataFrame

    @property
    def clients(self) -> list[str]:
        """Return their ids, in order."""
        return sorted(self.rows["client_id"].unique().to_list())

    @property
    def behind(self) -> dt.timedelta:
        """Return the largest time by which one of these clocks was behind."""
        return dt.timedelta(milliseconds=max(0, -int(self.rows["skew_ms"].min() or 0)))  # type: ignore[arg-type]

    @property
    def reach(self) -> dt.timedelta:
        """Return the largest error of an instant of these clients."""
        return dt.timedelta(milliseconds=int(self.rows["skew_ms"].abs().max() or 0))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Day:
    """One day of one cluster, and its bounds (UTC). ``is_first``: nothing of the cluster was recorded before it."""

    cluster: str
    day: dt.date
    since: dt.datetime
    is_first: bool

    @property
    def begin(self) -> dt.datetime:
        """Return the midnight at the start of the day."""
        return dt.datetime.combine(self.day, dt.time(), dt.UTC)

    @property
    def end(self) -> dt.datetime:
        """Return the midnight at the end of the day."""
        return self.begin + ONE_DAY

    @property
    def judged(self) -> pl.Expr:
        """Return whether a row is judged here: rows of the lookback belong to the day before."""
        return pl.col("day") == self.day

    @property
    def reads_gold(self) -> bool:
        """Return whether gold rows of the lookback are those of an earlier replay."""
        return True


@dataclass(frozen=True)
class Window(Day):
    """The last minutes of a recording, from ``since`` to ``until``: all of its rows are judged, and gold is not read.

    Findings count from ``reported_from`` on; rows before it are their evidence. ``day`` is the day of the last row.
    """

    reported_from: dt.datetime
    until: dt.datetime

    @property
    def begin(self) -> dt.datetime:
        """Return the instant from which findings count."""
        return self.reported_from

    @property
    def end(self) -> dt.datetime:
        """Return the instant at which the window ends."""
        return self.until

    @property
    def judged(self) -> pl.Expr:
        """Return true: no other replay judges rows of the window."""
        return pl.lit(True)

    @property
    def reads_gold(self) -> bool:
        """Return false: what the window needs is judged in it."""
        return False


@dataclass(frozen=True)
class DayRows:
    """The rows that the replay of a day reads from a source."""

    day: Day
    source: RowSource

    @staticmethod
    def with_stated_ends(rows: dict[str, pl.DataFrame], broker: pl.DataFrame) -> dict[str, pl.DataFrame]:
        """Return the tables of a shard; pulls have no max_offset where it is not the end of the queue."""
        return rows | {"pull": with_stated_ends(rows["pull"], broker)}

    def silver(
        self,
        name: str,
        of: Wanted = None,
        skew: Skew | None = None,
        columns: Sequence[str] | None = None,
    ) -> pl.DataFrame:
        """Return rows of a silver table, of the day and its lookback; by the recorder's clock with a ``skew``.

        ``of``: only the rows of a shard, or those for which an expression is true.
        """
        ts, since = INSTANTS[name], self.day.since
        rows = self.around(name, NO_TIME, of, columns)
        if skew is not None and "client_id" in rows.columns:
            rows = self._put_right(rows, name, of, skew, columns)
        if self.day.is_first:
            return rows
        if name == "offset_change":
            return pl.concat([rows, self._carried_offsets(rows, of)])
        if name in CARRIED:
            earlier = self.source.read(f"silver.{name}", Days(last=since.date()), ANY, None, columns)
            return pl.concat([rows, carried_configs(earlier.filter(pl.col(ts) < since), CARRIED[name])])
        return rows

    def around(
        self, name: str, reach: dt.timedelta, of: Wanted = None, columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """Return rows of a silver table with a margin before and after; without carried-over rows."""
        since, end = self.day.since - reach, self.day.end + reach
        ts = pl.col(INSTANTS[name])
        days = Days(since.date(), end.date())  # row groups are skipped by it
        return self.source.read(f"silver.{name}", days, (ts >= since) & (ts < end), of, columns)

    def of_recorder(self, name: str, of: Wanted = None, *, read: bool = True) -> pl.DataFrame:
        """Return rows of a silver table that the recorder itself requested: clients request the same often.

        Without ``read`` there are none, and no file is read.
        """
        asked = pl.col("client_id").is_null() if read else pl.lit(False)
        since, end = self.day.since, self.day.end
        ts = pl.col(INSTANTS[name])
        days = Days(since.date(), end.date())
        return self.source.read(f"silver.{name}", days, (ts >= since) & (ts < end) & asked, of)

    def described(self, name: str) -> pl.DataFrame:
        """Return rows of a table of descriptions, each valid until the next one: all until the day's end."""
        return self.source.read(f"silver.{name}", ALL_DAYS, pl.col("ts") < self.day.end)

    def gold_before(self, name: str, ts: str, of: Wanted = None) -> pl.DataFrame:
        """Return rows of a gold table of earlier days whose instant is in the lookback."""
        since = self.day.since
        days = Days(since.date(), self.day.day - ONE_DAY)
        if not self.day.reads_gold:
            return self.source.read(name, days, pl.lit(False), of)
        return self.source.read(name, days, (pl.col(ts) >= since) & (pl.col(ts) < self.day.end), of)

    def with_before(self, name: str, ts: str, rows: pl.DataFrame, of: Wanted = None) -> pl.DataFrame:
        """Return the day's rows of a gold table, and those of the day before that are in the lookback."""
        before = self.gold_before(name, ts, of)
        return pl.concat([before.select(rows.columns), rows]) if len(before) else rows

    def gold_day_before(self, name: str) -> pl.DataFrame:
        """Return rows of a gold table of the day before."""
        before = self.day.day - ONE_DAY
        return self.source.read(name, Days(before, before), ANY)

    def quarantine(self) -> pl.DataFrame:
        """Return the rows of bronze.quarantine, of all days."""
        return self.source.read("bronze.quarantine", ALL_DAYS, ANY)

    def _carried_offsets(self, changes: pl.DataFrame, of: Wanted) -> pl.DataFrame:
        """Return offsets from before the lookback, by the checkpoint of the next midnight or an earlier one."""
        start = self.day.since
        midnight = start.date() + ONE_DAY
        kept = self.source.read(CHECKPOINT, Days(last=midnight), ANY, of)
        since = kept["day"].max()
        checkpoint = kept.filter(pl.col("day") == pl.lit(since, pl.Date))
        if since == midnight:
            of_day = self.source.read("silver.offset_change", Days(start.date(), start.date()), ANY, of)
            earlier = offsets_at(checkpoint, of_day, start)
        else:
            later = pl.col("day") >= since if since is not None else pl.lit(True)
            rows = self.source.read("silver.offset_change", ALL_DAYS, later & (pl.col("to_ts") < start), of)
            earlier = pl.concat([each.select(*CHECKPOINT_KEY, *VALUES, "to_ts") for each in (checkpoint, rows)])
        return carried_offsets(earlier, changes, self.around("snapshot", NO_TIME))

    def _put_right(
        self, rows: pl.DataFrame, name: str, of: Wanted, skew: Skew, columns: Sequence[str] | None
    ) -> pl.DataFrame:
        """Return the rows by the recorder's clock: rows of clients with a wrong clock may change to another day."""
        ts = INSTANTS[name]
        theirs = pl.col("client_id").is_in(skew.clients).fill_null(False)
        if "source" in rows.columns and (columns is None or "source" in columns):
            theirs &= ~pl.col("source").is_in(BY_RECORDER).fill_null(False)
        recorded = self.around(name, skew.reach, of, columns).filter(theirs)
        right = by_recorders_clock(recorded, skew.rows, *[t for t in (ts, "response_ts") if t in rows.columns])
        of_day = right.filter((pl.col(ts) >= self.day.since) & (pl.col(ts) < self.day.end))
        return pl.concat([rows.filter(~theirs), of_day])
