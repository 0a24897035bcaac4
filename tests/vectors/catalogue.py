"""The public functions of core, from its sources: where they are, how they are called, what they say.

Methods of public classes are functions too; properties count, dunder methods and what begins with _ do not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CORE = Path(__file__).parents[2] / "lib" / "mqreplay" / "core"
# RouteInfoManager#registerBroker, LatencyFaultToleranceImpl.FaultItem#compareTo, MQClientException#<init>
_JAVA = re.compile(r"\b[A-Z][\w.]*#[\w<>]+|(?<=[ (])#[a-z]\w+")
_FOLLOWS = re.compile(r"(?<=\.) (Follows [^ ]+#|No method of RocketMQ: ).*$")
_NO_JAVA = re.compile(r"No method of RocketMQ:\s+(.+?)\.(?=\s|$)", re.DOTALL)


@dataclass(frozen=True)
class Function:
    """A public function of core. ``owner`` is its class, None for a function of the module."""

    module: str
    owner: ast.ClassDef | None
    node: ast.FunctionDef
    module_doc: str

    @property
    def name(self) -> str:
        """Its name within the module: RouteInfoManager.register_broker."""
        return f"{self.owner.name}.{self.node.name}" if self.owner else self.node.name

    @property
    def key(self) -> str:
        """Its name among all: route_info_manager:RouteInfoManager.register_broker."""
        return f"{self.module}:{self.name}"

    @property
    def doc(self) -> str:
        """Its docstring."""
        return ast.get_docstring(self.node) or ""

    @property
    def arguments(self) -> list[ast.arg]:
        """Its arguments but self."""
        arguments = self.node.args
        return [
            arg
            for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            if arg.arg not in ("self", "cls")
        ]

    @property
    def signature(self) -> str:
        """As it is written, on one line."""
        returns = f" -> {ast.unparse(self.node.returns)}" if self.node.returns else ""
        return f"{self.name}({ast.unparse(self.node.args)}){returns}"

    @property
    def says(self) -> str:
        """The first sentence or line of its docstring."""
        first = self.doc.split("\n\n", 1)[0]
        return _FOLLOWS.sub("", " ".join(first.split()))

    @property
    def java(self) -> list[str]:
        """The Java methods its docstring names, a bare #method by the class before it."""
        found: list[str] = []
        for match in _JAVA.findall(self.doc):
            owner = found[-1].partition("#")[0] if found else ""
            full = f"{owner}{match}" if match.startswith("#") else match
            if full not in found and "#" in full and not full.startswith("#"):
                found.append(full)
        return found

    @property
    def no_java(self) -> str | None:
        """Why it follows no method of RocketMQ, where its docstring says so."""
        match = _NO_JAVA.search(self.doc)
        return " ".join(match[1].split()) if match else None

    @property
    def is_protocol(self) -> bool:
        """Whether it is what a caller has to bring, and so has no body."""
        return self.owner is not None and any(ast.unparse(base).startswith("Protocol") for base in self.owner.bases)


def functions() -> Iterator[Function]:
    """Every public function of core, by file and in the order written."""
    for path in sorted(CORE.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        doc = ast.get_docstring(tree) or ""
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                yield Function(path.stem, None, node, doc)
            elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                for inner in node.body:
                    if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
                        yield Function(path.stem, node, inner, doc)
