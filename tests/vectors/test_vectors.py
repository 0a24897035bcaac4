"""Every vector file: what RocketMQ's own classes answered must be what mqreplay answers, to the last value.

`pytest tests/vectors --vectors DIR` checks the files of DIR; without it, those of tests/vectors/data. A file
without a runner, a kind of case without a rule, an empty file and an empty folder all fail: nothing is passed
over in silence.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Runner = Callable[[dict[str, Any]], dict[str, Any]]
SHOWN = 5  # differing cases shown per file
WIDTH = 1500  # characters shown of each value


def read_cases(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, case) for each line that is not blank."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield number, json.loads(line)


def canonical(value: object) -> str:
    """A text that is equal only for equal JSON values: True is not 1, 1 is not 1.0. Tuples are lists."""
    return json.dumps(json.loads(json.dumps(value)), sort_keys=True)


def differences(path: Path, runner: Runner) -> tuple[int, int, list[str]]:
    """(cases, failed, what the first few of them were)."""
    cases, shown, unknown = 0, [], set()
    failed = 0
    for number, case in read_cases(path):
        cases += 1
        kind = case["in"].get("case")
        try:
            got = canonical(runner(case["in"]))
        except NotImplementedError:
            failed += 1
            if kind not in unknown:
                unknown.add(kind)
                shown.insert(0, f"line {number}: no rule for case kind {kind!r}")
            continue
        except Exception as error:  # a crash of ours is a difference like any other
            got = f"{type(error).__name__}: {error}"
        if got != canonical(case["out"]):
            failed += 1
            if len(shown) < SHOWN:
                shown.append(describe(number, case, got))
    return cases, failed, shown


def describe(number: int, case: dict[str, Any], got: str) -> str:
    """One difference, in a form to paste into a report."""
    asked = json.dumps(case["in"], ensure_ascii=False)[:WIDTH]
    return f"line {number}\n  in   {asked}\n  want {canonical(case['out'])[:WIDTH]}\n  got  {got[:WIDTH]}"


def test_there_is_something_to_check(found_files: list[Path]) -> None:
    assert found_files, "no *.jsonl or *.jsonl.gz in the vectors folder"


def test_vector_file(
    vector_file: Path,
    find_runner: Callable[[str], Runner | None],
    count: Callable[[str, int, int], None],
) -> None:
    stem = vector_file.name.split(".jsonl")[0]
    runner = find_runner(stem)
    if runner is None:
        count(stem, 0, 0)
        pytest.fail(f"no runner for {vector_file.name}: no FILES of runners/ has {stem!r}", pytrace=False)
    cases, failed, shown = differences(vector_file, runner)
    count(stem, cases, failed)
    if cases == 0:
        pytest.fail(f"{vector_file.name} holds no case", pytrace=False)
    if failed:
        text = "\n".join(shown)
        pytest.fail(f"{vector_file.name}: {failed} of {cases} cases differ\n{text}", pytrace=False)
