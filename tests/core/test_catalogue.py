"""Every public function of core names its Java method and units, has an example and types, and is short."""

from __future__ import annotations

import ast
import re

from each_case import for_each
from vectors.catalogue import CORE, Function, functions

LONGEST = 40  # lines of a function, its docstring not counted
QUANTITY = re.compile(r"now|.*(time|timestamp|delay|offset|offset_py|size|size_py|position|latency|interval|duration)")
UNIT = re.compile(r"\b(ms|messages|bytes|percent|units|level|levels|epoch)\b")
FOUND = list(functions())
by_key = for_each(FOUND)


def every_function() -> list[tuple[str, ast.FunctionDef]]:
    """Private ones too."""
    return [
        (f"{path.stem}:{node.name}", node)
        for path in sorted(CORE.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]


def test_there_are_functions_to_look_at() -> None:
    assert len(FOUND) > 150


@by_key
def test_is_typed(function: Function) -> None:
    assert function.node.returns is not None
    assert [arg.arg for arg in function.arguments if arg.annotation is None] == []


@by_key
def test_names_its_java_method(function: Function) -> None:
    assert function.java or function.no_java, "name Class#method, or say 'No method of RocketMQ: why.'"


@by_key
def test_shows_an_example(function: Function) -> None:
    assert function.is_protocol or ">>>" in function.doc


@by_key
def test_names_its_units(function: Function) -> None:
    about = "\n".join(
        [function.doc, ast.get_docstring(function.owner) or "" if function.owner else "", function.module_doc]
    )
    unknown = [
        arg.arg
        for arg in function.arguments
        if QUANTITY.fullmatch(arg.arg) and arg.annotation and re.match(r"int|float", ast.unparse(arg.annotation))
    ]
    assert not unknown or UNIT.search(about), f"the unit of {unknown}"


@for_each(every_function())
def test_is_short(key: str, node: ast.FunctionDef) -> None:
    has_doc = ast.get_docstring(node) is not None
    doc = node.body[0]
    lines = (node.end_lineno or 0) - node.lineno + 1 - (((doc.end_lineno or 0) - doc.lineno + 1) if has_doc else 0)
    assert lines <= LONGEST, f"{key} has {lines} lines: cut it, or give the reason here"
