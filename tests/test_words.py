"""Words that names and comments of lib/ do not use, because they say too little.

Names are those that a module defines: functions, classes, arguments, variables, attributes and files. Comments include
docstrings. Text that the program prints and keys of data are not checked.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

import pytest

from tests_shared import ROOT

LIB = ROOT / "lib" / "mqreplay"
WORDS = {
    "told": "say what the value is: evidence, reported, recorded, described",
    "said": "text, message, output, recorded",
    "stood": "did not advance, was in effect, had no progress",
    "stretch": "span, interval, range",
    "stretches": "spans, intervals, ranges",
    "born": "created, new, first seen",
    "given": "the argument's name; found, recorded, requested, passed; or leave it out",
}
WORD = re.compile(rf"(?<![a-z])({'|'.join(sorted(WORDS, key=len, reverse=True))})(?![a-z])", re.IGNORECASE)
# RocketMQ's own names of the time and place at which a producer creates a message.
ROCKETMQ = re.compile(r"born_?(ts|ms|timestamp|time|host)", re.IGNORECASE)
Found = tuple[int, str]


def words_in(text: str) -> list[str]:
    """Return the words of a text that must not be there, also as parts of names in any spelling."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", ROCKETMQ.sub("", text)).replace("_", " ")
    return [found.lower() for found in WORD.findall(parted)]


def names_of(tree: ast.AST) -> Iterator[Found]:
    """Yield each name that a module defines, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.lineno, node.name


def docstrings_of(tree: ast.AST) -> Iterator[Found]:
    """Yield each line of each docstring."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(
            node
        ):
            text = node.body[0].value  # type: ignore[attr-defined]
            for number, line in enumerate(text.value.splitlines()):
                yield text.lineno + number, line


def comments_of(source: str) -> Iterator[Found]:
    """Yield each comment."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def wrong_words(source: str) -> list[Found]:
    """Return the words that must not be there, each with its line."""
    tree = ast.parse(source)
    texts = [*names_of(tree), *docstrings_of(tree), *comments_of(source)]
    return sorted({(line, word) for line, text in texts for word in words_in(text)})


def test_names_and_comments_have_plain_words() -> None:
    wrong = []
    for path in sorted(LIB.rglob("*.py")):
        found = [*wrong_words(path.read_text(encoding="utf-8")), *((1, word) for word in words_in(path.stem))]
        wrong += [f"{path.relative_to(ROOT)}:{line}: {word!r}; write: {WORDS[word]}" for line, word in found]
    assert wrong == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("told = 1", ["told"]),
        ("def born_clients(): ...", ["born"]),
        ("class ClockStretch: ...", ["stretch"]),
        ("def f(given): ...", ["given"]),
        ("self.said = 1", ["said"]),
        ("import a as told", ["told"]),
        ("x = 1  # stood still", ["stood"]),
        ('"""What was Given."""', ["given"]),
        ("born_ts = first_born_ts = born_timestamp = born_host = 1", []),
        ('print("Group g stood still: it was given 3 queues.")', []),
        ('x = row["said"]; f(given=1); y.told', []),
        ("givenness = restored = 1", []),
    ],
)
def test_words_that_are_noticed(source: str, words: list[str]) -> None:
    assert [word for _, word in wrong_words(source)] == words
