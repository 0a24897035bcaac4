"""Where each public function of core judges: the tables whose rows it decides, from the imports of lib.

A table is decided by its module of decisions/, a finding by one of findings/, a row of a silver table by one of decode/
or ingest/. What such a module imports decides its table too. SQL functions alone judge nothing.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar

LIB = Path(__file__).parents[2] / "lib" / "mqreplay"
CORE = "mqreplay.core."
_TABLE = re.compile(r"\b(gold|silver)\.[a-z_]+")
# A package of lib -> what its modules decide if no module of decisions/ or findings/ imports them.
_ELSE = {
    "decode": "rows of silver tables",
    "ingest": "rows of silver tables",
    "quality": "gold.validation_result",
    "findings": "gold.finding",
    "replay": "rows of gold tables",
    "evidence": "rows of gold tables",
    "record": "recordings",
}
E = TypeVar("E")
Node = tuple[str, str]  # (module of core, name), of a method "Class.method"


class _Module:
    """One module: its definitions, what it imports, and the names that each definition uses."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.doc = ast.get_docstring(self.tree) or ""
        self.imported: dict[str, Node] = {}
        self.modules: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("mqreplay"):
                for alias in node.names:
                    self.modules |= {node.module, f"{node.module}.{alias.name}"}
                    if node.module.startswith(CORE):
                        self.imported[alias.asname or alias.name] = (node.module.removeprefix(CORE), alias.name)
                    elif node.module == CORE[:-1]:
                        self.imported[alias.asname or alias.name] = (alias.name, "*")

    def used(self, tree: ast.AST) -> set[str]:
        """The names and attributes that occur in a part of the module."""
        names: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                names.add(node.id)
            elif isinstance(node, ast.Attribute):
                names.add(f".{node.attr}")
        return names

    def definitions(self) -> Iterator[tuple[str, ast.AST]]:
        """Functions, methods as Class.method, and other statements by the names they assign."""
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef):
                for inner in node.body:
                    name = inner.name if isinstance(inner, ast.FunctionDef) else ""
                    yield (f"{node.name}.{name}" if name else node.name), inner
            elif isinstance(node, ast.FunctionDef):
                yield node.name, node
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        yield target.id, node


def entry_of(key: str, entries: Mapping[str, E]) -> E | None:
    """Return the entry of a function (module:name), else that of its module."""
    return entries.get(key, entries.get(key.partition(":")[0]))


@cache
def _modules() -> dict[str, _Module]:
    names = {".".join(("mqreplay", *path.relative_to(LIB).with_suffix("").parts)): path for path in LIB.rglob("*.py")}
    return {name: _Module(name, path) for name, path in names.items()}


@cache
def called_in_lib() -> set[str]:
    """Return the functions of core, by their keys, that a module of lib outside of core calls, also by another one."""
    read = _modules()
    core = {name.removeprefix(CORE): module for name, module in read.items() if name.startswith(CORE)}
    others = [module for name, module in read.items() if not name.startswith(CORE)]
    entries = {node for module in others for node in _entries(module, core)}
    return {":".join(node) for node in _closure(entries, _uses_in_core(core))}


@cache
def judged_by() -> dict[str, set[str]]:
    """Return the tables of each function of core, by its key (module:name); none: no table."""
    read = _modules()
    core = {name.removeprefix(CORE): module for name, module in read.items() if name.startswith(CORE)}
    uses = _uses_in_core(core)
    tables: dict[str, set[str]] = defaultdict(set)
    for name, decided in _tables_of_modules(read).items():
        for node in _closure(_entries(read[name], core), uses):
            tables[":".join(node)] |= decided
    return tables


def _uses_in_core(core: dict[str, _Module]) -> dict[Node, set[Node]]:
    """What each definition of core uses of core."""
    uses: dict[Node, set[Node]] = defaultdict(set)
    for stem, module in core.items():
        local = {name for name, _ in module.definitions()}
        classes = {name.partition(".")[0] for name in local if "." in name}
        for name, tree in module.definitions():
            used = module.used(tree)
            found = {(stem, each) for each in used & local} | _imported(module, used, core)
            found |= {(stem, each) for each in local if "." in each and f".{each.partition('.')[2]}" in used}
            found |= {(stem, f"{each}.__init__") for each in used & classes}
            uses[stem, name] |= found
    return uses


def _imported(module: _Module, used: set[str], core: dict[str, _Module]) -> set[Node]:
    """The definitions of core that names of ``used`` mean by an import; methods by their name alone."""
    found: set[Node] = set()
    sources = {source for source, _ in module.imported.values()}
    for name in used:
        source, target = module.imported.get(name, ("", ""))
        while source in core and target in core[source].imported:  # imported there, too
            source, target = core[source].imported[target]
        if target and target != "*":
            found.add((source, target))
    for source in sources & core.keys():
        for each, _ in core[source].definitions():
            if f".{each.rpartition('.')[2]}" in used and ("." in each or (source, "*") in module.imported.values()):
                found.add((source, each))
    return found


def _entries(module: _Module, core: dict[str, _Module]) -> set[Node]:
    return _imported(module, module.used(module.tree), core)


def _closure(start: set[Node], uses: dict[Node, set[Node]]) -> set[Node]:
    found, todo = set(start), list(start)
    while todo:
        new = uses.get(todo.pop(), set()) - found
        found |= new
        todo.extend(new)
    return found


def _tables_of_modules(read: dict[str, _Module]) -> dict[str, set[str]]:
    """The tables that each module outside of core and bind decides."""
    own: dict[str, set[str]] = {}
    for name, module in read.items():
        package = name.split(".")[1] if name.count(".") > 1 else ""
        if package == "decisions" and (match := _TABLE.match(module.doc)):
            own[name] = {match[0]}
        elif package == "findings":
            own[name] = {"gold.finding"}
    decided: dict[str, set[str]] = defaultdict(set)
    for name, tables in own.items():
        todo, seen = [name], {name}
        while todo:
            current = todo.pop()
            decided[current] |= tables
            for other in read[current].modules & read.keys() - seen:
                seen.add(other)
                if other.split(".")[1] in ("decisions", "evidence") and other not in own:
                    todo.append(other)
    for name in read:
        package = name.split(".")[1] if name.count(".") > 1 else ""
        if name not in decided and package in _ELSE:
            decided[name] = {_ELSE[package]}
    return decided
