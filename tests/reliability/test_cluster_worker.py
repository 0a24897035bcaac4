"""A worker of a standalone cluster is killed in the middle of a night: the night ends well, with the same tables."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reliability.histories import Histories
from reliability.recordings import State
from reliability.runs import SPARK_WRITES_ALL, wait_until
from reliability.table_rows import difference, left_by_maintenance, read_tables
from standalone_cluster import environment, standalone
from tests_shared import ROOT

SUBMIT = Path(sys.executable).parent / "spark-submit"
FIRST_FILE = "silver/*/cluster=*/*/*.parquet"  # tasks write rows
FIRST_GOLD = "gold/*/_delta_log/*.json"  # decisions are replayed, and wait on the workers until they are written
JOB = f"""
{SPARK_WRITES_ALL}
import runpy
runpy.run_path({str(ROOT / "jobs" / "nightly.py")!r}, run_name="__main__")
"""


@pytest.mark.long
@pytest.mark.parametrize("moment", [FIRST_FILE, FIRST_GOLD])
@pytest.mark.parametrize("program", ["CoarseGrainedExecutorBackend", "deploy.worker.Worker"])
def test_same_tables(histories: dict[str, Histories], tmp_path: Path, program: str, moment: str) -> None:
    its, root = histories["nightly"], tmp_path / "warehouse"
    with standalone(tmp_path / "cluster", "1500m") as master, its.recordings.placed(State(0)) as night:
        command = [str(SUBMIT), "--master", master, "--conf", "spark.executor.memory=1g"]
        job = tmp_path / "job.py"
        job.write_text(JOB)
        command += [str(job), "--recording", night, "--warehouse", str(root)]
        with (tmp_path / "said").open("w") as said:
            process = subprocess.Popen(command, env=environment(), stdout=said, stderr=said)
            try:
                assert wait_until(lambda: process.poll() is not None or any(root.glob(moment)), 300)
                assert process.poll() is None, (tmp_path / "said").read_text()[-3000:]
                killed = below(os.getpid(), program)
                assert killed, "no such process"
                os.kill(killed[0], signal.SIGKILL)
                assert process.wait(600) == 0, (tmp_path / "said").read_text()[-3000:]
            finally:
                process.kill()
                process.wait()
    assert not difference(read_tables(root), its.tables(State(0)))
    assert not left_by_maintenance(root)
    shutil.rmtree(tmp_path / "cluster")


def below(ancestor: int, program: str) -> list[int]:
    """Return the descendants of a process whose command names the Java program."""
    listed = subprocess.run(["ps", "-wweo", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
    lines = [line.split(None, 2) for line in listed.stdout.splitlines()]
    family = {ancestor}
    for _ in lines:
        family |= {int(pid) for pid, parent, _ in lines if int(parent) in family}
    return [int(pid) for pid, _, said in lines if int(pid) in family and program in said and "java" in said]
