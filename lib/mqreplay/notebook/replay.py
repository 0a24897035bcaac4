"""A warehouse in a script or a notebook: findings, tables, explanations, states and suppositions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from mqreplay.cli.duckdb_query import duckdb_rows
from mqreplay.cli.explain import print_explained
from mqreplay.cli.explanation import Explanation, explain
from mqreplay.cli.findings_command import findings, instant
from mqreplay.cli.moment_text import print_changes, print_state
from mqreplay.cli.whatif_command import asked_by
from mqreplay.cli.whatif_text import print_whatif
from mqreplay.errors import InputError
from mqreplay.lake.existing import require_warehouse
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.similar import unknown_table
from mqreplay.lake.storage import spark_location, use_settings
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.changes import changes_between
from mqreplay.moment.instant import Recorded, recorded
from mqreplay.moment.state import State, state_at
from mqreplay.night.what_if import Answer, what_if
from mqreplay.notebook.shown import Findings, Shown, printed
from mqreplay.settings import load_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Names = str | Sequence[str] | None


class Table:
    """A table of the warehouse, of the cluster if one was chosen, for polars, Arrow and Spark."""

    def __init__(self, warehouse: Warehouse, name: str, cluster: str | None) -> None:
        """Take a table by its name, such as gold.finding. Raises InputError if there is no such table."""
        if name not in warehouse.contracts:
            raise InputError(unknown_table(name, warehouse.contracts))
        self.name = name
        self._warehouse, self._cluster = warehouse, cluster

    @property
    def columns(self) -> Mapping[str, str]:
        """Return what each column means, by its name."""
        return {column.name: column.comment for column in self._warehouse.contracts[self.name].columns}

    def lazy(self) -> pl.LazyFrame:
        """Return the rows as a LazyFrame of polars: filters and columns are pushed down to the files."""
        return self._warehouse.read(self.name, None if self._cluster is None else RowFilter(self._cluster))

    def polars(self) -> pl.DataFrame:
        """Return the rows as a DataFrame of polars."""
        return self.lazy().collect()

    def arrow(self) -> pa.Table:
        """Return the rows as a table of Arrow."""
        return self.polars().to_arrow()

    def spark(self, session: SparkSession) -> DataFrame:
        """Return the rows as a DataFrame of a Spark session that has Delta's extensions."""
        from pyspark.sql import functions as F

        rows = session.read.format("delta").load(spark_location(self._warehouse.location(self.name)))
        return rows if self._cluster is None else rows.where(F.col("cluster") == self._cluster)

    def __repr__(self) -> str:
        """Return its name and columns."""
        return f"{self.name}: {', '.join(self.columns)}"

    def _repr_html_(self) -> str:
        return str(self.lazy().head(10).collect()._repr_html_())


class Replay:
    """An opened warehouse. Instants are in UTC; texts of instants are those of the commands."""

    def __init__(self, warehouse: str, cluster: str | None = None, conf: str | None = None) -> None:
        """Open a warehouse. Raises InputError if there is none, or it lacks the cluster."""
        self._settings = load_settings(conf)
        use_settings(self._settings)
        require_warehouse(warehouse)
        self._warehouse = Warehouse(warehouse)
        if cluster is not None and cluster not in self.clusters:
            raise InputError(f"the warehouse has no cluster {cluster}; it has {', '.join(self.clusters)}")
        self.cluster = cluster

    @property
    def clusters(self) -> list[str]:
        """Return the names of the recorded clusters."""
        names = self._warehouse.read("bronze.source_file").select("cluster").unique().collect()
        return sorted(names["cluster"])

    def findings(
        self,
        kind: Names = None,
        severity: str | None = None,
        group: Names = None,
        topic: Names = None,
        broker: Names = None,
        since: str | None = None,
        until: str | None = None,
    ) -> Findings:
        """Return the findings, the most severe first. The arguments are the options of `mqreplay findings`.

        ``severity`` is the lowest that is returned. Raises InputError.
        """
        of_cluster = [] if self.cluster is None else [self.cluster]
        names = {"kind": _listed(kind), "consumer_group": _listed(group), "topic": _listed(topic)}
        names |= {"broker_name": _listed(broker), "cluster": of_cluster}
        span = instant(since, "since"), instant(until, "until")
        return Findings(findings(self._warehouse.root, names, severity, *span, self._settings))

    def table(self, name: str) -> Table:
        """Return a table by its name, such as gold.finding. Raises InputError if there is no such table."""
        return Table(self._warehouse, name, self.cluster)

    def sql(self, query: str) -> pl.DataFrame:
        """Return the rows of a query over all tables, by DuckDB: RocketMQ's decisions are functions in it.

        Raises InputError where the statement has a mistake, or does anything but read.
        """
        names, rows = duckdb_rows(self._warehouse.root, query)
        return pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None, strict=False)

    def explain(self, finding_id: str, limit: int = 50) -> Shown[Explanation]:
        """Return rule, evidence, cause and effects of the finding whose id begins so. Raises InputError."""
        found = explain(self._warehouse.root, finding_id, self.cluster, limit)
        return Shown(found, printed(lambda: print_explained(found, limit)))

    def at(self, time: str, group: str | None = None, broker: str | None = None) -> Shown[State]:
        """Return the state at an instant, as of `mqreplay at`: 02:51:30 or 2026-11-21T02:51:30. Raises InputError."""
        night = self._recorded()
        state = state_at(night, night.instant(time, "time"), group, broker)
        return Shown(state, printed(lambda: print_state(state, group)))

    def changes(self, time: str, to: str, group: str | None = None, broker: str | None = None) -> Shown[pl.DataFrame]:
        """Return what changed between two instants, in order, and why. Raises InputError."""
        night = self._recorded()
        since, until = night.instant(time, "time"), night.instant(to, "to")
        if until < since:
            raise InputError(f"to {to!r} is before {time!r}; give the earlier instant first")
        rows = changes_between(night, since, until, group, broker)
        return Shown(rows, printed(lambda: print_changes(night.cluster, since, until, rows)))

    def whatif(
        self,
        *,
        set: Names = None,
        broker: str | None = None,
        group: str | None = None,
        consumers: int | None = None,
        queues: int | None = None,
        topic: str | None = None,
        lose_master: str | None = None,
        reset_to: str | None = None,
        drain: bool = False,
        at: str | None = None,
        day: str | None = None,
    ) -> Shown[Answer]:
        """Return what would have been. The arguments are the options of `mqreplay whatif`.

        ``set``: "ratio=60", "slaveReadEnable=false" or "strategy=AVG"; ``consumers``: how many more, or fewer.
        Raises InputError.
        """
        named = {"broker": broker, "group": group, "topic": topic, "lose_master": lose_master, "cluster": self.cluster}
        times = {"reset_to": reset_to, "at": at, "day": day}
        asked = asked_by(_listed(set), consumers, queues=queues, drain=drain, **named, **times)
        answer = what_if(self._warehouse.root, self._settings, asked)
        return Shown(answer, printed(lambda: print_whatif(answer, as_json=False)))

    def _recorded(self) -> Recorded:
        return recorded(self._warehouse, self.cluster)

    def __repr__(self) -> str:
        """Return where it is, and the clusters."""
        return f"mqreplay.open({self._warehouse.root!r}): {', '.join(self.clusters) or 'empty'}"


def _listed(names: Names) -> list[str]:
    return [] if names is None else [names] if isinstance(names, str) else list(names)
