"""What several tests share: the sample read without mqreplay, and warehouses compared without Spark."""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import json
import shutil
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
from deltalake import DeltaTable
from polars.testing import assert_frame_equal

from mqreplay.answers.outcome import Outcome
from mqreplay.night import nightly as night
from mqreplay.settings import LocalSettings, Settings

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "data" / "sample"
KEPT = ROOT / ".pytest_cache" / "kept"  # what made_once made
# What a judged night depends on, beside its recording: the page has templates, too.
CODE = ("lib/mqreplay/**/*", "schemas/**/*", "conf/**/*", "requirements/dev.txt")
MAKERS = (
    "tests/tests_shared.py",
    "tests/conftest.py",
    "tests/night/made_nights.py",
    "tests/night/cut.py",
    "tests/reliability/recordings.py",
)


def made_once(name: str, make: Callable[[Path], None], *sources: Path) -> Path:
    """Return a folder that ``make`` filled, once for all processes and runs with the same code and ``sources``.

    Tests must not write to it.
    """
    kept = KEPT / name
    folder = kept / digest_of(*sources)
    kept.mkdir(parents=True, exist_ok=True)
    with (KEPT / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            # Another run may still read the last one.
            for old in sorted(kept.iterdir(), key=lambda each: each.stat().st_mtime)[:-1]:
                shutil.rmtree(old)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            (folder / "complete").touch()
    return folder


@cache
def digest_of(*sources: Path) -> str:
    """Return a digest of CODE and of the files that are, or are in, ``sources``."""
    paths = {path for pattern in (*CODE, *MAKERS) for path in ROOT.glob(pattern)}
    paths.update(path for source in sources for path in (source, *source.rglob("*")))
    digest = hashlib.sha256()
    for path in sorted(path for path in paths if path.is_file() and path.suffix != ".pyc"):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def run(
    step: str,
    warehouse: str,
    settings: Settings,
    progress: Callable[[str], None],
    *,
    recordings: list[str] | None = None,
    cluster: str | None = None,
) -> list[Outcome]:
    """As night.run, by the local engine in this process: a test that is not about Spark does not wait for it."""
    here = replace(settings, local=LocalSettings(processes=1))
    return night.run(step, warehouse, here, progress, recordings=recordings, cluster=cluster, engine="local")


def rows_of(recording: str) -> dict[str, int]:
    """Lines of each JSONL file of a sample recording."""
    counts = {}
    for path in sorted((SAMPLE / recording).glob("*.jsonl.gz")):
        with gzip.open(path, "rb") as lines:
            counts[path.name] = sum(1 for line in lines if line.strip())
    return counts


def table_rows(warehouse: str, name: str, cluster: str) -> list[str]:
    """A cluster's rows of a table as sorted text, read by delta-rs."""
    table = DeltaTable(str(Path(warehouse, *name.split(".")))).to_pyarrow_table()
    return sorted(str(row) for row in table.to_pylist() if row["cluster"] == cluster)


def table_at(warehouse: str | Path, name: str, cluster: str | None = None) -> pl.DataFrame:
    """The rows of a table, of one cluster if it is given, read by delta-rs."""
    rows = pl.DataFrame(DeltaTable(str(Path(warehouse, *name.split(".")))).to_pyarrow_table())
    return rows if cluster is None else rows.filter(pl.col("cluster") == cluster)


def rows_at(warehouse: str | Path, name: str, cluster: str | None = None) -> list[dict[str, Any]]:
    """As table_at, a dict for each row. A map is a dict."""
    return table_at(warehouse, name, cluster).to_dicts()


def tables(warehouse: str) -> list[str]:
    """Names of the tables in a warehouse."""
    return sorted(
        f"{log.parent.parent.name}.{log.parent.name}" for log in Path(warehouse).glob("*/*/_delta_log") if log.is_dir()
    )


def assert_same_tables(root: str, other: str) -> None:
    """No column names the run, its warehouse or its time: all of them are compared."""
    assert tables(root) == tables(other)
    assert len(tables(root)) > 20
    for name in tables(root):
        assert_frame_equal(table_at(root, name), table_at(other, name), check_row_order=False, check_exact=True)
        assert what_delta_keeps(root, name) == what_delta_keeps(other, name), name


def what_delta_keeps(root: str, name: str) -> dict[str, Any]:
    """A table's columns, properties (checks and statistics among them), features and clustering."""
    place = Path(root, *name.split("."))
    table = DeltaTable(str(place))
    domains: dict[str, Any] = {}
    for commit in sorted(place.glob("_delta_log/*.json")):
        for line in commit.read_text(encoding="utf-8").splitlines():
            domain = json.loads(line).get("domainMetadata")
            if domain is not None:
                domains[domain["domain"]] = json.loads(domain["configuration"])
    protocol = table.protocol()
    return {
        "columns": json.loads(table.schema().to_json()),
        "properties": table.metadata().configuration,
        "protocol": [getattr(protocol, field) for field in protocol._fields],
        "domains": domains,
    }


def files_of(warehouse: str) -> dict[str, str]:
    """Every file under a warehouse's tables, with the digest of its bytes."""
    found = {}
    for layer in ("bronze", "silver", "gold"):
        for path in sorted(Path(warehouse, layer).rglob("*")):
            if path.is_file():
                found[str(path.relative_to(warehouse))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def unpack(archive: tarfile.TarFile, folder: Path, members: Sequence[tarfile.TarInfo] | None = None) -> None:
    """Write the members of an archive of ours, or all, into the folder. Python before 3.11.4 has no filters."""
    filters: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    archive.extractall(folder, members, **filters)
