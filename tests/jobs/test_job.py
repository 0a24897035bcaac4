"""Errors and help of a job's command line, without spark-submit and Java."""

from __future__ import annotations

import doctest
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


def test_doctests() -> None:
    assert doctest.testmod(job)[:2] == (0, 1)
