"""The rows that the replay of one day rests on: its own, those of the lookback before it, and what stood before those.

None of a later day, and none that hangs on which other days are replayed: a day's answer is the same whenever it is
asked for.
"""

from __future__ import annotations

import datetime as dt

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqreplay.lake.warehouse import Warehouse
from mqreplay.replay.carried import carried_configs, carried_offsets
from mqreplay.standing import Standing
from mqreplay.steps import DAY

NO_TIME = dt.timedelta()
# The silver tables of a night and their instant. Many plans read them, so they are kept; LARGE ones of a large night
# would not fit into memory, and each plan reads a few of their columns only.
LARGE = ("pull", "offset_commit", "offset_change", "consume", "produce", "gold.pull_route")
INSTANTS = {
    "pull": "request_ts",
    "offset_commit": "ts",
    "offset_change": "to_ts",
    "heartbeat": "ts",
    "rebalance": "ts",
    "assignment": "ts",
    "lock": "ts",
    "route": "ts",
    "server_request": "ts",
    "broker_runtime": "ts",
    "topic_stats": "ts",
    "topic_config": "ts",
    "consume": "ts",
    "produce": "ts",
    "snapshot": "ts",
}
JUDGED = {"gold.allocation": "rebalance_ts", "gold.pull_route": "request_ts", "gold.slave_suggestion": "request_ts"}
# What findings read again, with the lookback's: what began before midnight goes on.
READ_AGAIN = {"gold.offset_continuity": "to_ts", "gold.pull_route": "request_ts", "gold.allocation": "rebalance_ts"}


class DayRows:
    """Rows of one cluster's tables for the replay of ``day``. Instants are UTC."""

    def __init__(
        self, warehouse: Warehouse, cluster: str, day: dt.date, lookback_minutes: int, standing: Standing | None
    ) -> None:
        """``standing`` is None where the cluster was not recorded before this day: then nothing stood."""
        self.warehouse, self.cluster, self.day, self.standing = warehouse, cluster, day, standing
        self.begin = dt.datetime.combine(day, dt.time(), dt.UTC)
        self.end = self.begin + DAY
        self.since = self.begin - dt.timedelta(minutes=lookback_minutes)

    def silver(self, name: str, ts: str) -> DataFrame:
        """Rows of a silver table by their instant ``ts``: of the day and of the lookback."""
        rows = self._near(f"silver.{name}", ts)
        if self.standing is None or not self.warehouse.exists(f"silver.{name}"):
            return rows
        if name == "offset_change":
            # Found once: several plans read it.
            stood = carried_offsets(self.standing.at(self.since), rows, self.silver("snapshot", "ts"))
            return rows.unionByName(stood.localCheckpoint())
        if name == "topic_config":
            return rows.unionByName(carried_configs(self._earlier(name, ts), "topic"))
        return rows

    def silver_around(self, name: str, ts: str, reach: dt.timedelta) -> DataFrame:
        """The rows, and so much sooner and later, for clients whose clock is off; not what stood before."""
        return self._near(f"silver.{name}", ts, reach)

    def within(self, rows: DataFrame, ts: str, reach: dt.timedelta = NO_TIME) -> DataFrame:
        """Of ``rows`` those whose instant is of the day or of the lookback, or so near to them."""
        return rows.where((F.col(ts) >= F.lit(self.since - reach)) & (F.col(ts) < F.lit(self.end + reach)))

    def described(self, name: str) -> DataFrame:
        """Rows of a silver table of descriptions that hold until the next: all until the day's end."""
        return self._mine(f"silver.{name}").where(F.col("ts") < F.lit(self.end))

    def gold(self, name: str, ts: str | None = None) -> DataFrame:
        """Rows of a gold table: of the day, and where ``ts`` names their instant, of the lookback."""
        return self._near(name, ts) if ts else self._mine(name).where(F.col("day") == F.lit(self.day))

    def day_before(self, name: str) -> DataFrame:
        """Rows of a gold table of the day before."""
        return self._mine(name).where(F.col("day") == F.lit(self.day - DAY))

    def _near(self, name: str, ts: str, reach: dt.timedelta = NO_TIME) -> DataFrame:
        first, last = (self.since - reach).date(), (self.end + reach).date()
        days = F.col("day").between(F.lit(first), F.lit(last))  # by which files are passed over
        return self.within(self._mine(name).where(days), ts, reach)

    def _earlier(self, name: str, ts: str) -> DataFrame:
        days = F.col("day") <= F.lit(self.since.date())
        return self._mine(f"silver.{name}").where(days & (F.col(ts) < F.lit(self.since)))

    def _mine(self, name: str) -> DataFrame:
        return self.warehouse.read(name).where(F.col("cluster") == self.cluster)
