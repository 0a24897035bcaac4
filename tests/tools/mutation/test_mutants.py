"""The mutator changes what it says, each time one thing, and leaves alone what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation import page
from mutation.mutants import Key, Mutant, mutants

SOURCE = '''"""Of a module."""
from typing import Protocol
__all__ = ["f"]
LIMIT = 3
Pair = Callable[[int], int]

class Asked(Protocol):
    def ask(self, what: str = "a") -> int: ...

class Box:
    size: int = 1

    def grow(self, by: "int" = 2) -> None:
        """Of a method."""
        self.size += by

@cache(9)
def f(a: int, b: list[int]) -> int:
    if a < LIMIT and not b:
        raise ValueError
    return max(a, *b[1:])
'''


@pytest.fixture
def found(tmp_path: Path) -> list[Mutant]:
    path = tmp_path / "m.py"
    path.write_text(SOURCE)
    return mutants(path)


def after(found: list[Mutant], place: str, before: str) -> set[str]:
    return {mutant.key.after for mutant in found if (mutant.key.place, mutant.key.before) == (place, before)}


def test_a_condition(found: list[Mutant]) -> None:
    assert after(found, "f", "if a < LIMIT and (not b):") == {
        "if a <= LIMIT and (not b):",
        "if a >= LIMIT and (not b):",
        "if a < LIMIT or not b:",
        "if a < LIMIT:",
        "if not b:",
        "if a < LIMIT and b:",
    }


def test_a_result(found: list[Mutant]) -> None:
    assert after(found, "f", "return max(a, *b[1:])") == {
        "return None",
        "return min(a, *b[1:])",
        "return max(a, *b[:])",
        "return max(a, *b[2:])",
    }


def test_a_statement_lost(found: list[Mutant]) -> None:
    assert after(found, "f", "raise ValueError") == {"pass"}
    assert after(found, "Box.grow", "self.size += by") == {"self.size -= by", "pass"}


def test_defaults_and_constants(found: list[Mutant]) -> None:
    assert after(found, "Box.grow", "def grow(self, by: 'int'=2) -> None:") == {"def grow(self, by: 'int'=3) -> None:"}
    assert after(found, "<module>", "LIMIT = 3") == {"LIMIT = 4"}
    assert after(found, "Box", "size: int = 1") == {"size: int = 2"}


def test_a_version_becomes_another(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text("a('5.0.0', 'b')")
    assert [mutant.key.after for mutant in mutants(path)] == ["pass", "a('6.0.0', 'b')", "a('5.0.0', 'b~')"]


def test_the_rest_is_left_alone(found: list[Mutant]) -> None:
    assert {mutant.key.place for mutant in found} == {"<module>", "Box", "Box.grow", "f"}
    assert not [mutant for mutant in found if mutant.key.before.startswith(("'", "__all__", "Pair", "from", "@"))]


def test_a_mutant_is_the_module_with_that_one_change(found: list[Mutant]) -> None:
    source = SOURCE.replace("@cache(9)\n", "").replace("Callable[[int], int]", "0")
    (mutant,) = (each for each in found if each.key.after == "return min(a, *b[1:])")
    spaces: dict[str, object] = {}
    exec(mutant.code(source, "m.py"), spaces)
    assert spaces["f"](5, [1, 2]) == 2  # type: ignore[operator]


def test_same_words_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text("def f(a):\n    a.b()\n    a.b()\n")
    assert [mutant.key for mutant in mutants(path)] == [Key("m", "f", "a.b()", "pass", n) for n in (1, 2)]


def test_the_page_tells_what_was_not_judged() -> None:
    key, other = Key("m", "f", "a < 1", "a <= 1"), Key("m", "f", "a < 1", "a >= 1")
    gone = Key("m", "g", "b", "pass")
    judgements = {
        (each.module, each.place, each.before, each.after): page.Judgement("equivalent", "never 1")
        for each in (key, gone)
    }
    text = page.render({key: "survived", other: "survived", gone: "tests"}, judgements)
    assert "3 mutants, 1 killed, 2 survived: 33.3 %" in text
    assert "Survivors: 1 equivalent, 1 not judged." in text
    assert "became `a >= 1`\n  not judged" in text
    assert text.index("Judged, and not among the survivors") < text.index("- g, `b`")


def test_every_judgement_can_be_read() -> None:
    found = page.judged((page.HERE / "judged.toml").read_text(encoding="utf-8"))
    assert all(judgement.why for judgement in found.values())
