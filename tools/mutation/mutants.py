"""All mutants of a module: each one change, told by its place and by the statement before and after.

Left alone: docstrings, annotations, decorators, imports, ``__all__``, names for types, and the bodies of a Protocol.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mutation.operators import instead_of

MODULE = "<module>"  # the place of what stands outside functions: it runs when the module is loaded
Spot = tuple[tuple[str, int | None], ...]
_TYPES = ("Callable", "Literal", "Mapping", "Sequence", "TypeVar", "Tree")
_SKIPPED = {
    "arg": ("annotation",),
    "FunctionDef": ("returns", "decorator_list"),
    "ClassDef": ("bases", "keywords", "decorator_list"),
    "AnnAssign": ("annotation", "target"),
}


@dataclass(frozen=True, order=True)
class Key:
    """What a mutant is known by from run to run: no line number, so that it lives through edits elsewhere."""

    module: str
    place: str
    before: str
    after: str
    nth: int = 1  # of those told by the same words


@dataclass(frozen=True)
class Mutant:
    """One change. ``spot`` is where in the tree: the steps from the module to the node, and the node put there."""

    key: Key
    line: int
    spot: Spot = field(repr=False)
    node: ast.AST = field(repr=False)

    def code(self, source: str, path: str) -> Any:
        """The module's code with the change in it."""
        tree = ast.parse(source)
        _put(tree, self.spot, self.node)
        return compile(ast.fix_missing_locations(tree), path, "exec")


def mutants(path: Path) -> list[Mutant]:
    """Every mutant of a module's file, in the order written."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    met: Counter[Key] = Counter()
    found = []
    for mutant in _of(tree, _Where(path.stem)):
        if mutant.key.before != mutant.key.after:
            met[mutant.key] += 1
            found.append(replace(mutant, key=replace(mutant.key, nth=met[mutant.key])))
    return found


@dataclass(frozen=True)
class _Where:
    """Where the walk through a tree stands: in which statement, and how many of the steps lead to that."""

    module: str
    names: tuple[str, ...] = ()
    in_function: bool = False
    spot: Spot = ()
    statement: ast.stmt | None = None
    depth: int = 0

    def within(self, node: ast.AST) -> _Where:
        """At the node itself. A nested function belongs to the one around it: that is what a test calls."""
        here = self
        if isinstance(node, ast.stmt):
            here = replace(here, statement=node, depth=len(here.spot))
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not here.in_function:
            here = replace(here, names=(*here.names, node.name), in_function=isinstance(node, ast.FunctionDef))
        return here

    def mutant(self, node: ast.AST, other: ast.AST) -> Mutant:
        """The mutant with other in place of node."""
        assert self.statement is not None
        changed: ast.AST = other
        if len(self.spot) > self.depth:
            changed = copy.deepcopy(self.statement)
            _put(changed, self.spot[self.depth :], other)
        key = Key(self.module, ".".join(self.names) or MODULE, _text(self.statement), _text(changed))
        return Mutant(key, getattr(node, "lineno", self.statement.lineno), self.spot, other)


def _of(node: ast.AST, where: _Where) -> Iterator[Mutant]:
    if isinstance(node, ast.stmt) and _left_alone(node, where):
        return
    where = where.within(node)
    if where.statement is not None:
        yield from (where.mutant(node, other) for other in instead_of(node))
    for name, index, child in _children(node):
        yield from _of(child, replace(where, spot=(*where.spot, (name, index))))


def _text(node: ast.AST) -> str:
    """The statement on one line; of what holds statements itself, only its head."""
    bare = copy.copy(node)
    for name in ("body", "orelse", "handlers", "finalbody", "cases"):
        if isinstance(getattr(bare, name, None), list):
            setattr(bare, name, [])
    if isinstance(bare, ast.FunctionDef):
        bare.decorator_list = []
    lines = ast.unparse(ast.fix_missing_locations(bare)).splitlines()
    return " ".join(line.strip() for line in lines)


def _put(node: ast.AST, spot: Spot, other: ast.AST) -> None:
    for name, index in spot[:-1]:
        node = getattr(node, name) if index is None else getattr(node, name)[index]
    name, index = spot[-1]
    if index is None:
        setattr(node, name, other)
    else:
        getattr(node, name)[index] = other


def _children(node: ast.AST) -> Iterator[tuple[str, int | None, ast.AST]]:
    for name, value in ast.iter_fields(node):
        if name in _SKIPPED.get(type(node).__name__, ()):
            continue
        if isinstance(value, ast.AST):
            yield name, None, value
        elif isinstance(value, list):
            yield from ((name, index, child) for index, child in enumerate(value) if isinstance(child, ast.AST))


def _left_alone(node: ast.stmt, where: _Where) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)  # a docstring, or the dots of a stub
    if isinstance(node, ast.ClassDef):
        return any(ast.unparse(base).startswith("Protocol") for base in node.bases)
    if isinstance(node, ast.Assign) and not where.names:
        return ast.unparse(node.targets[0]) == "__all__" or _names_a_type(node.value)
    return False


def _names_a_type(value: ast.expr) -> bool:
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
        # Constant | Property; but _RETRIED | {SYSTEM_BUSY} is a set
        return all(
            isinstance(n, ast.Name | ast.BinOp | ast.Constant | ast.operator | ast.expr_context)
            and not (isinstance(n, ast.Name) and n.id.isupper())
            for n in ast.walk(value)
        )
    head = value.func if isinstance(value, ast.Call) else value.value if isinstance(value, ast.Subscript) else None
    return isinstance(head, ast.Name) and head.id in _TYPES
