"""A process of the local engine sets the threads of polars before it loads polars."""

from __future__ import annotations

import os
import subprocess
import sys

from tests_shared import ROOT


def test_the_start_of_a_process_loads_no_polars() -> None:
    script = "import sys, mqreplay.engines.worker_process; print('polars' in sys.modules)"
    env = os.environ | {"PYTHONPATH": str(ROOT / "lib")}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
