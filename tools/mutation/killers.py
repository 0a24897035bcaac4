"""What may kill a mutant, nearest first: vector cases, the examples of its module, the tests of its module, all others.

All of it runs in a process of its own that has not loaded core yet; see child.py. Which vector cases go through which
function is measured once, of the unchanged core.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

from mutation.mutants import MODULE
from vectors.catalogue import CORE

TESTS = Path(__file__).parents[2] / "tests"
LIB = CORE.parent
# They read the sources, which no mutant changes, run what is run here on its own, or start processes.
NO_KILLERS = ("test_a_new_log_kind.py", "test_catalogue.py", "test_core_stands_alone.py", "test_doctests.py")
FIRST = 300  # cases that are tried first, taken from all over
MOST = 20_000  # cases tried at all

Through = dict[tuple[str, str], list[int]]  # (module, function) -> the cases that went through it


class Case(NamedTuple):
    """A vector case: which file, what was asked, and the text of what was answered."""

    stem: str
    asked: dict[str, Any]
    answer: str


@dataclass(frozen=True)
class Stage:
    """One kind of killer: its name in the page, seconds of processor that it may take, and whether all is well."""

    name: str
    limit: float
    passes: Callable[[], bool]


def read_vectors() -> list[Case]:
    """Every case of tests/vectors/data. Loads nothing of core."""
    from vectors.conftest import HERE, vector_files
    from vectors.test_vectors import canonical, read_cases

    return [
        Case(path.name.split(".jsonl")[0], case["in"], canonical(case["out"]))
        for path in vector_files(HERE / "data")
        for _, case in read_cases(path)
    ]


def cases_through(cases: Sequence[Case]) -> Through:
    """Which cases go through which function of core. Loads core."""
    run = _runner()
    here: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(CORE)):
            here.add((Path(frame.f_code.co_filename).stem, frame.f_code.co_qualname.split(".<locals>")[0]))

    found: Through = {}
    for number, case in enumerate(cases):
        here.clear()
        sys.setprofile(note)
        try:
            run(case)
        finally:
            sys.setprofile(None)
        for key in here:
            found.setdefault(key, []).append(number)
    return found


class Plan:
    """Which killers a mutant meets, in which order."""

    def __init__(self, cases: Sequence[Case], through: Through) -> None:
        """Of the tests as they stand on the disk."""
        self.cases = cases
        self.through = through
        modules = {f"mqreplay.{path.parent.name}.{path.stem}": path for path in _sources()}
        uses = {name: _imports(path, modules) for name, path in modules.items()}
        self.needs = {name: _reach(name, uses) for name in modules}
        self.tests = {path: _imports(path, modules) for path in _test_files()}
        self.chosen: dict[tuple[str, str], tuple[list[Case], list[Case]]] = {}

    def stages(self, module: str, place: str) -> list[Stage]:
        """For a mutant at that place."""
        name = f"mqreplay.core.{module}"
        near = [path for path, used in self.tests.items() if name in used]
        users = sorted(other for other, needed in self.needs.items() if name in needed and other != name)
        far = [path for path, used in self.tests.items() if path not in near and any(u in used for u in users)]
        if (module, place) not in self.chosen:
            self.chosen[module, place] = self._cases(module, place)
        first, more = self.chosen[module, place]
        return [
            Stage("vectors", 6, lambda: _answers(first)),
            Stage("examples", 6, lambda: _examples([name])),
            Stage("tests", 30, lambda: _tests(near)),
            Stage("vectors", 60, lambda: _answers(more)),
            Stage("examples", 15, lambda: _examples(users)),
            Stage("tests", 60, lambda: _tests(far)),
        ]

    def _cases(self, module: str, place: str) -> tuple[list[Case], list[Case]]:
        """Those through the function itself, a few from all over first; then those through its module."""
        of_module = sorted(set().union(*(found for (stem, _), found in self.through.items() if stem == module)))
        own = of_module if place == MODULE else self.through.get((module, place), [])
        first = own[:: max(1, len(own) // FIRST)]
        rest = [*own, *of_module] if len(own) < len(of_module) else own
        rest = list(dict.fromkeys(rest[:: max(1, -(-len(rest) // MOST))]))
        return [self.cases[n] for n in first], [self.cases[n] for n in rest]


def everything(plan: Plan) -> list[Stage]:
    """All killers there are: the unchanged core must pass them."""
    names = [name for name in plan.needs if ".core." in name or ".decode." in name]
    return [
        Stage("vectors", 120, lambda: _answers(plan.cases)),
        Stage("examples", 60, lambda: _examples(names)),
        Stage("tests", 300, lambda: _tests(list(plan.tests))),
    ]


def _runner() -> Callable[[Case], dict[str, Any]]:
    from vectors.conftest import HERE, load_runners, runner_for

    known = load_runners(HERE / "runners")
    by_stem: dict[str, Any] = {}

    def run(case: Case) -> dict[str, Any]:
        if case.stem not in by_stem:
            by_stem[case.stem] = runner_for(case.stem, known)
        answer: dict[str, Any] = by_stem[case.stem](case.asked)
        return answer

    return run


def _answers(cases: Sequence[Case]) -> bool:
    from vectors.test_vectors import canonical

    run = _runner()
    return all(canonical(run(case)) == case.answer for case in cases)


def _examples(names: Sequence[str]) -> bool:
    with contextlib.redirect_stdout(io.StringIO()):
        return all(doctest.testmod(importlib.import_module(name)).failed == 0 for name in names)


def warm_up() -> None:
    """Loads what pytest loads for any test, so that no child has to."""
    with contextlib.redirect_stdout(io.StringIO()):
        _tests([TESTS / "tools" / "mutation" / "test_mutants.py"])


def _tests(files: Sequence[Path]) -> bool:
    if not files:
        return True
    options = ["-x", "-q", "-m", "not long", "-p", "no:cacheprovider", f"--rootdir={TESTS.parent}"]
    return pytest.main([*options, *map(str, files)]) == pytest.ExitCode.OK


def _sources() -> list[Path]:
    return sorted([*CORE.glob("*.py"), *(LIB / "decode").glob("*.py")])


def _test_files() -> list[Path]:
    found = sorted([*(TESTS / "core").glob("test_*.py"), *(TESTS / "decode").glob("test_*.py")])
    return [path for path in found if path.name not in NO_KILLERS]


def _imports(path: Path, modules: dict[str, Path]) -> set[str]:
    """The modules of ``modules`` that a file names in its imports."""

    def named() -> Iterator[str]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield node.module or ""
                yield from (f"{node.module}.{alias.name}" for alias in node.names)

    return set(named()) & set(modules)


def _reach(name: str, uses: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    todo = [name]
    while todo:
        for used in uses[todo.pop()] - found:
            found.add(used)
            todo.append(used)
    return found
