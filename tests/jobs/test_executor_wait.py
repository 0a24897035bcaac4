"""A job whose executors fit into no worker of a real standalone master: mqreplay says so, and goes on waiting."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mqreplay.lake.executor_wait import CORES, MEMORY, Room, Worker, advice
from standalone_cluster import environment, standalone
from tests_shared import ROOT, SAMPLE

SMALL = Worker(Room(1500, 1), Room(1500, 1))


@pytest.mark.long
def test_too_large_executors_are_named(tmp_path: Path) -> None:
    conf, said = tmp_path / "own.toml", tmp_path / "stderr"
    with standalone(tmp_path / "cluster", "600m") as master:
        conf.write_text(f'[spark]\nmaster = "{master}"\ndriver_memory = "1g"\n[spark.extra]\n"{MEMORY}" = "4g"\n')
        command = [sys.executable, "-m", "mqreplay", "nightly", str(SAMPLE / "bulk-5.3.3"), "--conf", str(conf)]
        command += ["--warehouse", str(tmp_path / "warehouse")]
        env = environment() | {"PYTHONPATH": str(ROOT / "lib")}
        with said.open("w") as stderr:
            job = subprocess.Popen(command, env=env, stdout=stderr, stderr=stderr)
        try:
            deadline = time.monotonic() + 120
            while "no executor after" not in said.read_text() and job.poll() is None:
                assert time.monotonic() < deadline, said.read_text()
                time.sleep(0.5)
            assert job.poll() is None, said.read_text()  # it waits
        finally:
            job.kill()
            job.wait(60)
    (line,) = [line for line in said.read_text().splitlines() if "no executor after" in line]
    found = re.fullmatch(r" *[\d.]+ s  no executor after (\d+) s, and the work waits for one: (.*)", line)
    assert found, line
    assert 15 <= int(found[1]) < 25
    assert found[2] == (
        f"each needs 4,096 MiB and 1 core of {master}; the largest worker has 600 MiB and 1 core; "
        "set spark.executor.memory under [spark.extra] to 600m or less, or start larger workers"
    )
    assert "Traceback" not in said.read_text()


def test_advice_names_what_is_missing() -> None:
    def of(need: Room, workers: list[Worker] | None, *, submitted: bool = False) -> str:
        return advice(need, workers, {}, submitted=submitted)

    assert of(Room(1024, 1), []) == "no worker is registered with the master; start one"
    assert "set spark.executor.cores under [spark.extra] to 1 or less" in of(Room(1024, 2), [SMALL])
    assert "set spark-submit's --conf spark.executor.memory to 1500m" in of(Room(4096, 1), [SMALL], submitted=True)
    used = Worker(Room(1500, 1), Room(476, 0))
    assert of(Room(1024, 1), [used]).startswith("other applications use the workers: at most 476 MiB and 0 cores are")
    assert of(Room(1024, 1), [SMALL]).endswith("see the worker's logs")
    assert CORES in of(Room(1024, 1), None)
