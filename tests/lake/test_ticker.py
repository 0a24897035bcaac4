"""What is said while something long goes on."""

from __future__ import annotations

import threading
import time

from mqreplay.lake.running_tasks import running_tasks
from mqreplay.lake.ticker import Ticker


def test_it_speaks_while_it_is_open_and_not_after():
    said, spoken = [], threading.Event()

    def line(seconds):
        spoken.set()
        return f"{seconds:.0f}"

    with Ticker(said.append, line, every_s=0.01):
        assert spoken.wait(10)
    whole = list(said)
    time.sleep(0.05)
    assert said == whole
    assert whole[0] == "0"


def test_nothing_new_is_not_said():
    said, asked = [], threading.Event()
    with Ticker(said.append, lambda _: asked.set(), every_s=0.01):
        assert asked.wait(10)
    assert said == []


def test_something_short_says_nothing():
    said = []
    with Ticker(said.append, str, every_s=60):
        pass
    assert said == []


def test_tasks_that_run_are_counted(spark, tmp_path):
    assert running_tasks(spark) == "planning"
    gate = tmp_path / "gate"

    def wait(batches):
        while not gate.exists():
            time.sleep(0.05)
        yield from batches

    def run():
        spark.range(3, numPartitions=3).mapInArrow(wait, "id BIGINT").count()

    job = threading.Thread(target=run)
    job.start()
    try:
        deadline = time.monotonic() + 60
        while (words := running_tasks(spark)) == "planning" and time.monotonic() < deadline:
            time.sleep(0.05)
        assert words == "0 of 3 tasks done"
    finally:
        gate.touch()
        job.join()
    assert running_tasks(spark) == "planning"
