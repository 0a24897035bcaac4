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
from functools import cache

import pytest

from mqreplay.words import keys
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
# Names that say nothing of the domain. VAGUE_NAMES lists the files that still have some; it only gets shorter.
VAGUE_CONSTANT = re.compile(r"_?(OF|NO|BY)_[A-Z]")
VAGUE_LOCALS = {"found", "made", "taken"}
# Names of RocketMQ: GetMessageStatus and ResponseCode.
ROCKETMQ_CONSTANTS = {
    "NO_BUYER_ID",
    "NO_MATCHED_LOGIC_QUEUE",
    "NO_MATCHED_MESSAGE",
    "NO_MESSAGE_IN_QUEUE",
    "NO_PERMISSION",
}
VAGUE_NAMES = ROOT / "tests" / "vague_names.txt"
# Names of keys. words/keys.py has them; the others are the key of one module at most.
KEYS = {name for name in vars(keys) if name.isupper()} | {"CLIENT", "KEY", "PLACE", "TOPIC"}
MOST_MODULES = 3  # that define a public constant of one name
# Names that each record of a folder has by convention, and so mean the same in all its modules.
CONVENTIONS = {
    "COLUMNS": ("decode", "decisions"),  # of the table that the module fills
    "SCHEMA": ("decisions",),  # the same, with types
    "CASE": ("decisions",),  # columns that decide a row
    "KIND": ("decode",),  # the record of a kind of file
    "KINDS_OF_REQUEST": ("decode",),  # values of the column kind
    "FORMS": ("decode/logs",),  # of a log's messages
    "STEPS": ("replay",),  # of a pass
    "COMMAND": ("cli",),  # the record of a command
    "COMMANDS": ("cli",),
    "ABOUT": ("report/pictures",),  # what pictures.toml declares of a picture
}


@cache
def parsed(source: str) -> ast.Module:
    """Return the syntax tree of a module: several tests read each module of lib."""
    return ast.parse(source)


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
    if not any(word in source.lower() for word in WORDS):
        return []  # to read a file as Python reads it takes 100 times as long
    tree = parsed(source)
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


def vague_names(source: str) -> set[str]:
    """Return the constants OF_X, NO_X and BY_X of a module, and its local variables found, made and taken."""
    nodes = list(nodes_of(parsed(source)))
    inner = {node.id for node, in_function in nodes if in_function}
    stored = {node.id for node, _ in nodes} - ROCKETMQ_CONSTANTS
    return {name for name in stored if VAGUE_CONSTANT.match(name)} | (inner & VAGUE_LOCALS)


def nodes_of(tree: ast.AST) -> Iterator[tuple[ast.Name, bool]]:
    """Yield each name to which a module assigns, and whether a function does so."""
    below: list[tuple[ast.AST, bool]] = [(tree, False)]
    while below:
        node, in_function = below.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node, in_function
        in_function = in_function or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        below += [(child, in_function) for child in ast.iter_child_nodes(node)]


@cache
def listed_names() -> list[str]:
    """Return each file of lib with vague names, and these, as VAGUE_NAMES lists them."""
    names = {path: vague_names(path.read_text(encoding="utf-8")) for path in sorted(LIB.rglob("*.py"))}
    return [f"{path.relative_to(ROOT)}: {' '.join(sorted(names))}" for path, names in names.items() if names]


def test_vague_names_only_get_fewer() -> None:
    listed = VAGUE_NAMES.read_text(encoding="utf-8").splitlines()
    before = dict(line.split(": ") for line in listed)
    now = dict(line.split(": ") for line in listed_names())
    new = {
        path: names for path, text in now.items() if (names := set(text.split()) - set(before.get(path, "").split()))
    }
    assert not new, f"name them by a noun of the domain, such as GROUP_TABLES or missing_days: {new}"
    assert listed == listed_names(), (
        f"names are gone: run `python tests/test_words.py > {VAGUE_NAMES.relative_to(ROOT)}`"
    )


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("OF_GROUP = 1\nBY_DAY: int = 2\n_NO_ROW = 3", {"OF_GROUP", "BY_DAY", "_NO_ROW"}),
        ("OFFSET = 1\nNOTHING = 2\nBYTES = 3\nfound = 4", set()),
        ("def f():\n    for found in g():\n        made, taken = found", {"found", "made", "taken"}),
        ("def f(found):\n    return [made.taken for row in found if row.made]", set()),
    ],
)
def test_vague_names_that_are_noticed(source: str, names: set[str]) -> None:
    assert vague_names(source) == names


def constants_of(source: str) -> set[str]:
    """Return the public constants that a module defines, and the names of constants under which it imports others."""
    names = set()
    for node in parsed(source).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names |= {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names if alias.asname and alias.name in KEYS}
    return {name for name in names if name.isupper() and not name.startswith("_")}


def test_a_constant_has_one_home() -> None:
    homes: dict[str, list[str]] = {}
    for path in sorted(LIB.rglob("*.py")):
        module = path.relative_to(LIB).as_posix()
        if module.startswith("core/"):  # its names are public: docs/development/compatibility.md
            continue
        for name in constants_of(path.read_text(encoding="utf-8")):
            if not module.startswith(tuple(f"{folder}/" for folder in CONVENTIONS.get(name, ()))):
                homes.setdefault(name, []).append(module)
    several = {name: modules for name, modules in homes.items() if name in KEYS and len(modules) > 1}
    assert not several, f"import the key from words/keys.py, or name it by what it is the key of: {several}"
    many = {name: modules for name, modules in homes.items() if len(modules) > MOST_MODULES}
    assert not many, f"import what means the same, and name the others by their meaning: {many}"


def test_conventions_are_used() -> None:
    for name, folders in CONVENTIONS.items():
        of_folders = [path for folder in folders for path in (LIB / folder).rglob("*.py")]
        using = [path for path in of_folders if name in constants_of(path.read_text(encoding="utf-8"))]
        assert len(using) > 1, name


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("QUEUE = 1\nKEY: int = 2\n_GROUP = 3\nplace = 4", {"QUEUE", "KEY"}),
        ("A, (B, C) = 1, (2, 3)\ndef f():\n    D = 4", {"A", "B", "C"}),
        ("from a import QUEUE\nfrom b import GROUP_QUEUE as KEY, other as OTHER", {"KEY"}),
    ],
)
def test_constants_that_are_noticed(source: str, names: set[str]) -> None:
    assert constants_of(source) == names


if __name__ == "__main__":
    print("\n".join(listed_names()))
