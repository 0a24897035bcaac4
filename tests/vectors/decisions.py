"""docs/decisions.md, out of core and the vectors: `python tests/vectors/decisions.py > docs/decisions.md`.

How many cases ask a function is counted, not claimed: core is loaded with a mark at the head of each function, every
case of every vector file is run, and a case counts for each function that it went through, directly or by another.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import sys
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "lib"), str(HERE.parent)]

from vectors.catalogue import CORE, Function, functions  # noqa: E402
from vectors.judged import JUDGES_NOTHING, ON_ARRAYS  # noqa: E402
from vectors.judged_by import entry_of, judged_by  # noqa: E402

HEAD = """# Decisions

Made by `python tests/vectors/decisions.py > docs/decisions.md` from lib/mqreplay/core and tests/vectors/data; do not
edit. Every public function of core: how it is called, what it says, the Java method that it follows, and how many
of the {cases:,} vector cases (answers of RocketMQ's own classes) go through it, directly or by another function. Where
none does, RocketMQ's sources are followed by reading, and tests/core holds the examples. "Judges" names the tables
whose rows follow from it in a night; "on arrays" is a kernel on whole columns, which the test compares with it.
"""
MARK = "__asked__"


class Marking(importlib.machinery.SourceFileLoader):
    """Loads a module of core with a mark in each of its public functions."""

    asked: set[str]

    def get_code(self, fullname: str) -> CodeType:
        """Compiled anew: the byte code on the disk has no marks."""
        stem = fullname.rpartition(".")[2]
        tree = ast.parse(Path(self.path).read_bytes())
        wanted = {f.node.lineno: f.key for f in functions() if f.module == stem}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.lineno in wanted:
                head = ast.parse(f"{MARK}({wanted[node.lineno]!r})").body
                has_doc = ast.get_docstring(node) is not None
                node.body[has_doc:has_doc] = head
                # What is kept for the next call would be asked only once.
                node.decorator_list = [d for d in node.decorator_list if "cache" not in ast.unparse(d)]
        return compile(ast.fix_missing_locations(tree), self.path, "exec")

    def exec_module(self, module: ModuleType) -> None:
        """With the mark at hand."""
        module.__dict__[MARK] = self.asked.add
        super().exec_module(module)


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of core, and gives them to Marking."""

    def __init__(self, asked: set[str]) -> None:
        self.asked = asked

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> Any:
        """Only mqreplay.core.*; all else is found as ever."""
        package, _, stem = fullname.rpartition(".")
        source = CORE / f"{stem}.py"
        if package != "mqreplay.core" or not source.exists():
            return None
        loader = Marking(fullname, str(source))
        loader.asked = self.asked
        return importlib.machinery.ModuleSpec(fullname, loader, origin=str(source))


def count() -> tuple[dict[str, Counter[str]], int]:
    """(function's key -> vector file -> cases that went through it, all cases). Core must not be loaded yet."""
    assert not any(name.startswith("mqreplay.core.") for name in sys.modules), "core is loaded without marks"
    asked: set[str] = set()
    sys.meta_path.insert(0, Finder(asked))
    from vectors.conftest import load_runners, runner_for, vector_files
    from vectors.test_vectors import read_cases

    runners = load_runners(HERE / "runners")
    found: dict[str, Counter[str]] = {}
    cases = 0
    for path in vector_files(HERE / "data"):
        stem = path.name.split(".jsonl")[0]
        runner = runner_for(stem, runners)
        assert runner is not None, stem
        for _, case in read_cases(path):
            cases += 1
            asked.clear()
            runner(case["in"])
            for key in asked:
                found.setdefault(key, Counter())[stem] += 1
    return found, cases


def render(found: dict[str, Counter[str]], cases: int) -> str:
    """The page."""
    tables = judged_by()
    parts = [HEAD.format(cases=cases), index(list(functions()), tables)]
    module = None
    for function in functions():
        if function.module != module:
            module = function.module
            parts.append(f"## {module}\n\n" + " ".join(function.module_doc.split("\n\n", 1)[0].split()) + "\n")
        parts.append(_entry(function, found.get(function.key, Counter()), tables.get(function.key, set())))
    return "\n".join(parts)


def index(found: Sequence[Function], tables: Mapping[str, Set[str]]) -> str:
    """The sections that have the modules of a table, and the functions of a Java class."""
    of_table: dict[str, dict[str, None]] = {}
    of_class: dict[str, dict[str, list[str]]] = {}
    for function in found:
        for table in tables_of(function.key, tables):
            of_table.setdefault(table, {})[function.module] = None
        for java_class in dict.fromkeys(method.partition("#")[0] for method in function.java):
            of_class.setdefault(java_class, {}).setdefault(function.module, []).append(function.name)
    return "\n".join(
        [
            *("## Index of tables", "", "| table | decisions |", "|---|---|"),
            *(f"| {name} | {', '.join(map(_link, of_table[name]))} |" for name in sorted(of_table)),
            *("", "## Index of Java classes", "", "| class | functions |", "|---|---|"),
            *(f"| `{name}` | {_functions(of_class[name])} |" for name in sorted(of_class, key=str.lower)),
            "",
        ]
    )


def tables_of(key: str, tables: Mapping[str, Set[str]]) -> list[str]:
    """The tables that a function judges, on arrays or row by row."""
    arrays = entry_of(key, ON_ARRAYS)
    judged = tables.get(key, set())
    return sorted(judged) if judged or arrays is None else arrays.table.split(", ")


def _functions(modules: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{_link(module)}: {', '.join(f'`{each}`' for each in modules[module])}" for module in modules)


def _link(module: str) -> str:
    return f"[{module}](#{module})"


def _entry(function: Function, counted: Counter[str], tables: Set[str]) -> str:
    follows = ", ".join(f"`{each}`" for each in function.java) or f"no method of RocketMQ: {function.no_java}"
    of = ", ".join(f"{stem} {n:,}" for stem, n in sorted(counted.items()))
    asked = f"{counted.total():,} ({of})" if counted else "none"
    return "\n".join(
        [
            f"- `{function.signature}`",
            f"  {function.says}",
            f"  Follows {follows}. Vector cases: {asked}.",
            f"  {_judges(function.key, tables)}.",
            "",
        ]
    )


def _judges(key: str, tables: Set[str]) -> str:
    arrays, nothing = entry_of(key, ON_ARRAYS), entry_of(key, JUDGES_NOTHING)
    if tables or arrays is None:
        return f"Judges {', '.join(sorted(tables))}" if tables else f"Judges nothing: {nothing}"
    return f"Judges {arrays.table} on arrays ({arrays.test})"


if __name__ == "__main__":
    print(render(*count()), end="")
