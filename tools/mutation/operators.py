"""What a mutant puts in place of a piece of a program: for each node of its tree, the nodes to try instead.

Small slips of a programmer: a boundary one off, a comparison turned, an operand lost, a statement forgotten. Each is a
program that Python still compiles. Nothing here knows where the node stands; mutants.py says what is left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
_PAIRS = (
    ("min", "max"),
    ("any", "all"),
    ("startswith", "endswith"),
    ("lower", "upper"),
    ("lstrip", "rstrip"),
    ("bisect_left", "bisect_right"),
    ("find", "rfind"),
    ("partition", "rpartition"),
    ("removeprefix", "removesuffix"),
)
_NAMES = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
_VERSION = re.compile(r"\d+(\.\d+)+")
MARK = "~"  # what a changed text has at its end


def instead_of(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes to try in place of node; most nodes have none."""
    for rule in _RULES.get(type(node), ()):
        yield from rule(node)


def negated(test: ast.expr) -> ast.expr | None:
    """A condition turned round, where no other rule does that already."""
    if isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
        return None
    return ast.UnaryOp(ast.Not(), test)


def _compare(node: ast.Compare) -> Iterator[ast.AST]:
    for place, op in enumerate(node.ops):
        for other in _COMPARISONS[type(op)]:
            yield ast.Compare(node.left, [*node.ops[:place], other(), *node.ops[place + 1 :]], node.comparators)


def _bin_op(node: ast.BinOp) -> Iterator[ast.AST]:
    yield ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right)


def _aug_assign(node: ast.AugAssign) -> Iterator[ast.AST]:
    yield ast.AugAssign(node.target, _ARITHMETIC[type(node.op)](), node.value)
    yield ast.Pass()


def _bool_op(node: ast.BoolOp) -> Iterator[ast.AST]:
    yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    for place in range(len(node.values)):
        left = [*node.values[:place], *node.values[place + 1 :]]
        yield left[0] if len(left) == 1 else ast.BoolOp(node.op, left)


def _unary_op(node: ast.UnaryOp) -> Iterator[ast.AST]:
    yield node.operand


def _constant(node: ast.Constant) -> Iterator[ast.AST]:
    match node.value:
        case bool():
            yield ast.Constant(not node.value)
        case int() | float():
            yield ast.Constant(node.value + 1)
        case str() if _VERSION.fullmatch(node.value):
            # 5.0.0~ would be read as 5.0.0
            major, _, rest = node.value.partition(".")
            yield ast.Constant(f"{int(major) + 1}.{rest}")
        case str():
            yield ast.Constant(node.value + MARK)
        case bytes():
            yield ast.Constant(node.value + MARK.encode())


def _conditional(node: ast.If | ast.While | ast.IfExp) -> Iterator[ast.AST]:
    test = negated(node.test)
    if test is not None:
        other = {ast.If: ast.If, ast.While: ast.While, ast.IfExp: ast.IfExp}[type(node)]
        yield other(test, node.body, node.orelse)


def _comprehension(node: ast.comprehension) -> Iterator[ast.AST]:
    for place in range(len(node.ifs)):
        left = [*node.ifs[:place], *node.ifs[place + 1 :]]
        yield ast.comprehension(node.target, node.iter, left, node.is_async)


def _slice(node: ast.Slice) -> Iterator[ast.AST]:
    if node.lower is not None:
        yield ast.Slice(None, node.upper, node.step)
    if node.upper is not None:
        yield ast.Slice(node.lower, None, node.step)


def _return(node: ast.Return) -> Iterator[ast.AST]:
    if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
        yield ast.Return(ast.Constant(None))


def _name(node: ast.Name) -> Iterator[ast.AST]:
    if node.id in _NAMES and isinstance(node.ctx, ast.Load):
        yield ast.Name(_NAMES[node.id], node.ctx)


def _attribute(node: ast.Attribute) -> Iterator[ast.AST]:
    if node.attr in _NAMES and isinstance(node.ctx, ast.Load):
        yield ast.Attribute(node.value, _NAMES[node.attr], node.ctx)


def _removed(node: ast.stmt) -> Iterator[ast.AST]:
    yield ast.Pass()


def _continue(node: ast.Continue) -> Iterator[ast.AST]:
    yield from (ast.Pass(), ast.Break())


def _break(node: ast.Break) -> Iterator[ast.AST]:
    yield from (ast.Pass(), ast.Continue())


def _assign(node: ast.Assign) -> Iterator[ast.AST]:
    # Without its first assignment a plain name is a NameError, which tells nothing.
    if not any(isinstance(target, ast.Name | ast.Tuple) for target in node.targets):
        yield ast.Pass()


_RULES: dict[type[ast.AST], tuple[Callable[[Any], Iterator[ast.AST]], ...]] = {
    ast.Compare: (_compare,),
    ast.BinOp: (_bin_op,),
    ast.BoolOp: (_bool_op,),
    ast.UnaryOp: (_unary_op,),
    ast.Constant: (_constant,),
    ast.If: (_conditional,),
    ast.While: (_conditional,),
    ast.IfExp: (_conditional,),
    ast.comprehension: (_comprehension,),
    ast.Slice: (_slice,),
    ast.Return: (_return,),
    ast.Name: (_name,),
    ast.Attribute: (_attribute,),
    ast.Raise: (_removed,),
    ast.Expr: (_removed,),
    ast.Delete: (_removed,),
    ast.AugAssign: (_aug_assign,),
    ast.Assign: (_assign,),
    ast.Continue: (_continue,),
    ast.Break: (_break,),
}
