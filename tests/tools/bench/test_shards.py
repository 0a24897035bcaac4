"""The tool for the balance of shards prints a line for each pass of a night."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LINE = re.compile(r"(\w+) +(\d+) +([\d.]+) +([\d.]+) +([\d.]+)?  (\d+): (.+)")
REPLAY = [
    "survey_files",
    "judge_commits",
    "judge_queues",
    "judge_groups",
    "judge_pops",
    "judge_deliveries",
    "audit_messages",
]


@pytest.mark.long
def test_each_pass_of_the_sample_has_a_line() -> None:
    recording = ROOT / "data" / "sample" / "bulk-5.3.3"
    words = [sys.executable, ROOT / "tools" / "bench" / "shards.py", "--recording", recording]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    head, *lines, driver, one, two, _, _ = done.stdout.splitlines()
    assert " ".join(head.split()) == "pass tasks median s max s max / median task of the maximum"
    passes = {}
    for line in lines:
        found = LINE.fullmatch(line)
        assert found is not None, line
        name, tasks, median, most, _, number, task = found.groups()
        assert 0 <= float(median) <= float(most)
        assert 1 <= int(number) <= int(tasks)
        passes[name] = int(tasks), task
    assert sorted(passes) == sorted(["read_lines", "read_piece", *REPLAY])
    assert passes["read_lines"][0] > 1
    assert re.fullmatch(r"\d+ files? of \w+, [\d.]+ MB", passes["read_lines"][1])
    assert passes["read_piece"][1].startswith("snapshots of rmq-")
    assert re.fullmatch(r"buckets 0 to 4095, \d+ queues", passes["judge_queues"][1])
    assert passes["judge_groups"][1] == "buckets 0 to 4095"
    assert driver.startswith("driver alone ")
    assert ", 1.00 times as fast as one; " in one
    assert re.match(r"2 workers: [\d.]+ s, 1\.\d\d times as fast as one; driver \d+%", two)
