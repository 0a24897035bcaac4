"""Each reason that code has is in the Chinese catalogue: a new one without a translation fails here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from each_case import for_each
from language.chinese import ZH
from language.composed_reasons import EXAMPLES, NOT_REASONS, OTHER_MODULES
from mqreplay import decisions, evidence
from mqreplay.decisions.failover_exposure import MISSING_POLL
from mqreplay.decisions.registry import DECISIONS
from mqreplay.decode.kinds import FILE_KINDS
from mqreplay.decode.recording.advice import EVIDENCE, all_ways, how_to_record, label_of
from mqreplay.report.undetermined import UNDETERMINED_REASONS
from mqreplay.words.quantity import listed

FOLDERS = [Path(str(package.__path__[0])) for package in (decisions, evidence)]
MODULES = sorted(path for folder in FOLDERS for path in folder.rglob("*.py") if path.name not in OTHER_MODULES)
NUMBER = re.compile(r"-?[0-9]+")
A_REASON = "all is on disk"  # in place of a field that is a reason


def unknown(text: str) -> bool:
    """Return whether the catalogue lacks a reason, or the reason with N in place of numbers."""
    return not ZH.knows(text) or not ZH.knows(NUMBER.sub("N", text))


def literals(tree: ast.Module) -> Iterator[str]:
    """Yield the texts of a module, without docstrings; fields of f-strings are {}."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    skipped = {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, documented) and _documents(node)}
    # Phrases and nouns of records are no reasons: test_evidence_in_chinese.py and the test of plain words check them.
    records = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Decision"]
    skipped |= {id(part) for record in records for part in ast.walk(record)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in ast.walk(node) if part is not node}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.value


def _documents(node: ast.AST) -> bool:
    return isinstance(getattr(node, "body", [None])[0], ast.Expr)


def lacking(text: str) -> bool:
    """Return whether no finished form of a literal is known."""
    filled = [text.replace("{}", first, 1).replace("{}", rest) for first in ("7", A_REASON) for rest in ("7", A_REASON)]
    return all(map(unknown, filled))


@for_each(MODULES)
def test_every_reason_of_a_module_is_translated(module: Path) -> None:
    texts = literals(ast.parse(module.read_text("utf-8")))
    sentences = [text for text in texts if text.count(" ") > 1 and len(text.split()) > 1]
    found = [text for text in sentences if text not in EXAMPLES and not NOT_REASONS.search(text) and lacking(text)]
    assert found == [], "translate it in reasons.toml; of a part of a reason, add an example to composed_reasons.py"


@for_each(EXAMPLES)
def test_composed_reasons_are_translated(literal: str) -> None:
    for example in EXAMPLES[literal]:
        assert re.search(".*".join(map(re.escape, literal.split("{}"))), example)
        assert not unknown(example), example
        assert not re.search("[a-z]+ [a-z]+ [a-z]+", re.sub("`[^`]*`", "", ZH.text(example))), ZH.text(example)


def test_examples_are_of_literals_that_code_has() -> None:
    every = {text for module in MODULES for text in literals(ast.parse(module.read_text("utf-8")))}
    assert [literal for literal in EXAMPLES if literal not in every] == []


@pytest.mark.parametrize(
    ("reason", "translation"),
    [
        ("the commit passed offset N, which finished N.N s later", "提交越过了位点 N，而该位点的消息 N.N 秒后才消费完"),
        ("an empty queue, but the broker says NO_MESSAGE", "空队列，但 Broker 返回 NO_MESSAGE"),
        (
            "reconsumeTimes 3 reached maxReconsumeTimes 3: a dead letter; but the message came back",
            "reconsumeTimes 3 达到 maxReconsumeTimes 3：应为死信；但消息又被投递了",
        ),
        (
            "more than 12 s later than the limit: its channel to the name server closed, or it unregistered",
            "超过时限 12 秒以上：它与 NameServer 的连接已断开，或它已注销",
        ),
        ("the client failed: a. B; c", "客户端出错：a. B; c"),
        (
            'not judged: [strategies.groups."g 1"] machine_rooms is not set',
            '未判断：[strategies.groups."g 1"] 未设置 machine_rooms',
        ),
    ],
)
def test_a_reason_keeps_its_values(reason: str, translation: str) -> None:
    assert ZH.text(reason) == translation


def test_plain_words_and_what_helps_are_translated() -> None:
    texts = [MISSING_POLL, *(text for each in UNDETERMINED_REASONS for text in (each.plain, each.advice) if text)]
    texts += [how_to_record(kind, mode) for kind in EVIDENCE for mode in ("network", "files", "hooks")]
    texts += [all_ways(kind, mode) for kind in EVIDENCE for mode in ("network", "files", "hooks")]
    texts += [kind.label for kind in FILE_KINDS.values()]
    texts += [each.many for each in DECISIONS.values()]
    assert [text for text in texts if not ZH.knows(text)] == []


def test_every_list_of_missing_kinds_is_translated() -> None:
    for decision in DECISIONS.values():
        kinds = [kind for kind in EVIDENCE if kind in {need.kind for need in decision.needs}]
        for number in range(1, len(kinds) + 1):
            for some in combinations(kinds, number):
                text = f"no record of {listed([label_of(kind) for kind in some])}"
                assert ZH.knows(text), text


def test_gaps_of_missing_kinds_are_translated() -> None:
    for kind in EVIDENCE:
        for mode in ("network", "files", "hooks"):
            assert ZH.knows(f"no record of {label_of(kind)}. Next time: {all_ways(kind, mode)}")
