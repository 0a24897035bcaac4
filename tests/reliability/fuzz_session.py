"""Fuzzing from a test: in a process of its own, without the threads and the memory of the test run."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests_shared import ROOT

INPUTS = int(os.environ.get("MQREPLAY_FUZZ_INPUTS", 1_000_000))  # of the long form, to each target
SEED = int(os.environ.get("MQREPLAY_FUZZ_SEED", 1))


def fuzzed(what: str, inputs: int, processes: int = 1) -> dict[str, int]:
    """How many inputs each target survived. Fails with those that were not survived."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'lib'}{os.pathsep}{ROOT / 'tests'}"}
    command = [sys.executable, str(ROOT / "tests/reliability/fuzz.py"), what, f"--inputs={inputs}", f"--seed={SEED}"]
    done = subprocess.run(
        [*command, f"--processes={processes}"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)
    assert not told["failures"], "\n".join(told["failures"])
    assert done.returncode == 0
    given: dict[str, int] = told["inputs"]
    return given
