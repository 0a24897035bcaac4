"""The night in DuckDB's SQL. It writes Parquet itself; delta-rs commits the files.

Snapshots come in three ways: `lines` compares the lines of a key from snapshot to snapshot and takes apart only those
that changed; `brute` takes all apart and compares entries; `carry` is numpy's, as in the other peer. What is small, or
no work for SQL (an allocation strategy, RocketMQ's rule for a distinct case), is the same Python as there.
"""

from __future__ import annotations

import multiprocessing
import uuid
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from . import duckdb_sql as sql
from .delta import Written, commit, write_file
from .flat_lines import FLAT
from .recording import Source, cluster_of, lines_of, sources
from .records import TABLES, read_kind
from .routes import judge
from .snapshots import read_changes, snapshot_rows
from .stages import Stages

MEMORY = "5GB"


class Night:
    """One run; ``out`` gets silver/ and gold/ as mqreplay lays them."""

    def __init__(self, recording: Path, out: Path, workers: int, stages: Stages, snapshots: str) -> None:
        self.recording, self.out, self.stages, self.workers = recording, out, stages, workers
        self.cluster, self.snapshots = cluster_of(recording), snapshots
        settings = {"threads": workers, "memory_limit": MEMORY, "temp_directory": str(out / "spill")}
        self.db = duckdb.connect(str(out / "night.duckdb"), config=settings)
        self.db.execute("SET TimeZone = 'UTC'; SET preserve_insertion_order = false")

    def table(self, name: str) -> Path:
        """The folder of a table."""
        return self.out / name.replace(".", "/")

    def run(self) -> None:
        """All stages."""
        with self.stages("silver.offset_change"):
            self.offset_changes()
        with self.stages("silver.pull"):
            self.pulls()
        with self.stages("silver, the rest"):
            self.the_rest()
        with self.stages("gold.pull_route"):
            self.pull_routes()
        with self.stages("gold.offset_continuity"):
            self.continuity()
        self.db.close()
        for path in self.out.glob("night.duckdb*"):
            path.unlink()

    def offset_changes(self) -> None:
        """silver.offset_change and silver.snapshot, a source at a time."""
        listed = sources(self.recording)
        if self.snapshots == "carry":
            context = multiprocessing.get_context("spawn")
            table = str(self.table("silver.offset_change"))
            work = partial(read_changes, cluster=self.cluster, table=table, scratch=str(self.out))
            with ProcessPoolExecutor(self.workers, mp_context=context) as pool:
                reads = list(pool.map(work, listed))
            files = [read.written for read in reads]
            small = snapshot_rows(reads, self.cluster)
            self._commit("silver.snapshot", [write_file(self.table("silver.snapshot"), small)])
            for path in self.out.glob("*.npy"):
                path.unlink()
        else:
            files = [self._source(source) for source in listed]
        self._commit("silver.offset_change", files)
        self.db.execute(f"CREATE VIEW offset_change AS SELECT * FROM '{self.table('silver.offset_change')}/*.parquet'")

    def _source(self, source: Source) -> Written:
        files = pa.table({"path": source.paths, "ts_ms": source.moments, "snap": range(len(source.paths))})
        self.db.register("files", files)
        self.db.execute(sql.READ.replace("FOLDER", f"{self.recording}/snapshots/{source.source_name}"))
        broken = self.db.execute(sql.BROKEN).fetchall()
        if broken:
            raise ValueError(f"{broken[0][0]} is not as fastjson lays it out: this peer is not written for that")
        changes = sql.CHANGED_LINES if self.snapshots == "lines" else sql.CHANGED_ENTRIES
        values = {"cluster": self.cluster, "source": source.source_name, "name": source.broker_name}
        query = sql.OFFSET_CHANGE.format(changes=changes)
        return self._copy("silver.offset_change", query, values | {"broker_id": source.broker_id})

    def pulls(self) -> None:
        """silver.pull; what the decisions look at stays in the database."""
        digests = pa.table(sql.digests(lines_of(self.recording, "pull_log")))
        self.db.register("digests", digests)
        self.db.execute(f"CREATE TABLE pull AS {sql.pulls(str(self.recording))}", {"cluster": self.cluster})
        self._commit("silver.pull", [self._copy("silver.pull", "SELECT * FROM pull")])

    def the_rest(self) -> None:
        """The smaller tables, gold.allocation among them; and the routes."""
        first = [self.db.execute("SELECT epoch_ms(min(request_ts)) FROM pull").fetchall()[0][0]]
        first.append(min(source.moments[0] for source in sources(self.recording)))
        for stem in TABLES:
            kind = read_kind(stem, lines_of(self.recording, stem), self.cluster, self.out)
            if kind is None:
                continue
            for name, written in kind.written.items():
                commit(self.table(name), kind.schemas[name], [written])
            first.append(kind.first_ts)
            self.routes = kind.routes or getattr(self, "routes", None)
        first += [self._flat(stem) for stem in FLAT if lines_of(self.recording, stem)]
        self.first_ts = min(first)

    def _flat(self, stem: str) -> int:
        """A large kind of flat lines; the first instant of it (epoch ms)."""
        kind = FLAT[stem]
        self.db.register("digests", pa.table(sql.digests(lines_of(self.recording, stem))))
        query = sql.lines(str(self.recording), stem, kind.fields, kind.instants)
        written = self._copy(kind.table, query, {"cluster": self.cluster})
        self._commit(kind.table, [written])
        path = self.table(kind.table) / written.name
        return int(self.db.execute(f"SELECT epoch_ms(min(ts)) FROM '{path}'").fetchall()[0][0])

    def pull_routes(self) -> None:
        """gold.pull_route."""
        routes = self.routes
        names = {pair: names for names, pair in routes.pairs.items()}
        mask = (1 << 43) - 1
        told = [(*names[key >> 43], key & mask) for key in routes.keys.tolist()]
        clients, brokers, since = zip(*told, strict=True)
        columns = {"client_id": clients, "broker_name": brokers, "since": since}
        self.db.register("route", pa.table(columns | {"now": routes.now, "before": routes.before}))
        if self.db.execute(sql.OVERLAPS).fetchall()[0][0]:
            raise ValueError("a queue was pulled before its last answer: the peers are not written for that")
        self.db.execute(sql.ASKED, {"first": self.first_ts})
        cases = self.db.execute(sql.CASES).fetchall()
        self.db.register("judged", pa.table(self._judged(cases)))
        self._commit("gold.pull_route", [self._copy("gold.pull_route", sql.PULL_ROUTE)])

    def _judged(self, cases: list[tuple]) -> dict[str, pa.Array]:
        states = self.routes.states
        found = [
            judge(*[None if s is None or s < 0 else states[s] for s in (now, before)], fresh, node, actual)
            for now, before, fresh, node, actual in cases
        ]
        ids = [None if case[0] is None else sorted(dict(states[case[0]])) for case in cases]
        made = {name: pa.array(column) for name, column in zip(sql.CASE, zip(*cases, strict=True), strict=True)}
        kinds = (pa.int64(), pa.string(), pa.string(), pa.string())
        told = zip(sql.JUDGED, zip(*found, strict=True), kinds, strict=True)
        made |= {name: pa.array(column, kind) for name, column, kind in told}
        return made | {"route_broker_ids": pa.array(ids, pa.list_(pa.int64()))}

    def continuity(self) -> None:
        """gold.offset_continuity, a broker name at a time."""
        names = sorted({source.broker_name for source in sources(self.recording)})
        told = [self.db.sql(sql.CONTINUITY, params={"name": name}).to_arrow_table() for name in names]
        rows = pa.concat_tables(told)
        written = write_file(self.table("gold.offset_continuity"), rows)
        commit(self.table("gold.offset_continuity"), rows.schema, [written])

    def _copy(self, name: str, query: str, values: dict[str, object] | None = None) -> Written:
        folder = self.table(name)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"part-{uuid.uuid4()}.snappy.parquet"
        options = "FORMAT parquet, COMPRESSION snappy"
        (rows,) = self.db.execute(f"COPY ({query}) TO '{path}' ({options})", values).fetchall()[0]
        return Written(path.name, path.stat().st_size, rows)

    def _commit(self, name: str, files: list[Written]) -> None:
        commit(self.table(name), pq.read_schema(self.table(name) / files[0].name), files)


def run(recording: Path, out: Path, workers: int, stages: Stages, snapshots: str) -> None:
    """The peer's whole night."""
    Night(recording, out, workers, stages, snapshots).run()
