"""The order of a night: ingest, replay, validate, report. The one place where both wings meet."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from mqreplay.bind.register import register
from mqreplay.decisions import Replay
from mqreplay.errors import InputError
from mqreplay.ingest.digests import Digested, KnownDigests
from mqreplay.ingest.recording import RECORD_TABLES, find_recordings
from mqreplay.ingest.records import time_column
from mqreplay.ingest.run import Ingested, ingest, known_files
from mqreplay.lake.lock import warehouse_lock
from mqreplay.lake.remembered import Question, Remembered, write_kept
from mqreplay.lake.session import build_session, fit_to
from mqreplay.lake.unfinished import Unfinished
from mqreplay.lake.warehouse import Warehouse
from mqreplay.outcome import Outcome, kept_outcome, outcome_of
from mqreplay.report.build import build_report
from mqreplay.report.collect import collect
from mqreplay.settings import Settings
from mqreplay.standing import Standing
from mqreplay.steps import Span, Steps, digests, spans, steps
from mqreplay.story import Story, tell
from mqreplay.validation import Validation

Progress = Callable[[str], None]
STEPS = ("ingest", "replay", "validate", "report")
# Bytes recorded for each that silver takes: 5.9 of 3.1 GB, 6.0 of 310 MB; of 6 MB 1.6, which is small anyway.
SILVER_KEEPS = 6
READS = ("select", "with", "from", "values", "show", "describe", "desc", "explain")


class Night:
    """One run on one warehouse: the steps, each of which may also be run alone. Hold the lock around all of them."""

    def __init__(self, spark: SparkSession, root: str, settings: Settings, progress: Progress) -> None:
        """``root`` is the warehouse's folder; ``progress`` is told what goes on."""
        self.warehouse = Warehouse(spark, root)
        self.settings, self.progress = settings, progress

    def ingest(self, recordings: Mapping[str, list[Digested]], cluster: str | None) -> list[Ingested]:
        """Recordings into silver."""
        return ingest(self.warehouse, recordings, cluster, self.progress)

    def clusters(self, cluster: str | None) -> list[str]:
        """The one asked for, or all that the warehouse holds. Raises InputError where there is none."""
        files = self.warehouse.read("bronze.source_file").select("cluster").distinct()
        known = sorted(row.cluster for row in files.collect())
        if cluster is not None and cluster not in known:
            has = f"it holds {', '.join(known)}" if known else "it is empty"
            raise InputError(f"warehouse {self.warehouse.root} holds no cluster {cluster}; {has}")
        if not known:
            raise InputError(f"warehouse {self.warehouse.root} is empty; run ingest or nightly with a recording first")
        return [cluster] if cluster is not None else known

    def replay(self, cluster: str) -> bool:
        """Silver into gold, for the days that changed. True if there were any."""
        found = self._spans(cluster)
        by_day = digests(found, self.settings.digest(), self.settings.replay.lookback_minutes)
        wanted = {str(day): digest for day, digest in by_day.items()}
        noted = Steps(self.warehouse, cluster)
        todo = noted.todo("replay", wanted)
        if not todo:
            self.progress(f"{cluster}: every day replayed before")
            return False
        unfinished, standing = Unfinished(self.warehouse.root), Standing(self.warehouse, cluster)
        for day in todo:
            # Each by itself: what is told of a day must not hang on which others are replayed with it.
            self.progress(f"{cluster}: replaying {day}")
            scope = f"replay {cluster} {day}"
            afresh = not unfinished.begin([scope]) and not noted.any_done("replay", [day])
            date = dt.date.fromisoformat(day)
            stood = standing if date > min(by_day) else None
            if stood is not None:
                stood.keep(date)
            Replay(self.warehouse, cluster, date, found, self.settings, stood, afresh=afresh).run(self.progress)
            noted.done("replay", {day: wanted[day]})
            unfinished.end([scope])
        return True

    def validate(self, cluster: str) -> bool:
        """Expectations on the days that changed, into gold.validation_result and Data Docs. True if they were run."""
        found = self._spans(cluster)
        noted = Steps(self.warehouse, cluster)
        judging = Validation(self.warehouse, cluster, found, self.settings)
        todo = noted.todo("validate", judging.wanted)
        if not todo:
            self.progress(f"{cluster}: every expectation run before")
            return False
        docs = str(Path(self.warehouse.root, "data_docs", _file_name(cluster)))
        rows = judging.run(todo, docs, self.progress)
        noted.done("validate", {scope: judging.wanted[scope] for scope in todo})
        self.progress(f"{cluster}: {rows} expectations run")
        return True

    def report(self, cluster: str) -> Outcome:
        """Gold into one HTML page, and into what the terminal shows; as it was where no table changed since."""
        page = Path(self.warehouse.root, "report", f"{_file_name(cluster)}.html")
        kept = page.with_suffix(".json")
        state = self.warehouse.state()
        if page.exists() and (known := kept_outcome(kept, state)) is not None:
            known.report = str(page)  # the warehouse may have been moved
            return known
        page.parent.mkdir(parents=True, exist_ok=True)
        html = build_report(collect(self.warehouse, cluster))
        if not page.exists() or page.read_text(encoding="utf-8") != html:
            page.write_text(html, encoding="utf-8")
        outcome = outcome_of(self.warehouse, cluster)
        outcome.report = str(page)
        write_kept(kept, state, outcome.as_dict())
        return outcome

    def remember(self, ingested: list[Ingested]) -> None:
        """Keeps beside the warehouse what the next run asks first."""
        asked = [
            (known_files(done.cluster, done.recordings), self._asked(done.cluster), steps(done.cluster))
            for done in ingested
        ]
        Remembered(self.warehouse).keep(chain.from_iterable(asked))

    def _spans(self, cluster: str) -> list[Span]:
        return [Span(*row) for row in Remembered(self.warehouse).rows(self._asked(cluster))]

    def _asked(self, cluster: str) -> Question:
        contracts = self.warehouse.contracts
        tables = {kind: (name, time_column(contracts[name])) for kind, name in RECORD_TABLES.items()}
        return spans(cluster, self.settings.replay.lookback_minutes, tables)


def run(
    step: str,
    root: str,
    settings: Settings,
    progress: Progress,
    *,
    recordings: list[str] | None = None,
    cluster: str | None = None,
) -> list[Outcome]:
    """Runs ``step`` (one of STEPS, nightly for all, or maintain) under the warehouse's lock.

    Gives an outcome for each cluster it was about. Raises InputError, WarehouseLocked and the other MqreplayErrors.
    """
    # What cannot be read is told before there is a warehouse.
    found = find_recordings(recordings or [])
    with warehouse_lock(root):
        size = sum(file.bytes for files in found.values() for file in files) if found else recorded_bytes(root)
        # Files are read for their digests while Java starts, which leaves a core and the disk free.
        beside = ThreadPoolExecutor(1)
        digested = beside.submit(KnownDigests(root).of_recordings, found)
        beside.shutdown(wait=False)
        # What an ingest decodes, it decodes in Python: Java has little to do, however large the night.
        spark = build_session(f"mqreplay {step}", settings.spark, 0 if step == "ingest" else size)
        fit_to(spark, size, settings.spark.shuffle_partitions)
        progress(f"Spark {spark.version} runs on {spark.sparkContext.master}")
        night = Night(spark, root, settings, progress)
        if step in ("nightly", "ingest"):
            ingested = night.ingest(digested.result(), cluster)
            clusters = [done.cluster for done in ingested]
        else:
            clusters = night.clusters(cluster)
        for name in clusters:
            for one in STEPS[1:] if step == "nightly" else [step]:
                if one in ("replay", "validate"):
                    getattr(night, one)(name)
        if step == "maintain":
            night.warehouse.maintain()
        if step == "nightly":
            night.remember(ingested)
        return [
            night.report(name) if step in ("nightly", "report") else outcome_of(night.warehouse, name)
            for name in clusters
        ]


def explain(root: str, finding_id: str, cluster: str | None, settings: Settings) -> Story:
    """The story of a finding: its rule, its evidence in time order, its cause and what follows from it."""
    if not Path(root).is_dir():
        raise InputError(f"warehouse {root} does not exist; run nightly with a recording first")
    return tell(Warehouse(_reader("mqreplay explain", root, settings), root), finding_id, cluster)


def query(root: str, text: str, settings: Settings) -> DataFrame:
    """The rows of a SELECT over the warehouse's tables, with RocketMQ's decisions as functions."""
    if not Path(root).is_dir():
        raise InputError(f"warehouse {root} does not exist; run nightly with a recording first")
    first = re.match(r"[\s(]*(\w+)", text)
    if first is None or first[1].lower() not in READS:
        raise InputError(f"a query begins with one of {', '.join(READS)}: the tables are not for changing by hand")
    spark = _reader("mqreplay sql", root, settings)
    register(spark)
    try:
        Warehouse(spark, root).register_for(text)
        return spark.sql(text)
    except PySparkException as error:
        raise InputError(f"query: {str(error).splitlines()[0]}") from None


def _reader(name: str, root: str, settings: Settings) -> SparkSession:
    """A session for one look at a warehouse: of a small one, starting and planning is all that takes time."""
    size = recorded_bytes(root)
    spark = build_session(name, settings.spark, size)
    fit_to(spark, size, settings.spark.shuffle_partitions)
    return spark


def recorded_bytes(root: str) -> int:
    """About how many bytes were recorded of what a warehouse holds, by its silver tables. No table is read."""
    return SILVER_KEEPS * sum(map(_size, Path(root, "silver").rglob("*.parquet")))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # a night that goes on beside may replace it
        return 0


def _file_name(cluster: str) -> str:
    """A cluster's name as a file name: what could lead elsewhere is written as its code."""
    return "".join(c if c.isalnum() or c in "-_." else f"%{ord(c):02x}" for c in cluster).lstrip(".") or "cluster"
