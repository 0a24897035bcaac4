"""Finds vector files and their runners, and counts cases per file.

A vector file is DIR/NAME.jsonl or DIR/NAME.jsonl.gz, each line {"in": {"case": KIND, ...}, "out": {...}}. A
runner is an entry of FILES in any module of tests/vectors/runners: file stem -> function from case["in"] to
what must equal case["out"]. NAME_v533 goes to the runner of NAME with version="5.3.3", if that runner takes a
`version`. A runner raises NotImplementedError for a kind of case that it does not know.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

HERE = Path(__file__).parent
Runner = Callable[[dict[str, Any]], dict[str, Any]]


class Count(NamedTuple):
    """How one vector file fared."""

    name: str
    cases: int
    failed: int


COUNT = "vectors"  # under which name a test's report has its Count: it reaches the summary from any process


def load_runners(folder: Path) -> dict[str, Runner]:
    """All FILES of the modules in folder; two runners for one stem are an error."""
    found: dict[str, Runner] = {}
    for path in sorted(folder.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"vector_runner_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for stem, runner in getattr(module, "FILES", {}).items():
            assert stem not in found, f"two runners for {stem}; the second in {path.name}"
            found[stem] = runner
    return found


def runner_for(stem: str, runners: dict[str, Runner]) -> Runner | None:
    """The runner of a file stem; a version suffix (_v533 is 5.3.3) is passed on as `version`."""
    if stem in runners:
        return runners[stem]
    match = re.fullmatch(r"(.+)_v(\d)(\d)(\d+)", stem)
    runner = runners.get(match[1]) if match else None
    if match is None or runner is None:
        return None
    if "version" in inspect.signature(runner).parameters:
        return functools.partial(runner, version=f"{match[2]}.{match[3]}.{match[4]}")
    return runner


def vectors_dir(config: pytest.Config) -> Path:
    """The folder of --vectors, or tests/vectors/data."""
    folder = config.getoption("--vectors")
    return Path(config.invocation_params.dir, folder) if folder else HERE / "data"


def vector_files(folder: Path) -> list[Path]:
    """The vector files of a folder, by name."""
    return sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "vector_file" in metafunc.fixturenames:
        files = vector_files(vectors_dir(metafunc.config))
        metafunc.parametrize("vector_file", files, ids=[path.name.split(".jsonl")[0] for path in files])


@pytest.fixture(scope="session")
def runners() -> dict[str, Runner]:
    return load_runners(HERE / "runners")


@pytest.fixture
def find_runner(runners: dict[str, Runner]) -> Callable[[str], Runner | None]:
    return lambda stem: runner_for(stem, runners)


@pytest.fixture
def found_files(pytestconfig: pytest.Config) -> list[Path]:
    return vector_files(vectors_dir(pytestconfig))


@pytest.fixture
def count(request: pytest.FixtureRequest) -> Callable[[str, int, int], None]:
    """Report a file's cases to the terminal summary."""
    return lambda name, cases, failed: request.node.user_properties.append((COUNT, [name, cases, failed]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for of_one in terminalreporter.stats.values() for report in of_one]
    properties = [
        pair for report in reports if getattr(report, "when", "") == "call" for pair in report.user_properties
    ]
    counts = [Count(*value) for name, value in properties if name == COUNT]
    if not counts:
        return
    terminalreporter.section("vectors")
    width = max(len(c.name) for c in counts)
    terminalreporter.write_line(f"{'file':{width}} {'cases':>7} {'failed':>7}")
    for c in sorted(counts):
        terminalreporter.write_line(f"{c.name:{width}} {c.cases:7d} {c.failed:7d}")
    terminalreporter.write_line(f"{'all':{width}} {sum(c.cases for c in counts):7d} {sum(c.failed for c in counts):7d}")
