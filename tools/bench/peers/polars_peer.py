"""The night in polars, numpy and delta-rs: files in parallel, each read once, one commit a table."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import polars as pl
import pyarrow as pa

from .brute import read_all_entries
from .continuity import Break, breaks_of
from .delta import UTC, Written, commit, write_file
from .flat_lines import FLAT, read_flat
from .pull_lines import PullFile, read_pulls
from .pull_route import judge_file, openings
from .recording import cluster_of, lines_of, sources
from .records import TABLES, read_kind
from .routes import Routes
from .snapshots import SourceRead, read_changes, snapshot_rows
from .stages import Stages

SNAPSHOTS: dict[str, Callable[..., SourceRead]] = {"carry": read_changes, "brute": read_all_entries}


class Night:
    """One run; ``out`` gets silver/ and gold/ as mqreplay lays them."""

    def __init__(self, recording: Path, out: Path, workers: int, stages: Stages, snapshots: str = "carry") -> None:
        self.recording, self.out, self.stages, self.workers = recording, out, stages, workers
        self.cluster, self.snapshots = cluster_of(recording), snapshots
        self.scratch = tempfile.TemporaryDirectory(prefix="peer-", dir=out)

    def table(self, name: str) -> Path:
        """The folder of a table."""
        return self.out / name.replace(".", "/")

    def run(self) -> None:
        """All stages."""
        with self.stages("start"):
            context = multiprocessing.get_context("spawn")
            pool = ProcessPoolExecutor(self.workers, mp_context=context)
            list(pool.map(_nothing, range(self.workers)))
        with self.scratch, pool:
            with self.stages("silver.offset_change"):
                reads = self.offset_changes(pool)
            with self.stages("silver.pull"):
                files = self.pulls(pool)
            with self.stages("silver, the rest"):
                routes, first_ts = self.the_rest(pool, reads, files)
            with self.stages("gold.pull_route"):
                skipped = self.pull_routes(pool, files, routes, first_ts)
            with self.stages("gold.offset_continuity"):
                self.continuity(pool, reads, files, skipped)

    def offset_changes(self, pool: ProcessPoolExecutor) -> list[SourceRead]:
        """silver.offset_change, a source at a time."""
        table = self.table("silver.offset_change")
        work = partial(SNAPSHOTS[self.snapshots], cluster=self.cluster, table=str(table), scratch=self.scratch.name)
        reads = list(pool.map(work, sources(self.recording)))
        self._commit("silver.offset_change", [read.written for read in reads])
        return reads

    def pulls(self, pool: ProcessPoolExecutor) -> list[PullFile]:
        """silver.pull, a file at a time."""
        table = self.table("silver.pull")
        work = partial(read_pulls, cluster=self.cluster, table=str(table), scratch=self.scratch.name)
        files = list(pool.map(work, map(str, lines_of(self.recording, "pull_log"))))
        self._commit("silver.pull", [file.written for file in files])
        return files

    def the_rest(self, pool: ProcessPoolExecutor, reads: list[SourceRead], files: list[PullFile]) -> tuple[Routes, int]:
        """The smaller tables, gold.allocation among them; and the routes, and the first instant of all."""
        tasks = [
            pool.submit(read_kind, stem, lines_of(self.recording, stem), self.cluster, self.out) for stem in TABLES
        ]
        flat = {
            stem: [pool.submit(read_flat, stem, path, self.cluster, self.out) for path in paths]
            for stem in FLAT
            if (paths := lines_of(self.recording, stem))
        }
        self._write("silver.snapshot", snapshot_rows(reads, self.cluster))
        done = [kind for task in tasks if (kind := task.result()) is not None]
        starts = []
        for stem, files_of_kind in flat.items():
            written, since = zip(*[task.result() for task in files_of_kind], strict=True)
            self._commit(FLAT[stem].table, list(written))
            starts += since
        for kind in done:
            for name, written in kind.written.items():
                commit(self.table(name), kind.schemas[name], [written])
        first = [file.first_ts for file in files] + [read.moments[0] for read in reads]
        (routes,) = [kind.routes for kind in done if kind.routes is not None]
        return routes, min([*first, *starts, *[kind.first_ts for kind in done]])

    def pull_routes(self, pool: ProcessPoolExecutor, files: list[PullFile], routes: Routes, first_ts: int) -> list:
        """gold.pull_route; gives the pulls that skip messages."""
        since: dict[str, int] = {}
        for file in files:
            for client, at in file.subscribed.items():
                since[client] = min(at, since.get(client, at))
        born = {client for client, at in since.items() if at >= first_ts}
        table = str(self.table("gold.pull_route"))
        work = partial(judge_file, routes=routes, born=born, cluster=self.cluster, table=table)
        done = list(pool.map(work, files, openings(files)))
        self._commit("gold.pull_route", [written for written, _ in done])
        return [skip for _, found in done for skip in found]

    def continuity(
        self, pool: ProcessPoolExecutor, reads: list[SourceRead], files: list[PullFile], skipped: list
    ) -> None:
        """gold.offset_continuity, a broker name at a time."""
        by_name: dict[str, list[SourceRead]] = {}
        for read in reads:
            by_name.setdefault(read.broker_name, []).append(read)
        found = pool.map(partial(breaks_of, files=files, skipped=skipped), by_name.values())
        self._write("gold.offset_continuity", continuity_rows([b for some in found for b in some], self.cluster))

    def _write(self, name: str, rows: pa.Table) -> None:
        commit(self.table(name), rows.schema, [write_file(self.table(name), rows)])

    def _commit(self, name: str, files: list[Written]) -> None:
        schema = pl.read_parquet_schema(self.table(name) / files[0].name)
        commit(self.table(name), pl.DataFrame(schema=schema).to_arrow().schema, files)


def continuity_rows(breaks: list[Break], cluster: str) -> pa.Table:
    """gold.offset_continuity, as far as snapshots and pulls tell it."""
    texts, numbers = pa.string(), pa.int64()
    kinds = (texts, numbers, texts, texts, pa.int32(), texts, numbers, numbers)
    names = ("broker_name", "broker_id", "topic", "consumer_group", "queue_id", "kind", "previous_offset", "new_offset")
    columns = list(zip(*breaks, strict=True)) or [()] * 10
    made = {name: pa.array(column, kind) for name, column, kind in zip(names, columns, kinds, strict=False)}
    olds, news = columns[6:8]
    sizes = [
        None if new is None else abs(new - (new if old is None else old)) for old, new in zip(olds, news, strict=True)
    ]
    spans = [pa.array([ms * 1000 for ms in column], UTC) for column in columns[8:]]
    day = pa.array([ms // 86_400_000 for ms in columns[9]], pa.int32()).cast(pa.date32())
    common = {"cluster": pa.array([cluster] * len(day), texts), "day": day}
    return pa.table({**common, **made, "size": pa.array(sizes, numbers), "from_ts": spans[0], "to_ts": spans[1]})


def _nothing(_: int) -> None:
    """A worker's first task: it has imported all by then."""


def run(recording: Path, out: Path, workers: int, stages: Stages, snapshots: str) -> None:
    """The peer's whole night."""
    Night(recording, out, workers, stages, snapshots).run()
