"""The order of a night, and a commit, are understood from few files: lists derived from the calls in lib/.

Followed are calls by name: of functions and classes, of methods of ``self``, and of methods of what an object made for
itself. tests/decisions/test_one_table_few_files.py has the rules of tables.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from mqreplay.night import nightly
from mqreplay.night.nightly import COMMANDS
from mqreplay.night.nightly_run import NightlyRun
from tests_shared import ROOT

LIB = ROOT / "lib"
Class = tuple[str, str]  # its module and name
Function = tuple[str, str, Class | None]  # its module, its name, and the class of its ``self``
# What a table, a store and its files are: the language of the lake, which knows no commit.
LAKE_LANGUAGE = {
    *("buckets", "contract", "files", "hdfs", "ipc_blobs", "lease", "local_folder", "object_store", "row_filter"),
    *("scratch", "storage", "store_protocol"),
}


@dataclass
class Module:
    """The functions of a module, with methods as CLASS.METHOD, and what it imports of mqreplay."""

    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    bases: dict[str, list[str]] = field(default_factory=dict)  # of each class
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)  # module and name there


@cache
def read_module(name: str) -> Module:
    """Return a module of lib/; an empty one for another name."""
    path = LIB.joinpath(*name.split(".")).with_suffix(".py")
    module, tree = Module(), ast.parse(path.read_text(encoding="utf-8") if path.exists() else "")
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module.imported |= {each.asname or each.name: (str(node.module), each.name) for each in node.names}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            module.functions[node.name] = node
        if isinstance(node, ast.ClassDef):
            module.bases[node.name] = [base.id for base in node.bases if isinstance(base, ast.Name)]
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            module.functions |= {f"{node.name}.{each.name}": each for each in methods}
    return module


def home(module: str, name: str) -> tuple[str, str]:
    """Return where a name that a module uses is defined."""
    return read_module(module).imported.get(name, (module, name))


def method(module: str, of_class: str, name: str) -> tuple[str, str] | None:
    """Return where a class, or one that it is based on, defines a method."""
    if of_class not in read_module(module).bases:
        return None
    if f"{of_class}.{name}" in read_module(module).functions:
        return module, f"{of_class}.{name}"
    inherited = (method(*home(module, base), name) for base in read_module(module).bases[of_class])
    return next((each for each in inherited if each is not None), None)


def own_objects(module: str, of_class: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the attributes of an object to which its __init__ assigns a new object of a class."""
    place = method(module, of_class, "__init__")
    for node in ast.walk(read_module(place[0]).functions[place[1]]) if place is not None else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
            yield ast.unparse(node.targets[0]), home(place[0], node.value.func.id)


def called(function: Function) -> Iterator[Function]:
    """Yield the functions and methods that a function names."""
    module, name, owner = function
    objects = {"self": owner, **dict(own_objects(*owner))} if owner is not None else {}
    for node in ast.walk(read_module(module).functions[name]):
        if isinstance(node, ast.Name):
            yield *home(module, node.id), None
        if isinstance(node, ast.Attribute) and (of := objects.get(ast.unparse(node.value))) is not None:
            place = method(*of, node.attr)
            if place is not None:
                yield *place, of


def entered(module: str, of_class: str, name: str, room: str) -> set[Function]:
    """Return the functions of a room that the calls of a method enter."""
    waiting: list[Function] = [(module, f"{of_class}.{name}", (module, of_class))]
    seen = set[Function]()
    while waiting:
        function = waiting.pop()
        is_known = function[0].startswith(room) and function[1] in read_module(function[0]).functions
        if function not in seen and is_known:
            seen.add(function)
            waiting += called(function)
    return seen


def test_a_commit() -> None:
    functions = entered("mqreplay.lake.warehouse", "Warehouse", "commit_files", "mqreplay.lake.")
    modules = {module.rpartition(".")[2] for module, _, _ in functions}
    # The table that is opened and its log, the versions that the last run left, the files and what they hold.
    assert modules - LAKE_LANGUAGE == {
        *("warehouse", "checked_tables", "table_files", "delta_table", "table_log"),
        *("table_versions", "table_writer", "data_checksums"),
    }


def test_the_order_of_the_night() -> None:
    """nightly.py has the order of the steps, nightly_run.py each step; others do the work that reports progress."""
    module = NightlyRun.__module__
    steps = {step for command in COMMANDS.values() for step in command.of_cluster} | {
        NightlyRun.ingest,
        NightlyRun.report,
    }
    modules = {nightly.__name__, module}
    for function in (entered(module, "NightlyRun", step.__name__, module) for step in steps):
        modules |= {
            home(module, worker)[0]
            for _, name, _ in function
            for worker in workers(read_module(module).functions[name])
        }
    assert {each.removeprefix("mqreplay.") for each in modules} == {
        *("night.nightly", "night.nightly_run", "ingest.run", "night.replay_day", "night.validation"),
    }


def workers(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the functions, and the classes of objects, to which a step hands the way to report progress."""
    objects = {
        ast.unparse(node.targets[0]): ast.unparse(node.value.func)
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
    }
    for call in ast.walk(function):
        if isinstance(call, ast.Call) and "self.progress" in map(ast.unparse, call.args):
            name = ast.unparse(call.func).partition(".")[0]
            yield objects.get(name, name)
