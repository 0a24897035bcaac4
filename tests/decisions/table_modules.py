"""The modules of evidence and decisions that the replay calls for the rows of each gold table, by its source.

Followed are the steps of the table's record, or of the module of the replay that makes it; and in passes the
assignments in the function that makes the rows, the functions of its own module that it calls, and inputs and results:
a pass and the step that merges its shards are two halves of one decision. Frames that another step hands over (members,
outages) are inputs, and documented there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path

import mqreplay
from mqreplay.decisions.decision import Step
from mqreplay.decisions.registry import DECISIONS
from mqreplay.replay import evidence_steps, message_pass, plan

FOLDER = Path(mqreplay.__file__).parent
# What every pass gets: the settings, the day, and tables as they were read.
INPUTS = ("context", "day", "judged", "skew", "starts")
ROOMS = ("mqreplay.evidence", "mqreplay.decisions")


@dataclass
class Source:
    """A module of the replay: what it imports, its functions, and calls that make results with named frames."""

    imported: dict[str, str] = field(default_factory=dict)  # module of evidence or decisions, by name
    classes: dict[str, list[str]] = field(default_factory=dict)  # names of fields, in order
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)


Expression = tuple[ast.expr, str, str]  # with the names of its module and function


@dataclass
class Replay:
    """The source of the replay's room, read once."""

    sources: dict[str, Source] = field(default_factory=dict)
    of_passes: dict[str, list[Expression]] = field(default_factory=dict)  # values of fields of inputs and results
    tables: dict[str, Expression | None] = field(default_factory=dict)  # rows of a gold table; None: steps give them

    @staticmethod
    def read() -> Replay:
        """Return the replay as it is in lib/."""
        made = Replay()
        for path in sorted((FOLDER / "replay").glob("*.py")):
            made._add(path.stem, ast.parse(path.read_text(encoding="utf-8")))
        for module, source in made.sources.items():
            for function in source.functions.values():
                made._scan(module, function)
        made.tables |= {name: None for name in plan.STEPS if name.startswith("gold.")}
        made.tables |= {"gold.judgement": None, "gold.replay_gap": None}
        return made

    def _add(self, module: str, tree: ast.Module) -> None:
        source = self.sources[module] = Source()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(ROOMS):
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    of_module = whole if (FOLDER.parent / f"{whole.replace('.', '/')}.py").is_file() else node.module
                    source.imported[alias.asname or alias.name] = str(of_module).rpartition(".")[2]
            if isinstance(node, ast.ClassDef):
                source.classes[node.name] = [
                    each.target.id
                    for each in node.body
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
                ]
            if isinstance(node, ast.FunctionDef):
                source.functions[node.name] = node

    def _scan(self, module: str, function: ast.FunctionDef) -> None:
        for call in _calls(function):
            name = call.func.id if isinstance(call.func, ast.Name) else ""
            for source in self.sources.values():
                if name not in source.classes:
                    continue
                named = dict(zip(source.classes[name], call.args, strict=False))
                named |= {each.arg: each.value for each in call.keywords if each.arg}
                for key, value in named.items():
                    self.of_passes.setdefault(key, []).append((value, module, function.name))
            rows = _added(call, name)
            if rows is not None:
                self.tables[rows[0]] = rows[1], module, function.name

    def called(self, table: str) -> set[str]:
        """Return the modules that are called for the rows of a table, in the passes and in the steps between them."""
        rows = self.tables[table]
        if rows is not None:
            return self._called([rows])
        if table in ("gold.judgement", "gold.replay_gap"):  # of all tables: their rows are inputs
            return {table.removeprefix("gold.")}
        own = set(DECISIONS[table].steps)
        for steps in (evidence_steps.BREAK_STEPS, message_pass.STEPS):
            own |= set(steps) if table in steps else set()
        return self.called_for(table, own)

    def called_for(self, name: str, own: set[str] | None = None) -> set[str]:
        """Return the modules that are called for a frame: by its step, by those of ``own``, and by passes."""
        modules: set[str] = set()
        waiting, seen = [name], set[str]()
        while waiting:
            frame = waiting.pop()
            step = plan.STEPS.get(frame, frame)
            if frame in seen:
                continue
            seen.add(frame)
            if isinstance(step, Step):
                modules |= self._modules(step)
                frames = [step.renamed.get(each, each) for each in signature(step.function).parameters]
            else:
                frames = [step] if isinstance(step, str) else list(step)
                modules |= self._called(list(self.of_passes.get(frames[0].rpartition(".")[2], [])))
            waiting += [each for each in frames if each in (own or ()) or self._is_result(each)]
        return modules

    def _is_result(self, frame: str) -> bool:
        """Return whether a frame is a result of the passes."""
        step = plan.STEPS.get(frame, frame)
        owner, _, attribute = step.rpartition(".") if isinstance(step, str) else ("", "", "")
        return attribute in self.of_passes and owner.partition(".")[0] in ("queues", "groups", "deliveries")

    def _modules(self, step: Step[object]) -> set[str]:
        """Return the module of a step's function; for a function of the replay, those that it calls."""
        module, name = step.function.__module__, step.function.__name__
        if module.startswith(ROOMS):
            return {module.rpartition(".")[2]}
        source = self.sources.get(module.rpartition(".")[2], Source())
        function = source.functions.get(name)
        names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)} if function else set()
        return {source.imported[each] for each in names if each in source.imported}

    def _called(self, waiting: list[Expression]) -> set[str]:
        found: set[str] = set()
        seen: set[int] = set()
        while waiting:
            value, module, function = waiting.pop()
            if id(value) in seen:
                continue
            seen.add(id(value))
            for node in self._outermost(value):
                if isinstance(node, ast.Name):
                    found |= {self.sources[module].imported.get(node.id, "")} - {""}
                    waiting += self._values(module, function, node.id)
                elif isinstance(node, ast.Attribute) and node.attr not in INPUTS:
                    waiting += self.of_passes.get(node.attr, [])
                    found |= self._of_input(node.attr)
        return found

    def _of_input(self, name: str) -> set[str]:
        """Return the modules of the step that gives an input of passes."""
        step = plan.STEPS.get(name)
        if isinstance(step, str):
            step = plan.STEPS.get(step.partition(".")[0])
        return self._modules(step) if isinstance(step, Step) and name not in self.of_passes else set()

    def _values(self, module: str, function: str, name: str) -> Iterator[Expression]:
        """Yield what a name may be in a function: an assignment, a function's result, or an argument of its callers."""
        functions = self.sources[module].functions
        if name in functions:
            yield from ((value, module, name) for value in _returned(functions[name]))
            return
        yield from ((value, module, function) for value in _assigned(functions[function], name))
        names = [each.arg for each in functions[function].args.args]
        if name in names and function.startswith("_") and module.endswith("_pass"):
            place = names.index(name) - ("self" in names)
            for caller in functions.values():
                for call in _calls(caller):
                    if _called_name(call) == function and place < len(call.args):
                        yield call.args[place], module, caller.name

    def _outermost(self, value: ast.expr) -> Iterator[ast.expr]:
        """Yield the names and attributes of an expression; of a result's field not the result."""
        waiting: list[ast.AST] = [value]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Name | ast.Attribute):
                yield node
            if isinstance(node, ast.Attribute) and node.attr in self.of_passes:
                continue
            waiting += ast.iter_child_nodes(node)


def _called_name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _calls(function: ast.FunctionDef) -> Iterator[ast.Call]:
    return (node for node in ast.walk(function) if isinstance(node, ast.Call))


def _added(call: ast.Call, name: str) -> tuple[str, ast.expr] | None:
    """Return the table and the rows of gold.add(table, rows) and add_judged(gold, table, rows)."""
    of_gold = isinstance(call.func, ast.Attribute) and ast.unparse(call.func) == "gold.add"
    if name != "add_judged" and not of_gold:
        return None
    table, rows = call.args[-2:]
    if isinstance(table, ast.Constant):
        return str(table.value), rows
    constant = ast.unparse(table).removesuffix(".table")  # of a record
    return (f"gold.{constant.lower()}", rows) if constant.isupper() else None


def _assigned(function: ast.FunctionDef, name: str) -> Iterator[ast.expr]:
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id == name:
                    yield node.value
                elif isinstance(target, ast.Tuple):
                    names = [each.id if isinstance(each, ast.Name) else "" for each in target.elts]
                    if name in names:
                        values = node.value.elts if isinstance(node.value, ast.Tuple) else None
                        yield values[names.index(name)] if values is not None else node.value


def _returned(function: ast.FunctionDef) -> Iterator[ast.expr]:
    return (node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None)
