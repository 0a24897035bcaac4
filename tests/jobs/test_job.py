"""Errors and help of a job's command line, without spark-submit and Java."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqreplay.cli import job
from mqreplay.cli.job import main
from tests_shared import ROOT


def test_a_job_says_what_is_wrong_with_its_input(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "jobs" / "ingest.py"), "--recording", str(tmp_path / "none")]
    done = subprocess.run([*command, "--warehouse", str(tmp_path / "w")], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "does not exist; give the folder that holds snapshots/" in done.stderr


@pytest.mark.parametrize("options", ["--driver-memory 6g", "--conf spark.driver.memory=6g", "--master=yarn"])
def test_options_of_spark_submit_after_the_job_are_refused(options: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("nightly", ["--recording", "r", "--warehouse", "w", *options.split()]) == 2
    assert capsys.readouterr().err == (
        f"mqreplay: {options} after the job has no effect on Spark; give it before the job: "
        f"spark-submit {options} ... jobs/nightly.py ...\n"
    )


@pytest.mark.parametrize("taken", [True, False], ids=["its descriptor", "its path"])
def test_stderr_of_the_parent_is_continued(taken: bool, tmp_path: Path) -> None:
    """As spark-submit runs a job: Java's stderr is a file, and the job's stderr is its stdout."""
    refuse = "" if taken else "job._stderr_of = lambda process: f'/proc/{process}/fd/2'; "
    child = f"from mqreplay.cli import job; {refuse}print('progress', file=job._own_stderr())"
    parent = (
        "import os, subprocess, sys; os.write(2, b'java\\n'); env = {**os.environ, 'PYSPARK_GATEWAY_PORT': '1'}; "
        f"subprocess.run([sys.executable, '-c', {child!r}], env=env, stderr=subprocess.STDOUT, check=True); "
        "os.write(2, b'end\\n')"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    with (tmp_path / "err").open("a" if not taken else "w") as err, (tmp_path / "out").open("w") as out:
        subprocess.run([sys.executable, "-c", parent], env=env, stdout=out, stderr=err, check=True)
    assert (tmp_path / "err").read_text() == "java\nprogress\nend\n"
    assert (tmp_path / "out").read_text() == ""


def test_doctests() -> None:
    assert doctest.testmod(job)[:2] == (0, 1)
