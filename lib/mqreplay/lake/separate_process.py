"""Run Python code in a separate process that does not inherit a caller's spark-submit."""

from __future__ import annotations

import os
import subprocess
import sys

FOREIGN = ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")


def run_separately(code: str, *arguments: str, patience_s: int) -> subprocess.CompletedProcess[str]:
    """Run the command to its end and return its output. Raise subprocess.TimeoutExpired."""
    env = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    env.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=patience_s)
