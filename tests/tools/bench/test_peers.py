"""Both peers, each way of theirs, on a small estate: the known answers, and the same rows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.estate.write import write_estate

PEERS = Path(__file__).parents[3] / "tools" / "bench" / "peers.py"
WAYS = (("polars", "carry"), ("polars", "brute"), ("duckdb", "carry"), ("duckdb", "lines"), ("duckdb", "brute"))


def run(*options: object, script: Path = PEERS) -> dict:
    done = subprocess.run([sys.executable, script, *map(str, options)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.long
@pytest.mark.parametrize("full", [False, True])
def test_all_peers_find_the_known_answers_and_the_same_rows(tmp_path: Path, full: bool) -> None:
    recording = tmp_path / "XS"
    write_estate("XS", 3, recording, full)
    found = []
    for peer, way in WAYS:
        told = run("--peer", peer, "--snapshots", way, "--recording", recording, "--out", tmp_path / peer / way)
        assert told["right"], told["wrong"]
        assert all(stage["cpu_s"] >= 0 for stage in told["stages"].values())
        found.append(told["tables"])
    assert found == [found[0]] * len(WAYS)
    plain = run("--peer", "plain", "--recording", recording)
    assert plain["right"], plain["wrong"]
    assert run("--equal", tmp_path / "polars" / "carry", tmp_path / "duckdb" / "lines")["equal"]


@pytest.mark.long
@pytest.mark.parametrize(("engine", "full"), [("spark", False), ("spark", True), ("local", True)])
def test_the_same_part_of_a_night_is_the_peers_tables(tmp_path: Path, engine: str, full: bool) -> None:
    recording, ours, theirs = tmp_path / "XS", tmp_path / "ours", tmp_path / "theirs"
    write_estate("XS", 3, recording, full)
    script = PEERS.with_name("same_tables.py")
    stages = run("--recording", recording, "--out", ours, "--engine", engine, script=script)
    assert sum(stages[name] for name in ("session", "ingest", "replay")) == pytest.approx(stages["all"])
    assert (stages["session"] > 0) == ("Spark jobs" in stages) == (engine == "spark")
    run("--peer", "polars", "--recording", recording, "--out", theirs)
    compared = run("--equal", ours, theirs)
    assert compared["equal"]
    assert ("silver.offset_commit" in compared["tables"]) == full
