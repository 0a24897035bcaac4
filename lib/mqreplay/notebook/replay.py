"""A warehouse in a script or a notebook: findings, tables, explanations, states and suppositions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from mqreplay.answers.changes import changes_between
from mqreplay.answers.compare import Comparison, compare_days
from mqreplay.answers.duckdb_query import duckdb_frame
from mqreplay.answers.explanation import Explanation, explain
from mqreplay.answers.findings import clusters_of, findings, instant, last_recorded
from mqreplay.answers.outcome import last_nights
from mqreplay.answers.ready import Readiness, required_readiness
from mqreplay.answers.state import State, state_at
from mqreplay.lake.local_folder import require_warehouse
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.storage import spark_location, use_settings
from mqreplay.lake.warehouse import Warehouse
from mqreplay.moment.instant import Recorded, recorded, recorded_around
from mqreplay.notebook.shown import Findings, Shown, printed
from mqreplay.settings import load_settings
from mqreplay.suppose.advise import Advised, advise
from mqreplay.suppose.options import supposed
from mqreplay.suppose.what_if import Answer, what_if
from mqreplay.terminal.advice import print_advice
from mqreplay.terminal.explanation import print_explained
from mqreplay.terminal.moment import print_changes, print_comparison, print_readiness, print_state
from mqreplay.terminal.suppositions import print_whatif
from mqreplay.words.errors import InputError, arguments_named
from mqreplay.words.similar import unknown_table

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
        return sorted(clusters_of(self._warehouse))

    @arguments_named()
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
        last = last_recorded(self._warehouse, of_cluster)
        span = instant(since, "since", last), instant(until, "until", last)
        return Findings(findings(self._warehouse.root, names, severity, *span, self._settings))

    def nights(self) -> Shown[list[dict[str, object]]]:
        """Return how the last night of each cluster was: its level, verdict, and what its recording cannot show."""
        nights = last_nights(self._warehouse.root, self.clusters if self.cluster is None else [self.cluster])
        lines = [f"{night['cluster']}: {night['verdict']} {night['limits'] or ''}".rstrip() for night in nights]
        return Shown(nights, "\n".join(lines) or "No night was judged.")

    def table(self, name: str) -> Table:
        """Return a table by its name, such as gold.finding. Raises InputError if there is no such table."""
        return Table(self._warehouse, name, self.cluster)

    def sql(self, query: str) -> pl.DataFrame:
        """Return the rows of a query over all tables, by DuckDB: RocketMQ's decisions are functions in it.

        Raises InputError where the statement has a mistake, or does anything but read.
        """
        return duckdb_frame(self._warehouse.root, query)

    @arguments_named()
    def explain(self, finding_id: str, limit: int = 50) -> Shown[Explanation]:
        """Return rule, evidence, cause and effects of the finding whose id begins so. Raises InputError."""
        # In a notebook, `at` is the next step, not a command of the shell.
        explained = explain(self._warehouse, finding_id, self.cluster, limit, settings=self._settings)
        found = replace(explained, next_command="")
        return Shown(found, printed(lambda: print_explained(found, limit)))

    @arguments_named()
    def at(self, time: str, group: str | None = None, broker: str | None = None) -> Shown[State]:
        """Return the state at an instant, as of `mqreplay at`: 02:51:30 or 2026-11-21T02:51:30. Raises InputError."""
        night, ts = self._recorded_around(time, "time")
        state = state_at(night, ts, group, broker)
        return Shown(state, printed(lambda: print_state(state, group)))

    @arguments_named()
    def changes(self, time: str, to: str, group: str | None = None, broker: str | None = None) -> Shown[pl.DataFrame]:
        """Return what changed between two instants, in order, and why. Raises InputError."""
        night, _ = self._recorded_around(time, "time")
        since, until = night.span(time, to, "time", "to")
        rows = changes_between(night, since, until, group, broker)
        return Shown(rows, printed(lambda: print_changes(night.cluster, since, until, rows)))

    @arguments_named()
    def compare(self, before: str, after: str) -> Shown[Comparison]:
        """Return what changed from one day to another, as of `mqreplay compare`: "2026-11-20". Raises InputError."""
        comparison = compare_days(recorded(self._warehouse, self.cluster), before, after)
        return Shown(comparison, printed(lambda: print_comparison(comparison)))

    @arguments_named()
    def ready(self, broker: str, id: int = 0, at: str | None = None) -> Shown[Readiness]:
        """Return whether a broker may be restarted, by the last recorded minute or at an instant. Raises InputError."""
        night, ts = self._recorded_around(at, "at")
        ready = required_readiness(night, broker, id, ts, self._settings)
        return Shown(ready, printed(lambda: print_readiness(ready)))

    @arguments_named()
    def advise(self, group: str, day: str | None = None) -> Shown[Advised]:
        """Return the settings that would have removed findings of a group, as of `mqreplay advise`.

        Raises InputError.
        """
        advised = advise(self._warehouse.root, self._settings, group, day, self.cluster)
        return Shown(advised, printed(lambda: print_advice(advised, "")))

    @arguments_named()
    def whatif(
        self,
        *,
        set: Names = None,
        broker: str | None = None,
        group: str | None = None,
        consumers: int | str | None = None,
        queues: int | None = None,
        topic: str | None = None,
        lose_master: str | None = None,
        reset_to: str | None = None,
        drain: bool = False,
        at: str | None = None,
        day: str | None = None,
    ) -> Shown[Answer]:
        """Return what would have been. The arguments are the options of `mqreplay whatif`.

        ``set``: "ratio=60", "slaveReadEnable=false" or "strategy=AVG"; ``consumers``: how many more, or fewer, as 2,
        -1 or "+1". Raises InputError.
        """
        named = {"broker": broker, "group": group, "topic": topic, "lose_master": lose_master, "cluster": self.cluster}
        numbers = {"consumers": consumers, "queues": queues, "drain": drain}
        asked = supposed(set=_listed(set), **numbers, **named, reset_to=reset_to, at=at, day=day)
        answer = what_if(self._warehouse.root, self._settings, asked)
        return Shown(answer, printed(lambda: print_whatif(answer, as_json=False)))

    def _recorded_around(self, text: str | None, name: str) -> tuple[Recorded, dt.datetime]:
        return recorded_around(self._warehouse, self.cluster, text, name)

    def __repr__(self) -> str:
        """Return where it is, and the clusters."""
        return f"mqreplay.open({self._warehouse.root!r}): {', '.join(self.clusters) or 'empty'}"


def _listed(names: Names) -> list[str]:
    return [] if names is None else [names] if isinstance(names, str) else list(names)
